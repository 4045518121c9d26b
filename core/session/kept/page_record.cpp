#include "core/session/kept/page_record.hpp"

#include "core/base/error.hpp"

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

namespace tessera::session {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

constexpr std::string_view kMagic("TSRPAGE\0", 8);

class Sha256 {
  public:
    Sha256() { good_ = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1; }

    void add(std::span<const std::byte> bytes) {
        good_ = good_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
    }

    Digest digest() {
        Digest digest;
        if (!good_ || EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) != 1)
            fail(TSR_INTERNAL, "the cryptographic library could not compute SHA-256");
        return digest;
    }

  private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), EVP_MD_CTX_free};
    bool good_;
};

PathId first_half(const Digest& digest) {
    PathId path;
    std::copy_n(digest.begin(), path.size(), path.begin());
    return path;
}

// Where the fields lie.
struct Fields {
    char magic[8];
    uint32_t format;
    uint32_t group;
    uint32_t count;
    uint32_t checksum;
    uint64_t bytes;
    uint8_t identity[32];
    uint8_t parent[16];
    uint8_t zeros[16];
    int32_t tokens[TSR_PAGE_TOKENS];
    uint8_t more_zeros[28];
    uint32_t own_checksum;  // of all before it
};
static_assert(sizeof(Fields) == kRecordBytes && TSR_PAGE_TOKENS == 64);

uint32_t own_checksum(const Fields& fields) {
    return checksum_of(std::as_bytes(std::span(&fields, 1)).first(offsetof(Fields, own_checksum)));
}

bool all_zero(std::span<const uint8_t> bytes) {
    return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

}  // namespace

Digest digest_of(std::string_view text) {
    Sha256 hash;
    hash.add(std::as_bytes(std::span(text)));
    return hash.digest();
}

PathId root_path(std::span<const std::byte> secret, std::string_view space) {
    Sha256 hash;
    hash.add(secret);
    hash.add(std::as_bytes(std::span(space)));
    return first_half(hash.digest());
}

PathId path_after(const PathId& before, std::span<const int32_t> tokens) {
    Sha256 hash;
    hash.add(std::as_bytes(std::span(before)));
    hash.add(std::as_bytes(tokens));
    return first_half(hash.digest());
}

std::string path_text(const PathId& path) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const uint8_t byte : path) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

std::optional<PathId> parse_path(std::string_view text) noexcept {
    PathId path{};
    if (text.size() != 2 * path.size()) return std::nullopt;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        int digit;
        if (c >= '0' && c <= '9') {
            digit = c - '0';
        } else if (c >= 'a' && c <= 'f') {
            digit = c - 'a' + 10;
        } else {
            return std::nullopt;
        }
        path[i / 2] = static_cast<uint8_t>(path[i / 2] << 4 | digit);
    }
    return path;
}

uint32_t checksum_of(std::span<const std::byte> bytes) noexcept {
    return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::array<std::byte, kRecordBytes> write_record(const PageRecord& record) {
    Fields fields{};
    std::copy_n(kMagic.data(), kMagic.size(), fields.magic);
    fields.format = kPageFormat;
    fields.group = record.group;
    fields.count = record.count;
    fields.checksum = record.checksum;
    fields.bytes = record.bytes;
    std::ranges::copy(record.identity, fields.identity);
    std::ranges::copy(record.parent, fields.parent);
    std::ranges::copy(record.tokens, fields.tokens);
    fields.own_checksum = own_checksum(fields);
    return std::bit_cast<std::array<std::byte, kRecordBytes>>(fields);
}

PageRecord parse_record(std::span<const std::byte> bytes) {
    Fields fields;
    if (bytes.size() != sizeof fields)
        fail(TSR_CORRUPT_DATA, "a page's record has {} bytes; found {}", sizeof fields, bytes.size());
    std::memcpy(&fields, bytes.data(), sizeof fields);
    if (std::string_view(fields.magic, sizeof fields.magic) != kMagic)
        fail(TSR_CORRUPT_DATA, "it does not begin as a page does");
    if (fields.own_checksum != own_checksum(fields))
        fail(TSR_CORRUPT_DATA, "the checksum of a page's record is {:08x}, expected {:08x}", own_checksum(fields),
             fields.own_checksum);
    if (fields.format != kPageFormat)
        fail(TSR_UNSUPPORTED, "format {} of pages; this version reads and writes {}", fields.format, kPageFormat);
    if (fields.count < 1 || fields.count > TSR_PAGE_TOKENS)
        fail(TSR_CORRUPT_DATA, "a page of {} tokens; 1 to {} are possible", fields.count, TSR_PAGE_TOKENS);
    const auto unused = std::span(fields.tokens).subspan(fields.count);
    if (!all_zero(fields.zeros) || !all_zero(fields.more_zeros) ||
        std::ranges::any_of(unused, [](int32_t token) { return token != 0; }))
        fail(TSR_CORRUPT_DATA, "bytes of a page's record that have no use are not zero");
    PageRecord record;
    record.group = fields.group;
    record.count = fields.count;
    record.checksum = fields.checksum;
    record.bytes = fields.bytes;
    std::ranges::copy(fields.identity, record.identity.begin());
    std::ranges::copy(fields.parent, record.parent.begin());
    std::ranges::copy(fields.tokens, record.tokens.begin());
    return record;
}

}  // namespace tessera::session
