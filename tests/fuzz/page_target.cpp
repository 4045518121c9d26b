#include "tests/fuzz/page_target.hpp"

#include "core/session/kept/page_identity.hpp"
#include "core/session/kept/page_record.hpp"
#include "core/session/kept/slot_file.hpp"
#include "tests/fuzz/promises.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace session;

// That of the seeds.
const std::vector<uint64_t> kPageBytes = {16, 8};
PageIdentity seed_identity() {
    return {{{"format", "1"}, {"model", "seed"}}};
}

void use_record(std::span<const std::byte> input) {
    const auto record = attempt([&] { return parse_record(input.first(std::min(input.size(), kRecordBytes))); });
    if (!record) return;
    const auto written = write_record(*record);
    expect(std::ranges::equal(written, input.first(kRecordBytes)), "the same record");
    expect(parse_path(path_text(record->path())) == record->path(), "the same path");
}

void use_text(std::string_view text) {
    if (const auto path = parse_path(text)) expect(path_text(*path) == text, "a path has one text");
    const auto identity = attempt([&] { return parse_identity(text); });
    if (!identity) return;
    expect(identity->text() == text, "the same identity");
    expect(!identity->difference(*identity), "an identity is like itself");
    const bool same = std::ranges::is_permutation(identity->properties, seed_identity().properties);
    expect(identity->difference(seed_identity()).has_value() != same, "what differs is told");
}

void use_slot(std::span<const std::byte> input) {
    const PageIdentity identity = seed_identity();
    attempt([&] {
        const gguf::MemorySource source(input, "slot");
        SlotReader reader(source, identity, kPageBytes);
        SlotPage page;
        uint32_t tokens = 0;
        while (reader.next(page)) {
            expect(page.record.group < kPageBytes.size(), "group of a page");
            expect(page.bytes.size() == kPageBytes[page.record.group], "bytes of a page");
            expect(page.record.count >= 1 && page.record.count <= TSR_PAGE_TOKENS, "tokens of a page");
            if (page.record.group == 0) tokens += page.record.count;
        }
        expect(tokens == reader.tokens(), "tokens of a slot");
        return tokens;
    });
}

template <typename T>
T get(std::span<const std::byte> bytes, size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

void put_checksum(std::span<std::byte> bytes, size_t at, std::span<const std::byte> of) {
    const uint32_t checksum = checksum_of(of);
    std::memcpy(bytes.data() + at, &checksum, sizeof checksum);
}

// Damage that checksums find is not what hostile files have.
std::vector<std::byte> with_checksums_of_record(std::span<const std::byte> input) {
    std::vector<std::byte> bytes(input.begin(), input.end());
    if (bytes.size() >= kRecordBytes) put_checksum(bytes, kRecordBytes - 4, std::span(bytes).first(kRecordBytes - 4));
    return bytes;
}

std::vector<std::byte> with_checksums_of_slot(std::span<const std::byte> input) {
    constexpr size_t kHeader = 32;
    std::vector<std::byte> bytes(input.begin(), input.end());
    if (bytes.size() < kHeader) return bytes;
    const auto whole = std::span(bytes);
    const uint64_t identity = get<uint32_t>(bytes, 12);
    if (identity > bytes.size() - kHeader) return bytes;
    put_checksum(whole, 24, whole.subspan(kHeader, identity));
    put_checksum(whole, 28, whole.first(28));
    for (size_t at = kHeader + identity; bytes.size() - at >= kRecordBytes;) {
        const auto record = whole.subspan(at, kRecordBytes);
        const uint64_t size = std::min<uint64_t>(get<uint64_t>(record, 24), bytes.size() - at - kRecordBytes);
        put_checksum(record, 20, whole.subspan(at + kRecordBytes, size));
        put_checksum(record, kRecordBytes - 4, record.first(kRecordBytes - 4));
        at += kRecordBytes + size;
    }
    return bytes;
}

}  // namespace

void run_page(std::span<const std::byte> input) {
    use_record(input);
    use_record(with_checksums_of_record(input));
    use_text({reinterpret_cast<const char*>(input.data()), input.size()});
    use_slot(input);
    use_slot(with_checksums_of_slot(input));
}

}  // namespace tessera::fuzz
