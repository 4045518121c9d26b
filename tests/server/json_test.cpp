#include "apps/server/api_error.hpp"
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
