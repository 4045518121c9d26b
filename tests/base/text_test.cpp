#include "core/base/text.hpp"

#include "core/base/log.hpp"
#include "core/base/nearest.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera {
namespace {

TEST(Text, Mebibytes) {
    EXPECT_EQ(mebibytes(0), "0.0 MiB");
    EXPECT_EQ(mebibytes(uint64_t{4392} << 20), "4392.0 MiB");
    EXPECT_EQ(mebibytes(1'223'268'761), "1166.6 MiB");
}

TEST(Text, Utf8) {
    for (const char* good : {"", "plain", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                             "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        EXPECT_TRUE(is_utf8(good)) << good;
    }
    for (const char* bad :
         {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xE1\x80", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xC3", "\xE2\x82\xC2"}) {
        EXPECT_FALSE(is_utf8(bad)) << printable(bad);
    }
}

TEST(Text, PrintableEscapesWhatATerminalWouldObey) {
    EXPECT_EQ(printable("plain \xC3\xA9 \xE2\x82\xAC"), "plain \xC3\xA9 \xE2\x82\xAC");
    EXPECT_EQ(printable(std::string("a\0b\x1B[2J\x7F\n", 9)), "a\\x00b\\x1b[2J\\x7f\\x0a");
    EXPECT_EQ(printable("\xC2\x9B"
                        "1m"),
              "\\xc2\\x9b1m");
    EXPECT_EQ(printable("\xFF\xC3"), "\\xff\\xc3");
}

TEST(Text, PrintableEndsAtTheLimit) {
    EXPECT_EQ(printable("abcdef", 6), "abcdef");
    EXPECT_EQ(printable("abcdef", 5), "abcde...");
    EXPECT_EQ(printable("abc\xE2\x82\xAC", 5), "abc...");
    EXPECT_EQ(printable("abc\xFF", 6), "abc...");
}

TEST(Text, WrapsAtBlanks) {
    EXPECT_EQ(wrapped("aaa bb cccc", 0, 2, 6), "aaa bb\n  cccc");
    EXPECT_EQ(wrapped("aaa bb cccc", 3, 2, 6), "aaa\n  bb\n  cccc");
    EXPECT_EQ(wrapped("a-word-too-long b", 0, 1, 4), "a-word-too-long\n b");
    EXPECT_EQ(wrapped("", 0, 2, 6), "");
}

TEST(Nearest, FindsTheNameThatWasMeant) {
    const std::vector<std::string_view> names = {"threads", "plugins", "devices"};
    EXPECT_EQ(nearest_name("thread", names), "threads");
    EXPECT_EQ(nearest_name("deivces", names), "devices");
    EXPECT_EQ(nearest_name("temperature", names), "");
    EXPECT_EQ(did_you_mean("plugin", names), " (did you mean 'plugins'?)");
    EXPECT_EQ(did_you_mean("nothing", names), "");
}

TEST(Log, HasItsNameAndIsQuietByDefault) {
    EXPECT_EQ(log().name(), "tessera");
    EXPECT_EQ(log().level(), spdlog::level::warn);
    EXPECT_EQ(&log(), &log());
}

TEST(Text, SizesAndCounts) {
    EXPECT_EQ(size_text(12), "12 bytes");
    EXPECT_EQ(size_text(2048), "2.0 KiB");
    EXPECT_EQ(size_text(uint64_t{4392} << 20), "4392.0 MiB");
    EXPECT_EQ(size_text(uint64_t{376} << 30), "376.0 GiB");
    EXPECT_EQ(grouped(1234567), "1,234,567");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(counted(1, "layer"), "1 layer");
    EXPECT_EQ(counted(2000, "token"), "2,000 tokens");
}

}  // namespace
}  // namespace tessera
