// JSON schemas before any grammar is made of them.
#include "apps/structure/json_schema.hpp"

#include "core/base/error.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <gmock/gmock.h>

#include <string>

namespace tessera::structure {
namespace {

namespace json = boost::json;

std::string fault_of(const json::value& schema) {
    try {
        schema_rule(schema);
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

}  // namespace
}  // namespace tessera::structure
