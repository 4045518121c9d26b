// A cache page as a file has it: which tokens it is of, and its bytes with their checksum.
#pragma once

#include <tessera/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera::session {

// Names all tokens from the beginning of a text to the end of a page: the first half of a SHA-256 over the tokens of
// the page and the path before it. Who uses what such a name finds compares the tokens, too.
using PathId = std::array<uint8_t, 16>;

// Where the paths of a space begin. Without the `secret` nobody can tell which space it is of.
PathId root_path(std::span<const std::byte> secret, std::string_view space);
// `tokens`: 1 to TSR_PAGE_TOKENS.
PathId path_after(const PathId& before, std::span<const int32_t> tokens);

// 32 hexadecimal digits in small letters, and back; nothing for any other text.
std::string path_text(const PathId& path);
std::optional<PathId> parse_path(std::string_view text) noexcept;

using Digest = std::array<uint8_t, 32>;  // a SHA-256
Digest digest_of(std::string_view text);

inline constexpr uint32_t kPageFormat = 1;

struct PageRecord {
    Digest identity{};  // of what computed it: PageIdentity::digest
    PathId parent{};    // of the page before it, or the root
    uint32_t group = 0;
    uint32_t count = 0;                             // of tokens
    std::array<int32_t, TSR_PAGE_TOKENS> tokens{};  // zeros behind them
    uint64_t bytes = 0;                             // that follow the record
    uint32_t checksum = 0;                          // of these, checksum_of()

    std::span<const int32_t> own_tokens() const { return std::span(tokens).first(count); }
    PathId path() const { return path_after(parent, own_tokens()); }
    bool operator==(const PageRecord&) const = default;
};

inline constexpr size_t kRecordBytes = 384;

// CRC-32 as zlib has it: finds every damage of up to 32 bits in a row, and misses one in four thousand million others.
uint32_t checksum_of(std::span<const std::byte> bytes) noexcept;

std::array<std::byte, kRecordBytes> write_record(const PageRecord& record);
// `bytes`: kRecordBytes. Throws Error: TSR_CORRUPT_DATA that says what is wrong, TSR_UNSUPPORTED for another format's
// number.
PageRecord parse_record(std::span<const std::byte> bytes);

}  // namespace tessera::session
