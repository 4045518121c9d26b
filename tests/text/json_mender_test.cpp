#include "core/text/json_mender.hpp"

#include "core/text/python_json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {
namespace {

std::string mended(std::string_view text, size_t step) {
    JsonMender mender;
    mender.begin();
    std::string json;
    for (size_t at = 0; at < text.size(); at += std::min(step, text.size() - at))
        mender.read(text.substr(at, step), json);
    mender.finish(json);
    return json;
}
std::string mended(std::string_view text) {
    const std::string whole = mended(text, std::max<size_t>(text.size(), 1));
    EXPECT_EQ(mended(text, 1), whole) << text;
    EXPECT_TRUE(parse_python_json(whole)) << text << ": " << whole;
    return whole;
}

TEST(JsonMender, JsonStaysAsItIs) {
    for (const std::string_view text :
         {R"({})", R"({"a": 1, "b": [true, null, -1.5e3], "c": {"d": "x\"y\\"}})",
          "{\n  \"a\" : [ ] ,\n \"b\": \"\"\n}\n", R"([1, {"a": "}{"}])",
          R"({"a": "\u00e4\ud83d\ude00 \/", "b": "ä😀"})", "{\"a\": \"x\" , \"b\": \"y\"\n}", R"(5)", R"("a text")",
          R"([])", R"({"": {"": ""}})"})
        EXPECT_EQ(mended(text), text);
}

TEST(JsonMender, MendsWhereItStands) {
    const std::vector<std::pair<std::string_view, std::string_view>> cases = {
        // What models forget at the end, and answers that are cut.
        {R"({"a": 1)", R"({"a": 1})"},
        {R"({"a": [1, {"b": "x)", R"({"a": [1, {"b": "x"}]})"},
        {R"({"a": "x\)", R"({"a": "x"})"},
        {R"({"a": "x\u00)", R"({"a": "x"})"},
        {R"({"a": 1, "b":)", R"({"a": 1})"},
        {R"({"a": 1, "b)", R"({"a": 1})"},
        {R"({"a": 1, b)", R"({"a": 1})"},
        {R"({"a)", "{}"},
        {R"({"a": tru)", R"({"a": "tru"})"},
        {R"({"a": 1,)", R"({"a": 1})"},
        {"", "{}"},
        {"\n", "\n{}"},
        {"{", "{}"},
        // Nothing as arguments.
        {"null", "{}"},
        {"None", "{}"},
        {R"("")", "{}"},
        // JSON in a string.
        {R"("{\"a\": \"x\\n\\\"y\\\"\", \"b\": [1]}")", R"({"a": "x\n\"y\"", "b": [1]})"},
        {R"("{\"a\": \"\u00e4\"}")", "{\"a\": \"ä\"}"},
        {R"("{\"a\": 1)", R"({"a": 1})"},
        // Python, and what people write.
        {R"({'a': 'it\'s "x"', "b": True, 'c': None, "d": False})",
         R"({"a": "it's \"x\"", "b": true, "c": null, "d": false})"},
        {R"({a: 1, b_c: "x"})", R"({"a": 1, "b_c": "x"})"},
        {R"({"a": hello world, "b": 1})", R"({"a": "hello world", "b": 1})"},
        {R"({"a": NaN, "b": -Infinity})", R"({"a": null, "b": null})"},
        {R"({"a": 007, "b": .5, "c": 1e400})", R"({"a": "007", "b": ".5", "c": 1e400})"},
        // Separators.
        {R"({"a": 1, "b": 2,})", R"({"a": 1, "b": 2})"},
        {"[1, 2,\n]", "[1, 2\n]"},
        {R"({"a": 1 "b": 2})", R"({"a": 1 ,"b": 2})"},
        {R"({"a": "1" "b": 2})", R"({"a": "1" ,"b": 2})"},
        {R"({"a" 1})", R"({"a" :1})"},
        {R"({"a"})", R"({"a":null})"},
        {R"({"a": })", R"({"a": null})"},
        {R"({"a": , "b": 1})", R"({"a": null, "b": 1})"},
        {R"({,"a": 1,, "b": 2})", R"({"a": 1, "b": 2})"},
        // Brackets.
        {R"({"a": 1}})", R"({"a": 1})"},
        {R"({{"a": 1}})", R"({"a": 1})"},
        {R"({"a": [1})", R"({"a": [1]})"},
        {R"({"a": 1])", R"({"a": 1})"},
        {R"({"a": {"b": 1]})", R"({"a": {"b": 1}})"},
        // Characters that strings do not have.
        {"{\"a\": \"x\ny\t\x01\"}", R"({"a": "x\ny\t\u0001"})"},
        {R"({"a": "C:\dir\\x"})", R"({"a": "C:\\dir\\x"})"},
        {R"({"a": "\ud83d x \ude00 \ud83d\n"})", R"({"a": "\ufffd x \ufffd \ufffd\n"})"},
        {R"({"a": "say "hi" now", "b": 1})", R"({"a": "say \"hi\" now", "b": 1})"},
        {R"({"a": "<b class="x">y</b>"})", R"({"a": "<b class=\"x\">y</b>"})"}};
    for (const auto& [text, json] : cases) EXPECT_EQ(mended(text), json) << text;
}

TEST(JsonMender, WordsEndWhereAKeyFollows) {
    EXPECT_EQ(mended(R"({"a": 1 "b": true "c": 2})"), R"({"a": 1 ,"b": true ,"c": 2})");
    EXPECT_EQ(mended(R"({"a": the "b" one})"), R"({"a": "the \"b\" one"})");
}

TEST(JsonMender, AHalfCharacterLeavesTheNextOneWhole) {
    EXPECT_EQ(mended(R"({"a": "\ud83d\ud83d\ude00"})"), R"({"a": "\ufffd\ud83d\ude00"})");
}

TEST(JsonMender, WhateverComesIsJson) {
    constexpr std::string_view kPieces[] = {"{",  "}",    "[",    "]",       ",", ":", "\"",   "'",
                                            "\\", "\\u",  "d83d", "\\ude00", "a", "1", "-",    " ",
                                            "\n", "null", "x",    "\x02",    "e", "ä", "true", "None"};
    std::mt19937 random(7);
    for (int i = 0; i < 20'000; ++i) {
        std::string text;
        for (size_t n = random() % 24; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
        ASSERT_TRUE(parse_python_json(mended(text))) << text;
        if (HasFailure()) return;
    }
}

// What was appended is not taken back, and is what a string begins with as soon as it is there.
TEST(JsonMender, PassesTextsOnAtOnce) {
    JsonMender mender;
    mender.begin();
    std::string json;
    mender.read(R"({"path": "a.txt", "text": "hello)", json);
    EXPECT_EQ(json, R"({"path": "a.txt", "text": "hello)");
}

}  // namespace
}  // namespace tessera::text
