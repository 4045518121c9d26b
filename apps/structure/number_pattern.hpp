// Numbers within bounds, as regular expressions.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::structure {

// What numbers lie in, both ends included; at most kMostNumber from zero.
struct NumberRange {
    int64_t least, most;
};
inline constexpr int64_t kMostNumber = 999'999'999'999'999;
inline constexpr NumberRange kAllNumbers{-kMostNumber, kMostNumber};

// Whole numbers in the range, without leading zeros; empty if there are none.
std::string integer_pattern(NumberRange range);
// Numbers with and without a fraction: `whole` has those that are whole, and `all` the others, none of which is one of
// its ends. Without bounds also exponents. Empty if there are none.
std::string number_pattern(NumberRange whole, NumberRange all);

}  // namespace tessera::structure
