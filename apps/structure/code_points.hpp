// Sets of code points.
#pragma once

#include <bitset>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::structure {

inline constexpr uint32_t kLastCodePoint = 0x10ffff;

// Ranges, both ends included, in rising order; none touches another.
using CodePoints = std::vector<std::pair<uint32_t, uint32_t>>;

// Of ranges in any order.
CodePoints joined(CodePoints ranges);
// All others.
CodePoints others_than(const CodePoints& set);
// But those of no character, the halves of pairs in UTF-16.
CodePoints without_surrogates(const CodePoints& set);
using Bytes = std::bitset<256>;
// Those that they begin with in UTF-8.
Bytes first_bytes(const CodePoints& set);
// Whether they have one in common.
bool meet(const CodePoints& a, const CodePoints& b) noexcept;

}  // namespace tessera::structure
