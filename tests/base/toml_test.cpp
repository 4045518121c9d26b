#include "core/base/toml.hpp"

#include "core/base/error.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string repeated(std::string_view part, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += part;
    return text;
}

std::string refusal(const std::string& text) {
    try {
        TomlFile(text, "some.toml");
        return "taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_CORRUPT_DATA);
        return error.what();
    }
}

TEST(Toml, LevelsAreBoundedBeforeParsing) {
    const std::string keys = repeated("a.", 50000) + "a";
    EXPECT_THAT(refusal("# first\n" + keys + " = 1\n"), AllOf(HasSubstr("some.toml:2: "), HasSubstr("16 parts")));
    EXPECT_THAT(refusal("[" + keys + "]\n"), HasSubstr("16 parts"));
    EXPECT_THAT(refusal("[[" + keys + "]]\n"), HasSubstr("16 parts"));
    EXPECT_THAT(refusal("x = {" + keys + " = 1}\n"), HasSubstr("16 parts"));
    EXPECT_THAT(refusal(repeated("\"a\" . ", 50000) + "a = 1\n"), HasSubstr("16 parts"));
    EXPECT_THAT(refusal("x = " + repeated("[", 100000)), HasSubstr("within each other"));
    EXPECT_THAT(refusal("x = " + repeated("{a=", 100000)), HasSubstr("within each other"));
    EXPECT_THAT(refusal("x = " + repeated("[\n", 100000)), HasSubstr("within each other"));
    EXPECT_THAT(refusal("x = [" + repeated("1,", 100000) + "]"), HasSubstr("8192 values"));
    EXPECT_THAT(refusal(std::string(5000, 'k') + " = 1"), HasSubstr("1024 bytes"));
    // Quotes before the end of a string of several lines do not hide what follows it.
    EXPECT_THAT(refusal("x = [\"\"\"a\"\"\"\"\", " + repeated("[", 100000)), HasSubstr("within each other"));
}

TEST(Toml, WhatIsInStringsAndCommentsIsNoLevel) {
    const std::string many = repeated("[.{,=", 20000);
    EXPECT_EQ(refusal("# " + many + "\n"), "taken");
    EXPECT_EQ(refusal("a = '" + many + "'\n"), "taken");
    EXPECT_EQ(refusal("a = \"\\\"" + many + "\"\n"), "taken");
    EXPECT_EQ(refusal("a = '''\n'" + many + "'''\n"), "taken");
    EXPECT_EQ(refusal("a = \"\"\"\n\"" + many + "\\\"\"\"\"\n"), "taken");
    EXPECT_EQ(refusal("a = [" + repeated("1.5, ", 1000) + "]\n"), "taken");
    // A string that does not end is told by the parser.
    EXPECT_THAT(refusal("a = '" + many), HasSubstr("not valid TOML"));
    EXPECT_THAT(refusal("a = \"\\"), HasSubstr("not valid TOML"));
}

TEST(Toml, OnlyRegularFilesAreRead) {
    const test::TemporaryFolder folder;
    const auto why = [](const std::filesystem::path& path) -> std::string {
        try {
            TomlFile::read(path);
            return "taken";
        } catch (const Error& error) {
            return error.what();
        }
    };
    const std::filesystem::path pipe = folder.path() / "pipe.toml";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THAT(why(pipe), HasSubstr("expected a regular file"));
    EXPECT_THAT(why("/dev/zero"), HasSubstr("expected a regular file"));
    EXPECT_THAT(why(folder.path()), HasSubstr("found a folder"));
}

}  // namespace
}  // namespace tessera
