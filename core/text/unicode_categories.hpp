// General categories of Unicode, of one fixed version, so that a text is the same tokens on every machine.
// testing/make_unicode_categories.py writes the table.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::text {

// In the order of the table's numbers.
enum class Category : uint8_t {
    kLu,
    kLl,
    kLt,
    kLm,
    kLo,
    kMn,
    kMc,
    kMe,
    kNd,
    kNl,
    kNo,
    kPc,
    kPd,
    kPs,
    kPe,
    kPi,
    kPf,
    kPo,
    kSm,
    kSc,
    kSk,
    kSo,
    kZs,
    kZl,
    kZp,
    kCc,
    kCf,
    kCs,
    kCo,
    kCn,
};

// first code point << 8 | category, wherever the category changes; the last run ends at U+10FFFF.
std::span<const uint32_t> category_runs() noexcept;

// Where the script Han begins and ends, in turn.
std::span<const uint32_t> han_edges() noexcept;

extern const char* const kUnicodeVersion;

}  // namespace tessera::text
