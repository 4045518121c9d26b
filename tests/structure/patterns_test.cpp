// Patterns that are made for grammars: numbers within bounds, and patterns that all of a text matches.
#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/number_pattern.hpp"
#include "core/base/error.hpp"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <random>
#include <regex>
#include <string>
#include <tuple>
#include <utility>

namespace tessera::structure {
namespace {

TEST(NumberPattern, HasTheWholeNumbersOfARange) {
    std::mt19937 random(1);
    for (int round = 0; round < 60; ++round) {
        int64_t least = static_cast<int64_t>(random() % 3000) - 1500,
                most = static_cast<int64_t>(random() % 3000) - 1500;
        if (round == 0) least = most = 0;
        if (round == 1) std::tie(least, most) = std::pair<int64_t, int64_t>(-10, 100);
        const std::string pattern = integer_pattern({least, most});
        EXPECT_EQ(pattern.empty(), least > most);
        if (pattern.empty()) continue;
        const std::regex regex(pattern);
        for (int64_t n = -1600; n <= 1600; n += round < 10 ? 1 : 7)
            EXPECT_EQ(std::regex_match(std::to_string(n), regex), n >= least && n <= most) << n << " " << pattern;
        for (const char* const other : {"-0", "007", "1.0", "", "+1"}) EXPECT_FALSE(std::regex_match(other, regex));
    }
    const std::regex all(integer_pattern(kAllNumbers));
    EXPECT_TRUE(std::regex_match("-999999999999999", all));
    EXPECT_FALSE(std::regex_match("1000000000000000", all));
}

TEST(NumberPattern, FractionsLieInTheRange) {
    std::mt19937 random(2);
    for (int round = 0; round < 60; ++round) {
        const int64_t least = static_cast<int64_t>(random() % 60) - 30,
                      most = least + static_cast<int64_t>(random() % 30);
        const std::regex regex(number_pattern({least, most}, {least, most}));
        size_t found = 0;
        for (int n = -700; n <= 700; ++n) {
            const double value = n / 10.0;
            const bool matches = std::regex_match(fmt::format("{:.1f}", value), regex);
            EXPECT_LE(matches, value >= static_cast<double>(least) && value <= static_cast<double>(most)) << value;
            found += matches ? 1 : 0;
        }
        EXPECT_GE(found, 10 * static_cast<size_t>(most - least)) << least << " to " << most;
    }
    // An end that is none of them.
    const std::regex above(number_pattern({1, 2}, {0, 2}));
    for (const char* const good : {"0.5", "0.001", "1", "1.0", "1.999", "2"})
        EXPECT_TRUE(std::regex_match(good, above));
    for (const char* const bad : {"0", "0.0", "0.000", "2.1", "-0.5"}) EXPECT_FALSE(std::regex_match(bad, above));
    EXPECT_EQ(number_pattern({1, 0}, {0, 0}), "");
}

TEST(WholePattern, MatchesTextsOfWhichAPartMatches) {
    const auto matches = [](std::string_view pattern, const std::string& text) {
        std::string whole = whole_pattern(translate_pattern(pattern));
        // std::regex has no flags in groups, nor braces in escapes.
        for (size_t at; (at = whole.find("(?s:.*)")) != whole.npos;) whole.replace(at, 7, "[^]*");
        whole = std::regex_replace(whole, std::regex(R"(\\x\{([0-9a-f]{2})\})"), "\\x$1");
        return std::regex_match(text, std::regex(whole));
    };
    EXPECT_TRUE(matches("^a+$", "aa"));
    EXPECT_FALSE(matches("^a+$", "aab"));
    EXPECT_TRUE(matches("a+", "xaay"));
    EXPECT_TRUE(matches("^a|b$", "axx"));
    EXPECT_TRUE(matches("^a|b$", "xxb"));
    EXPECT_FALSE(matches("^a|b$", "xax"));
    EXPECT_TRUE(matches("^(a|b)$", "b"));
    EXPECT_TRUE(matches("[$^|]", "x^y"));
    EXPECT_TRUE(matches("^\\^\\$$", "^$"));
    EXPECT_TRUE(matches("", "anything"));
    for (const char* const inner : {"a^b", "(^a)", "a$b", "(a$)b"})
        EXPECT_THROW(whole_pattern(translate_pattern(inner)), Error) << inner;
}

}  // namespace
}  // namespace tessera::structure
