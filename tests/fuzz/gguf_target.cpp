#include "tests/fuzz/gguf_target.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/gguf/header.hpp"
#include "core/gguf/split.hpp"
#include "core/gguf/writer.hpp"
#include "core/graph/types.hpp"
#include "tests/fuzz/promises.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace gguf;

constexpr uint64_t kSparseBytes = 8192;  // zeros after the input, so that small inputs can hold whole tensors

void use_metadata(const Metadata& metadata) {
    for (const Metadata::Entry& entry : metadata.entries()) {
        const std::string& key = entry.key;  // names that lambdas may capture
        const Value& value = entry.value;
        expect(metadata.find(key) == &value, "every key is found");
        expect(is_utf8(to_text(value)) && !describe_type(value).empty(), "text of a value");
        attempt([&] { return metadata.get_u32(key); });
        attempt([&] { return metadata.get_i32(key); });
        attempt([&] { return metadata.get_u64(key); });
        attempt([&] { return metadata.get_f32(key); });
        attempt([&] { return metadata.get_bool(key); });
        attempt([&] { return metadata.get_string(key); });
        attempt([&] { return metadata.get_strings(key).size(); });
        attempt([&] { return metadata.get_array<int32_t>(key); });
        attempt([&] { return metadata.get_array<float>(key); });
        attempt([&] { return metadata.get_array<bool>(key); });
    }
}

void use_tensors(const Header& header) {
    for (const TensorEntry& a : header.tensors) {
        expect(a.rank >= 1 && a.rank <= kMaxRank && is_utf8(a.name) && !a.name.empty(), "name and rank");
        expect(a.elements() >= 1 && a.elements() <= INT64_MAX, "number of elements");
        expect(a.bytes == a.rows() * row_bytes(a.type, a.dims[0]) && a.bytes_per_row() * a.rows() == a.bytes,
               "bytes of rows");
        expect(a.offset >= header.data_begin && (a.offset - header.data_begin) % header.alignment == 0, "offset");
        expect(a.bytes <= header.file_bytes && a.offset <= header.file_bytes - a.bytes, "end in the file");
        for (const TensorEntry& b : header.tensors) {
            expect(&a == &b || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset, "places apart");
            expect(&a == &b || a.name != b.name, "names apart");
        }
    }
}

// What was read can be written, and what was written is read as the same. (Bytes are compared, as NaN differs from
// NaN.)
void use_writer(Header header) {
    const auto first = write_header(header.metadata, header.tensors);
    const uint64_t end =
        header.tensors.empty() ? first.size() : header.tensors.back().offset + header.tensors.back().bytes;
    Header again = parse_header(MemorySource(first, "again", end));
    const bool same = std::ranges::equal(again.tensors, header.tensors);
    expect(same, "the same tensors");
    expect(write_header(again.metadata, again.tensors) == first, "the same header");
}

std::optional<Header> use_file(std::span<const std::byte> bytes, uint64_t size) {
    auto header = attempt([&] { return parse_header(MemorySource(bytes, "input", size)); });
    if (header) {
        use_metadata(header->metadata);
        use_tensors(*header);
        use_writer(*header);
        attempt([&] { return join_shards({*header}).tensors.size(); });
    }
    return header;
}

void use_split(std::span<const std::byte> first, std::span<const std::byte> second) {
    auto a = attempt([&] { return parse_header(MemorySource(first, "first", first.size() + kSparseBytes)); });
    auto b = attempt([&] { return parse_header(MemorySource(second, "second", second.size() + kSparseBytes)); });
    if (!a || !b) return;
    const size_t tensors = a->tensors.size() + b->tensors.size();
    const auto all = attempt([&] { return join_shards({*a, *b}); });
    if (!all) return;
    expect(all->tensors.size() == tensors, "tensors of both parts");
    for (size_t i = 0; i < tensors; ++i)
        expect(all->tensors[i].file == (i < a->tensors.size() ? 0u : 1u), "part of a tensor");
}

void use_text(std::string_view text) {
    attempt([&] { return parse_override(text); });
    if (const auto name = parse_split_name(text)) expect(split_file_name(*name) == text, "name of a part");
    expect(is_utf8(printable(text)), "printable text");
}

}  // namespace

void run_gguf(std::span<const std::byte> input) {
    const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
    use_file(input, input.size());
    use_file(input, input.size() + kSparseBytes);
    if (const size_t next = text.find("GGUF", 1); next != text.npos) use_split(input.first(next), input.subspan(next));
    use_text(text);
}

}  // namespace tessera::fuzz
