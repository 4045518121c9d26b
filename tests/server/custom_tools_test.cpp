// Custom tools: the function that stands for each, and the input in the arguments that a model writes.
#include "apps/server/custom_tools.hpp"

#include "apps/server/tool_input.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tessera::server {
namespace {

namespace json = boost::json;

TEST(CustomTools, InputIsReadAsFarAsItGoes) {
    const struct {
        std::string_view arguments, input;
    } cases[] = {
        {R"({"input": "*** Beg)", "*** Beg"},
        {R"({"input":"a\"b\"\n\u00e4\ud83d\ude00"})", "a\"b\"\n\u00e4\U0001f600"},
        {" { \"input\" : \"\xc3\xa4\"\n} ", "\xc3\xa4"},
        {R"({"inp)", ""},
        {R"({"input": "a\)", "a"},
        {R"({"input": "a\ud83d)", "a"},
        {R"({"input": "a\ud83d\u)", "a"},
        {R"({"input": "a")", "a"},
        {R"({"input": "a", "more": "b"})", "a"},
        {R"({"more": "b", "input": "a"})", "a"},
        {"{\"input\": \"a\nb\"}", "a\nb"},
        {R"({"input": "\d\ud83dx"})", R"(\d\ud83dx)"},
        {R"({"input": "say "hi" twice"})", R"(say "hi" twice"})"},
        {R"({"city": "Paris"})", R"({"city": "Paris"})"},
        {R"({"city": "Par)", R"({"city": "Par)"},
        {"*** Begin", "*** Begin"},
        {"", ""},
    };
    for (const auto& [arguments, input] : cases) {
        EXPECT_EQ(input_of_arguments(arguments), input) << arguments;
        // By bytes of texts without others: parts are whole characters.
        if (arguments.find('\xc3') != arguments.npos) continue;
        InputReader reader;
        std::string made;
        for (const char byte : arguments) made += reader.push(std::string_view(&byte, 1));
        EXPECT_EQ(made + reader.finish(), input) << arguments;
    }
    const std::string given = "\"\\\n\x01\u00e4";
    EXPECT_EQ(input_of_arguments(arguments_of_input(given)), given);
    InputReader reader;
    EXPECT_EQ(reader.push(R"({"input": "*** Beg)"), "*** Beg");
    EXPECT_EQ(reader.push(R"(in\n\)"), "in\n");
    EXPECT_EQ(reader.push(R"(n"})"), "\n");
}

TEST(CustomTools, PatternsMayHaveTheirEnds) {
    const auto pattern = [](std::string_view definition) {
        CustomTools custom;
        const json::value read =
            json::parse(custom_tool("f", "", {InputGrammar::Syntax::kRegex, definition}, custom).parameters);
        EXPECT_EQ(custom, (CustomTools{{"f", ""}}));
        return std::string(read.at_pointer("/properties/input/pattern").as_string());
    };
    EXPECT_EQ(pattern(R"(^(?P<month>January|February)\s+(?P<day>\d{1,2})$)"),
              R"(^(?:(?P<month>January|February)\s+(?P<day>\d{1,2}))$)");
    EXPECT_EQ(pattern("^a|b$"), "^(?:a|b)$");
    EXPECT_EQ(pattern("a"), "^(?:a)$");
    EXPECT_EQ(pattern("^a\\$"), "^(?:a\\$)$");
    EXPECT_EQ(pattern("a\\\\$"), "^(?:a\\\\)$");
    EXPECT_EQ(pattern("\\$"), "^(?:\\$)$");
    EXPECT_EQ(pattern("$"), "^(?:)$");
}

}  // namespace
}  // namespace tessera::server
