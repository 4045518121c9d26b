// JSON schemas before any grammar is made of them.
#include "apps/structure/json_schema.hpp"

#include "core/base/error.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <utility>

namespace tessera::structure {
namespace {

namespace json = boost::json;

std::string fault_of(const json::value& schema) {
    try {
        schema_rule(read_schema(schema).schema);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        return error.what();
    }
    return "";
}

// The place of each is remembered, for references: a megabyte of schema would take gigabytes.
TEST(JsonSchema, ManySchemasBelowALongName) {
    const json::array many(1000, true);
    EXPECT_EQ(fault_of({{"properties", {{"name", {{"anyOf", many}}}}}}), "");
    EXPECT_THAT(fault_of({{"properties", {{std::string(64 << 10, 'a'), {{"anyOf", many}}}}}}),
                testing::HasSubstr("long names"));
}

TEST(JsonSchema, ManyAnchorsBelowALongName) {
    json::object members;
    for (int i = 0; i < 20'000; ++i) members["a" + std::to_string(i)] = {{"$anchor", "x" + std::to_string(i)}};
    const auto below_name = [&](size_t size) {
        return json::value{{"properties", {{std::string(size, 'a'), {{"properties", members}}}}}};
    };
    EXPECT_THAT(fault_of(below_name(400 << 10)), testing::HasSubstr("long names"));
}

// Twenty references to itself: looks at schemas are counted, as there would be 20^16 of them.
TEST(JsonSchema, ReferencesThatBranchEndInTime) {
    const json::array many(20, json::value{{"$ref", "#/$defs/D"}});
    const json::value one{{"type", "object"}, {"allOf", many}};
    const json::object definitions{{"D", {{"allOf", many}}}};
    EXPECT_THAT(fault_of({{"oneOf", json::array{one, {{"type", "object"}}}},
                          {"discriminator", {{"propertyName", "zz"}}},
                          {"$defs", definitions}}),
                testing::HasSubstr("oneOf"));
    EXPECT_THAT(fault_of({{"oneOf", json::array{{{"allOf", many}}, {{"allOf", many}}}}, {"$defs", definitions}}),
                testing::HasSubstr("oneOf"));
}

// A megabyte of each kind; steps for each pair would take minutes.
TEST(JsonSchema, ManyNamesTakeNoStepForEachPair) {
    json::object properties;
    json::array names;
    for (int i = 0; i < 9'000; ++i) {
        properties["p" + std::to_string(i)] = true;
        names.push_back(json::value("p" + std::to_string(i)));
    }
    const json::value one{{"type", "object"}, {"properties", properties}, {"required", names}};
    EXPECT_THAT(fault_of({{"oneOf", json::array{one, one}}}), testing::HasSubstr("oneOf"));

    json::object definitions, uses;
    for (int i = 0; i < 5'000; ++i) {
        const std::string name = "a" + std::to_string(i);
        definitions[name] = {{"items", {{"type", "string"}}}};
        uses[name] = {{"$ref", "#/$defs/" + name + "/items"}};
    }
    const json::value made = read_schema({{"properties", uses}, {"$defs", definitions}}).schema;
    EXPECT_EQ(made.at("$defs").as_object().size(), 5'000);
    EXPECT_TRUE(made.at("$defs").as_object().contains("items_5000"));
}

json::value of_text(const char* text) {
    return json::parse(text);
}

json::value read_of(const char* text, const SchemaOptions& options = {}) {
    return read_schema(of_text(text), options).schema;
}

TEST(JsonSchema, AnnotationsSayNothing) {
    EXPECT_EQ(read_of(R"({"type": "string", "nullable": true, "ui:widget": "x", "xml": {}, "$anchor": "a", "title": "t",
                          "discriminator": {"propertyName": "k"}, "format": "ulid"})"),
              of_text(R"({"type": "string"})"));
    for (const char* const format : {"byte", "binary", "password", "path", "regex", "x-mine"})
        EXPECT_EQ(read_schema({{"type", "string"}, {"format", format}}).schema, of_text(R"({"type": "string"})"));
}

TEST(JsonSchema, FormatsOfPydanticAreEnforced) {
    const json::value made = read_of(R"({"type": "string", "format": "uuid4", "maxLength": 36})");
    EXPECT_THAT(std::string(made.at("pattern").as_string()), testing::HasSubstr("-4[0-9a-f]{3}-"));
    EXPECT_EQ(made.at("maxLength"), 36);
    EXPECT_THAT(std::string(read_of(R"({"format": "base64url"})").at("pattern").as_string()), testing::HasSubstr("_-"));
    EXPECT_EQ(read_of(R"({"format": "ipvanyaddress"})").at("format"), "ipv4");
}

TEST(JsonSchema, FormatsOfNumbersAreRanges) {
    EXPECT_EQ(read_of(R"({"type": "integer", "format": "int32", "minimum": 5})"),
              of_text(R"({"type": "integer", "minimum": 5, "maximum": 2147483647})"));
    EXPECT_EQ(read_of(R"({"type": "integer", "format": "uint8"})"),
              of_text(R"({"type": "integer", "minimum": 0, "maximum": 255})"));
    EXPECT_EQ(read_of(R"({"type": "number", "format": "int32"})").at("type"), "integer");
    const json::value real = read_of(R"({"type": "number", "format": "double", "exclusiveMinimum": 0})");
    EXPECT_LE(real.at("maximum").to_number<double>(), 1e18);
    EXPECT_EQ(real.at("exclusiveMinimum"), 0);
    // A text of digits, as protobuf writes 64 bits.
    EXPECT_EQ(read_of(R"({"type": "string", "format": "int64"})"), of_text(R"({"type": "string"})"));
}

// The engine computes with doubles, which have 53 bits.
TEST(JsonSchema, BoundsOf64BitsAreWithinThem) {
    const json::value made = read_of(R"({"type": "integer", "minimum": -9223372036854775808,
                                         "maximum": 9223372036854775807})");
    EXPECT_GT(made.at("minimum").to_number<int64_t>(), INT64_MIN);
    EXPECT_LT(made.at("maximum").to_number<int64_t>(), INT64_MAX);
    EXPECT_EQ(read_of(R"({"type": "integer", "minimum": 9007199254740993})").at("minimum"), 9007199254740994);
    EXPECT_THAT(fault_of(of_text(R"({"type": "integer", "minimum": 18446744073709551615})")),
                testing::HasSubstr("minimum"));
    EXPECT_THAT(fault_of(of_text(R"({"enum": [1e400]})")), testing::HasSubstr("enum"));
    EXPECT_THAT(fault_of(of_text(R"({"maximum": 1e400})")), testing::HasSubstr("maximum"));
}

TEST(JsonSchema, OneOfWhereOnlyOneCanHold) {
    constexpr const char* kUnion = R"({"$defs": {
        "C": {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]},
        "D": {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]}},
        "oneOf": [{"$ref": "#/$defs/C"}, {"$ref": "#/$defs/D"}, {"type": "null"}, {"enum": [1, "x"]}]})";
    const json::value made = read_of(kUnion);
    EXPECT_EQ(made.at("anyOf").as_array().size(), 4);
    EXPECT_FALSE(made.as_object().contains("oneOf"));
    for (const char* const both :
         {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
          R"({"oneOf": [{"type": "string"}, {"const": "a"}]})",
          R"({"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]})",
          R"({"oneOf": [{"minimum": 1}, {"maximum": 1}]})", R"({"oneOf": [{"enum": [1]}, {"enum": [1.0]}]})"})
        EXPECT_THAT(fault_of(of_text(both)), testing::HasSubstr("oneOf")) << both;
}

// pydantic does not require a tag that has a default, so an object without it would be of both.
TEST(JsonSchema, ATagOfOneOfIsRequired) {
    const json::value made = read_of(R"({"$defs": {
        "C": {"type": "object", "properties": {"kind": {"const": "cat"}}},
        "D": {"type": "object", "properties": {"kind": {"const": "dog"}}}},
        "oneOf": [{"$ref": "#/$defs/C"}, {"$ref": "#/$defs/D"}]})");
    for (const json::value& one : made.at("anyOf").as_array()) {
        const std::string_view target = one.at("$ref").as_string();
        const json::value& definition = made.at("$defs").at(target.substr(target.rfind('/') + 1));
        EXPECT_EQ(definition.at("required"), json::array{"kind"});
    }
}

// pydantic refuses an object without the tag, though its schema of a tag with a default does not require it.
TEST(JsonSchema, WhatADiscriminatorNamesIsRequired) {
    for (const char* const list : {"oneOf", "anyOf"}) {
        json::value schema = of_text(R"({"discriminator": {"propertyName": "kind"}})");
        schema.as_object()[list] = of_text(R"([
            {"type": "object", "properties": {"kind": {"const": "cat"}, "n": {}}, "required": ["kind", "n"]},
            {"type": "object", "properties": {"kind": {"const": "dog"}, "b": {}}, "required": ["b"]}])");
        const json::value made = read_schema(schema).schema;
        EXPECT_EQ(made.at("anyOf").at(0).at("required"), (json::array{"kind", "n"})) << list;
        EXPECT_EQ(made.at("anyOf").at(1).at("required"), (json::array{"b", "kind"})) << list;
        // It says nothing where it names no property that tells the schemas apart.
        schema.at("discriminator").at("propertyName") = "b";
        EXPECT_EQ(read_schema(schema).schema.at("anyOf").at(1).at("required"), json::array{"b"}) << list;
    }
}

TEST(JsonSchema, ReferencesOfEveryKind) {
    for (const char* const reference : {"#/$defs/x", "#name", "#/%24defs/x", "https://own.example/s#/$defs/x"}) {
        json::value schema = of_text(R"({"$id": "https://own.example/s", "$defs": {"x": {"$anchor": "name", "type":
                                         "integer"}}, "properties": {"a": {}}})");
        schema.at("properties").at("a") = json::object{{"$ref", reference}};
        EXPECT_EQ(read_schema(schema).schema.at("$defs").at("x"), of_text(R"({"type": "integer"})")) << reference;
    }
    EXPECT_EQ(read_of(R"({"components": {"schemas": {"A/b": {"type": "null"}}}, "items": {"$ref":
                          "#/components/schemas/A~1b"}})")
                  .at("$defs")
                  .as_object()
                  .size(),
              1);
    for (const char* const loop : {R"({"$ref": "#"})", R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})"})
        EXPECT_THAT(fault_of(of_text(loop)), testing::HasSubstr("refers to itself"));
    EXPECT_THAT(fault_of(of_text(R"({"$ref": "#/$defs/y"})")), testing::HasSubstr("refers to no schema"));
    // What nothing refers to is not read.
    EXPECT_EQ(fault_of(of_text(R"({"$defs": {"y": {"not": {"type": "null"}}}, "type": "integer"})")), "");
}

TEST(JsonSchema, WhatCannotBeEnforcedIsRefusedOrReported) {
    for (const auto& [word, value] : {std::pair("uniqueItems", "true"), std::pair("not", R"({"type": "null"})"),
                                      std::pair("propertyNames", R"({"pattern": "a"})"), std::pair("contains", "{}"),
                                      std::pair("dependentRequired", R"({"a": ["b"]})"),
                                      std::pair("pattern", R"x("(?=a)")x"), std::pair("maxlength", "3")}) {
        json::value schema = of_text(R"({"properties": {"a": {"type": ["array", "string", "object"]}}})");
        schema.at("properties").at("a").as_object()[word] = of_text(value);
        EXPECT_THAT(fault_of(schema), testing::HasSubstr(std::string("properties/a/") + word));
        const ReadSchema made = read_schema(schema, {.allow_unenforced = true});
        EXPECT_THAT(made.unenforced, testing::ElementsAre(std::string("properties/a/") + word));
        EXPECT_EQ(made.schema.at("properties").at("a"), of_text(R"({"type": ["array", "string", "object"]})"));
    }
    // Where they say nothing they are enforced.
    EXPECT_EQ(
        fault_of(of_text(R"({"uniqueItems": true, "maxItems": 1, "propertyNames": {"type": "string"}, "not": false,
                                   "if": {}, "contains": {}, "minContains": 0, "dependentSchemas": {}})")),
        "");
}

TEST(JsonSchema, AFormatStandsForAPatternThatLooksAhead) {
    const ReadSchema made = read_schema(of_text(R"({"type": "string", "format": "email", "pattern": "^(?!\\.)a@b$"})"));
    EXPECT_TRUE(made.schema.as_object().contains("pattern"));
    EXPECT_THAT(made.unenforced, testing::ElementsAre("pattern"));
}

TEST(JsonSchema, ClosedObjects) {
    const SchemaOptions closed{.closed = true};
    const auto is_closed = [&](const char* text) {
        const json::value made = read_of(text, closed);
        const json::value* const others = made.as_object().if_contains("additionalProperties");
        return others && *others == false;
    };
    EXPECT_TRUE(is_closed(R"({"type": "object", "properties": {"a": {}}})"));
    EXPECT_EQ(read_of(R"({"properties": {"a": {}}})", closed).at("type"), "object");
    for (const char* const open :
         {R"({"type": "object"})", R"({"properties": {"a": {}}, "additionalProperties": {}})",
          R"({"properties": {"a": {}}, "patternProperties": {"^x": {}}})", R"({"properties": {}, "required": ["b"]})",
          R"({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]})"})
        EXPECT_FALSE(is_closed(open)) << open;
    EXPECT_EQ(read_of(R"({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]})", closed),
              of_text(R"({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]})"));
    EXPECT_FALSE(read_of(R"({"properties": {"a": {}}})").as_object().contains("additionalProperties"));
}

}  // namespace
}  // namespace tessera::structure
