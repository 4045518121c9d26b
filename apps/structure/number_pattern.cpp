#include "apps/structure/number_pattern.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::structure {
namespace {

// That is not zero.
constexpr std::string_view kFraction = "\\.[0-9]{0,15}[1-9]";

void add(std::string& all, const std::string& one) {
    if (one.empty()) return;
    if (!all.empty()) all += '|';
    all += one;
}

std::string digits(char first, char last) {
    return first == last ? std::string(1, first) : fmt::format("[{}-{}]", first, last);
}

std::string any_digits(size_t count) {
    return count == 0 ? "" : count == 1 ? "[0-9]" : fmt::format("[0-9]{{{}}}", count);
}

bool all(std::string_view text, char c) {
    return text.find_first_not_of(c) == text.npos;
}

// Numbers of as many digits as both have, from one to the other.
std::string between(std::string_view least, std::string_view most) {
    if (least.empty()) return "";
    if (all(least, '0') && all(most, '9')) return any_digits(least.size());
    const std::string_view low = least.substr(1), high = most.substr(1);
    char first = least[0], last = most[0];
    if (first == last) return first + ("(?:" + between(low, high) + ")");
    std::string made;
    const std::string nines(low.size(), '9'), zeros(low.size(), '0');
    const std::string_view begin = least, end = most;
    if (!all(low, '0')) {
        add(made, begin[0] + ("(?:" + between(low, nines) + ")"));
        ++first;
    }
    if (!all(high, '9')) --last;
    if (first <= last) add(made, digits(first, last) + any_digits(low.size()));
    if (!all(high, '9')) add(made, end[0] + ("(?:" + between(zeros, high) + ")"));
    return made;
}

// Of numbers that are not negative.
std::string magnitudes(int64_t least, int64_t most) {
    std::string made;
    for (int64_t low = 0, high = 9; low <= most; low = high + 1, high = high * 10 + 9)
        if (high >= least)
            add(made, between(std::to_string(std::max(low, least)), std::to_string(std::min(high, most))));
    return made;
}

NumberRange clamped(NumberRange range) {
    return {std::max(range.least, -kMostNumber), std::min(range.most, kMostNumber)};
}

std::string group(const std::string& text) {
    return "(?:" + text + ")";
}

}  // namespace

std::string integer_pattern(NumberRange range) {
    const auto [least, most] = clamped(range);
    if (least > most) return "";
    std::string made;
    if (least < 0) add(made, "-" + group(magnitudes(std::max<int64_t>(1, -most), -least)));
    if (most >= 0) add(made, magnitudes(std::max<int64_t>(0, least), most));
    return group(made);
}

std::string number_pattern(NumberRange whole, NumberRange all) {
    const auto [least, most] = clamped(all);
    if (least == kAllNumbers.least && most == kAllNumbers.most)
        return "(?:-?(?:0|[1-9][0-9]{0,14})(?:\\.[0-9]{1,16})?(?:[eE][+-]?[0-9]{1,2})?)";
    std::string made = integer_pattern(whole);
    if (!made.empty()) made += "(?:\\.0)?";
    // With a fraction, n stands for all from n to n + 1, and -n for all from -n - 1 to -n.
    if (const int64_t first = std::max<int64_t>(0, least); first <= most - 1)
        add(made, group(magnitudes(first, most - 1)) + std::string(kFraction));
    if (const int64_t first = std::max<int64_t>(0, -most); first <= -least - 1)
        add(made, "-" + group(magnitudes(first, -least - 1)) + std::string(kFraction));
    return made.empty() ? made : group(made);
}

}  // namespace tessera::structure
