// Tools of dialects that group them: what is made of them, and where it ends.

#include "apps/server/dialects/responses/dialect.hpp"
#include "apps/server/dialects/responses/grouped_tools.hpp"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

responses::GroupedTools grouped(const std::string& tools) {
    const json::object object = parse_object(R"({"tools":)" + tools + "}");
    return responses::read_tools(Fields(object, responses::responses_table()));
}

std::string group(const std::string& name, const std::string& description, const std::string& functions) {
    return fmt::format(R"([{{"type":"namespace","name":"{}","description":"{}","tools":[{}]}}])", name, description,
                       functions);
}

TEST(GroupedTools, SchemasMayBeAsDeepAsBodies) {
    std::string schema = "{}";
    for (int i = 0; i < 50; ++i) schema = R"({"not":)" + schema + "}";
    const auto read = grouped(group("n", "", R"({"type":"function","name":"f","parameters":)" + schema + "}"));
    EXPECT_EQ(read.tools.front().parameters, schema);
}

}  // namespace
}  // namespace tessera::server
