#include "core/text/python_json.hpp"

#include "tests/text/goldens.hpp"

#include <gtest/gtest.h>

namespace tessera::text {
namespace {

// What Python's json module makes of each text (record_chat.py).
TEST(PythonJson, WritesAsPythonDoes) {
    const auto file = golden("chat_tools.json");
    ASSERT_GT(file.at("json").as_array().size(), 30u);
    for (const auto& one : file.at("json").as_array()) {
        const auto text = boost::json::value_to<std::string>(one.at("text"));
        const auto value = parse_python_json(text);
        ASSERT_TRUE(value) << text;
        EXPECT_EQ(value->dumps(), boost::json::value_to<std::string>(one.at("plain"))) << text;
        EXPECT_EQ(value->dumps(4), boost::json::value_to<std::string>(one.at("indented"))) << text;
    }
}

TEST(PythonJson, RefusesWhatIsNotOneValue) {
    const std::string deep(257, '[');
    for (const std::string& text :
         std::vector<std::string>{"", " ", "{", "{\"a\" 1}", "[1,]", "{} {}", "1 2", "'a'", "\"\xff\"", "\"\\ud800\"",
                                  "nul", "01", "NaN", "[1] x", "\"a\nb\"", deep + std::string(257, ']')})
        EXPECT_FALSE(parse_python_json(text)) << text;
    EXPECT_TRUE(parse_python_json(deep.substr(1) + std::string(256, ']')));
}

TEST(PythonJson, Finds) {
    const auto value = parse_python_json(" {\"a\": {\"b\": [1, \"x\"]}} ");
    ASSERT_TRUE(value && value->find("a") && value->find("a")->find("b"));
    EXPECT_EQ(value->find("a")->find("b")->dumps(), "[1, \"x\"]");
    EXPECT_EQ(value->find("b"), nullptr);
    EXPECT_EQ(PythonJson::of_text("a").find("a"), nullptr);
}

}  // namespace
}  // namespace tessera::text
