#include "apps/server/api_error.hpp"
#include "apps/server/json_fault.hpp"
#include "apps/server/json_fields.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tessera::server {
namespace {

TEST(JsonText, StringsComeBack) {
    std::string all;
    for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
    all += "é€🙂";
    EXPECT_EQ(boost::json::parse(text::json_string(all)).as_string(), all);
    EXPECT_EQ(text::json_string("a\xff"), "\"a\xEF\xBF\xBD\"");
    EXPECT_EQ(text::json_string("\xe2\x82"), "\"\xEF\xBF\xBD\"");
}

TEST(JsonText, ValuesAreSeparated) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("a", 1).key("b").begin_list();
    json.value(std::numeric_limits<double>::quiet_NaN()).value(0.1).value(0.1f).value(true).value("x").null();
    json.begin_list().end_list().begin_object().end_object().end_list();
    json.member("c", uint64_t(-1)).member("d", -5).key("e").fixed(2.0 / 3, 3).key("f").json("{}");
    json.key("g").text_or_null("").member("h", std::string("\"")).end_object();
    EXPECT_EQ(out, R"({"a":1,"b":[null,0.1,0.1,true,"x",null,[],{}],"c":18446744073709551615,"d":-5,"e":0.667,)"
                   R"("f":{},"g":null,"h":"\""})");
}

std::string message_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const ApiError& error) {
        return std::to_string(error.status()) + " " + error.parameter() + ": " + error.what();
    }
    return "";
}

TEST(JsonFields, SayWhatWasExpectedAndFound) {
    const auto object = parse_object(R"({"a":"x","b":3.5,"c":7,"d":null,"e":[1,2],"f":{"g":true}})");
    const auto row = [](std::string_view name) { return FieldRow{name, Standing::kHonoured, ""}; };
    const FieldRow rows[] = {row("a"), row("b"), row("c"), row("d"), row("e"), row("f")}, inner[] = {row("g")};
    const FieldTable table("test", {rows}), inner_table("inner", {inner});
    const Fields fields(object, table);
    EXPECT_EQ(fields.text("a"), "x");
    EXPECT_EQ(fields.number("b", 0, 10), 3.5);
    EXPECT_EQ(fields.integer("c", 0, 10), 7);
    EXPECT_FALSE(fields.has("d"));
    EXPECT_FALSE(fields.boolean("d"));
    EXPECT_EQ(fields.array("e", 2)->size(), 2u);
    EXPECT_EQ(Fields(*fields.object("f"), inner_table, "f").boolean("g"), true);
    EXPECT_EQ(message_of([&] { fields.integer("b", 0, 10); }),
              "400 b: b: expected a whole number from 0 to 10, found 3.5E0");
    EXPECT_EQ(message_of([&] { fields.integer("c", 0, 6); }), "400 c: c: expected a whole number from 0 to 6, found 7");
    EXPECT_EQ(message_of([&] { fields.text("e"); }), "400 e: e: expected a text, found a list");
    EXPECT_EQ(message_of([&] { fields.array("e", 1); }), "400 e: e: a list of 2 elements; at most 1 are accepted");
    EXPECT_EQ(message_of([&] { Fields(*fields.object("f"), inner_table, "f").text("g"); }),
              "400 f.g: f.g: expected a text, found true");
    EXPECT_THAT(message_of([&] { fields.refuse("a", "no"); }), testing::StartsWith("400 a: "));
}

TEST(JsonFields, BodiesThatAreNoObjects) {
    for (const char* body : {"", "3", "[]", "{", "nonsense", "{}{}"})
        EXPECT_THROW(parse_object(body), ApiError) << body;
    EXPECT_THROW(parse_object(std::string(100, '[')), ApiError);
    EXPECT_NO_THROW(parse_object("{}"));
}

// Each fault with its message, up to the place; the place is where the mark stands.
TEST(JsonFaults, SayWhatAndWhere) {
    const auto fault = [](std::string text) {
        const auto found = find_json_fault(text, 64);
        return found ? found->message(text) : std::string("none");
    };
    struct Case {
        std::string text, what;
        size_t byte;
    };
    const Case cases[] = {
        {R"({"a":"cut \ud83d"})", "half of a surrogate pair: \\ud83d without the second half", 10},
        {R"({"a":"\ud83d\ud83d"})", "half of a surrogate pair: \\ud83d without the second half", 6},
        {R"({"a":"\ude00"})", "half of a surrogate pair: \\ude00 without the first half", 6},
        {R"({"a\ud83d":1})", "half of a surrogate pair", 3},
        {"{\"a\":\"\xed\xa0\xbd\"}", "it is not UTF-8: half of a surrogate pair", 6},
        {R"({"a":"b" "c":1})", "expected ',' or '}' after a value, found '\"'", 9},
        {R"(["a" "b"])", "expected ',' or ']' after a value, found '\"'", 5},
        {R"({"a" 1})", "expected ':' after a key, found '1'", 5},
        {R"({a:1})", "expected a key in double quotes, found 'a'", 1},
        {R"({"a":1,})", "a comma before '}'; remove it", 6},
        {R"([1,])", "a comma before ']'; remove it", 2},
        {R"({"a":})", "expected a value, found '}'", 5},
        {R"({"a":'b'})", "expected a value, found \"'\"; strings have double quotes", 5},
        {R"({"a":True})", "expected a value, found True", 5},
        {R"({"a":NaN})", "expected a value, found NaN", 5},
        {R"({"a":nullx})", "expected a value, found nullx", 5},
        {R"(// {})", "a comment", 0},
        {R"({"a":1} {)", "expected the end after the value, found '{'", 8},
        {R"({"a":01})", "a number that begins with 0", 5},
        {R"({"a":-})", "expected a digit after '-', found '}'", 6},
        {R"({"a":1.})", "expected a digit after the decimal point, found '}'", 7},
        {R"({"a":1e+})", "expected a digit in the exponent, found '}'", 8},
        {R"({"a":1x})", "expected the end of a number, found 'x'", 6},
        {R"({"a":1e400})", "the number 1e400 is larger than a double holds", 5},
        {R"({"a":-1e99999999999})", "the number -1e99999999999 is larger than a double holds", 5},
        {R"({"a":"\x41"})", "a backslash before 'x' in a string", 6},
        {R"({"a":"\u12g4"})", "expected four hexadecimal digits after \\u", 6},
        {"{\"a\":\"b\nc\"}", "a control character (0x0A) in a string; write it as an escape, \\n", 7},
        {"{\"a\":\"\xff\"}", "it is not UTF-8: the byte 0xFF begins no character", 6},
        {"{\"a\":\"\xf0\x9f\x99", "it is not UTF-8: the byte 0xF0 begins a character that the end cuts", 6},
        {"\xff", "expected a value, found the byte 0xFF, which is not UTF-8", 0},
        {R"({"a":"b)", "a string that begins at byte 5 has no end", 7},
        {R"({"a":"b\)", "a string that begins at byte 5 has no end", 8},
        {R"({"a":"\ud8)", "a string that begins at byte 5 has no end", 10},
        {R"({"a":)", "expected a value, found the end of the text", 5},
        {R"({"a":1)", "expected ',' or '}' after a value, found the end of the text", 6},
        {R"({"a":tr)", "the text ends within true", 7},
        {R"({"a":-)", "the text ends within a number", 6},
        {std::string(65, '['), "nested deeper than 64 objects and arrays", 64},
    };
    for (const Case& one : cases) {
        EXPECT_THAT(fault(one.text), testing::StartsWith(one.what));
        EXPECT_THAT(fault(one.text), testing::HasSubstr("byte " + std::to_string(one.byte) + ")"));
        // The parser refuses the same.
        EXPECT_THAT(message_of([&] { parse_object(one.text); }),
                    testing::StartsWith("400 : the request's body is not JSON: " + one.what));
    }
    EXPECT_EQ(fault("{\n \"\u00e9\": 1\n \"b\": 2}"),
              "expected ',' or '}' after a value, found '\"' (line 3, column 2, byte 12)");
    EXPECT_THAT(fault("[\"\u00e9\u00e9\" 1]"), testing::HasSubstr("(line 1, column 7, byte 8)"));
    const std::string nested = std::string(64, '[') + std::string(64, ']');
    for (const std::string& valid :
         {std::string(R"( {"a":[1,-0.5e-3,true,false,null,"\ud83d\ude00\"\\\/\b\f\n\r\t\u0000",{}],"b":{"c":[]}} )"),
          nested, std::string("1e-400"), std::string("\"\xf0\x9f\x99\x82\"")})
        EXPECT_EQ(fault(valid), "none") << valid;
}

TEST(JsonFields, NoKeyStandsTwice) {
    for (const char* body : {R"({"a":1,"a":2})", R"({"b":[{"a":1,"c":{},"a":1}]})", R"({"a":1,"\u0061":2})"})
        EXPECT_EQ(message_of([&] { parse_object(body); }).substr(0, 4), "400 ") << body;
    for (const char* body : {R"({"a":1,"A":2})", R"({"b":[{"a":1},{"a":1}]})", R"({"a":":\":","b":"\\"})"})
        EXPECT_NO_THROW(parse_object(body)) << body;
}

TEST(ApiErrors, HaveTheFormOfTheOpenAiApi) {
    ApiError error(429, "later \"please\"", "x", "queue_full");
    error.retry_after = 7;
    const HttpResponse response = to_response(error);
    EXPECT_EQ(response.status, 429u);
    EXPECT_EQ(response.body,
              R"({"error":{"message":"later \"please\"","type":"rate_limit_error","param":"x","code":"queue_full"}})");
    EXPECT_THAT(response.headers, testing::Contains(testing::Pair("Retry-After", "7")));
}

}  // namespace
}  // namespace tessera::server
