#include "core/base/error.hpp"
#include "core/session/sampling_stop_strings.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

namespace tessera::session {
namespace {

using Strings = std::vector<std::string>;

TEST(StopStrings, HoldsBackWhatMayBecomeAMatch) {
    StopStrings stop(Strings{"</s>", "User:"});
    std::string out;
    EXPECT_FALSE(stop.push("Hello <", out));
    EXPECT_EQ(out, "Hello ");
    EXPECT_FALSE(stop.push("/", out));
    EXPECT_EQ(out, "Hello ");
    EXPECT_FALSE(stop.push("b> U", out));
    EXPECT_EQ(out, "Hello </b> ");
    EXPECT_TRUE(stop.push("ser: more", out));
    EXPECT_EQ(out, "Hello </b> ");
    EXPECT_EQ(stop.match(), 1);
    EXPECT_TRUE(stop.push("x", out));
    stop.finish(out);
    EXPECT_EQ(out, "Hello </b> ");
    stop.reset();
    EXPECT_FALSE(stop.stopped());
    EXPECT_FALSE(stop.push("x</", out));
    stop.finish(out);
    EXPECT_EQ(out, "Hello </b> x</");
}

TEST(StopStrings, TheMatchThatEndsFirstWins) {
    const auto run = [](const Strings& strings, const std::string& text) {
        StopStrings stop(strings);
        std::string out;
        for (const char c : text) stop.push(std::string(1, c), out);
        stop.finish(out);
        return std::pair(out, stop.match());
    };
    EXPECT_EQ(run({"abcd", "bc"}, "xabcd"), std::pair(std::string("xa"), 1));
    EXPECT_EQ(run({"bc", "abc"}, "xabcd"), std::pair(std::string("x"), 1));
    EXPECT_EQ(run({"aab"}, "aaaab!"), std::pair(std::string("aa"), 0));
    EXPECT_EQ(run({"a", "a"}, "ba"), std::pair(std::string("b"), 0));
    EXPECT_EQ(run({}, "anything"), std::pair(std::string("anything"), -1));
    EXPECT_EQ(run({"\n\n"}, "a\nb\n"), std::pair(std::string("a\nb\n"), -1));
}

TEST(StopStrings, EmptyStringIsAnError) {
    EXPECT_THROW(StopStrings(Strings{"a", ""}), Error);
}

// Against a search of the whole text, with the text cut anywhere.
TEST(StopStrings, EqualsAPlainSearchHoweverTheTextIsCut) {
    std::mt19937 random(11);
    for (int round = 0; round < 3000; ++round) {
        Strings strings(1 + random() % 4);
        for (std::string& one : strings)
            for (size_t i = 1 + random() % 4; i > 0; --i) one += static_cast<char>('a' + random() % 2);
        std::string text;
        for (size_t i = random() % 20; i > 0; --i) text += static_cast<char>('a' + random() % 3);
        size_t end = std::string::npos, begin = text.size();
        for (const std::string& one : strings) {
            const size_t at = text.find(one);
            if (at == std::string::npos) continue;
            if (at + one.size() < end || (at + one.size() == end && at < begin)) {
                end = at + one.size();
                begin = at;
            }
        }
        StopStrings stop(strings);
        std::string out;
        for (size_t at = 0; at < text.size();) {
            const size_t size = 1 + random() % 4;
            stop.push(std::string_view(text).substr(at, size), out);
            // What is shown must never be taken back.
            ASSERT_TRUE(text.starts_with(out));
            ASSERT_LE(out.size(), end == std::string::npos ? text.size() : begin);
            at += size;
        }
        stop.finish(out);
        EXPECT_EQ(out, text.substr(0, begin));
        EXPECT_EQ(stop.stopped(), end != std::string::npos);
    }
}

TEST(StopStrings, LinearInTheText) {
    Strings strings;
    for (int i = 0; i < 500; ++i) strings.push_back(std::string(1000, 'a') + "b" + std::to_string(i));
    const std::string part(1 << 16, 'a');
    const auto cost = [&](const Strings& looked_for, size_t held) {
        StopStrings stop(looked_for);
        std::string out;
        const std::clock_t start = std::clock();  // of this process: others may keep the machine busy
        for (int i = 0; i < 64; ++i) EXPECT_FALSE(stop.push(part, out));
        EXPECT_EQ(out.size(), 64 * part.size() - held);
        return static_cast<double>(std::clock() - start);
    };
    const double one = cost({"ab"}, 1);
    EXPECT_LT(cost(strings, 1000), 40 * (one + CLOCKS_PER_SEC / 1000)) << "500 strings of 1,000 letters";
}

}  // namespace
}  // namespace tessera::session
