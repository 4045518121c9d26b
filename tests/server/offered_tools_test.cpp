// Tools of dialects that group them: what is made of them, and where it ends.

#include "apps/server/api_error.hpp"
#include "apps/server/dialects/responses/dialect.hpp"
#include "apps/server/dialects/responses/grouped_tools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <functional>

namespace tessera::server {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

std::string fault_of(const std::function<void()>& read) {
    try {
        read();
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400);
        return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
}

responses::GroupedTools grouped(const std::string& tools) {
    const json::object object = parse_object(R"({"tools":)" + tools + "}");
    return responses::read_tools(Fields(object, responses::responses_table()));
}

std::string group(const std::string& name, const std::string& description, const std::string& functions) {
    return fmt::format(R"([{{"type":"namespace","name":"{}","description":"{}","tools":[{}]}}])", name, description,
                       functions);
}

std::string repeated(const std::string& format, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += (i ? "," : "") + fmt::format(fmt::runtime(format), i);
    return all;
}

TEST(GroupedTools, ANamespaceIsDescribedOnce) {
    const auto read = grouped(group("n", "About.",
                                    R"({"type":"function","name":"f","description":"First.","strict":true},)"
                                    R"({"type":"function","name":"g","description":"Second."})"));
    ASSERT_EQ(read.tools.size(), 2u);
    EXPECT_EQ(read.tools[0].name, "n__f");
    EXPECT_EQ(read.tools[0].description, "About.\nFirst.");
    EXPECT_TRUE(read.tools[0].strict);
    EXPECT_EQ(read.tools[1].description, "Second.");
    EXPECT_EQ(read.names[1].whole, "n__g");
    EXPECT_EQ(read.names[1].group, "n");
    EXPECT_EQ(read.names[1].name, "g");
}

TEST(GroupedTools, NothingIsRepeatedForEachFunction) {
    const std::string functions = repeated(R"({{"type":"function","name":"f{}"}})", kMaximumTools);
    const std::string tools = group("n", std::string(50'000, 'a'), functions);
    size_t bytes = 0;
    for (const text::ChatTool& tool : grouped(tools).tools) bytes += tool.description.size() + tool.whole.size();
    EXPECT_LT(bytes, 4 * tools.size());
    EXPECT_THAT(fault_of([&] { grouped(group(std::string(257, 'n'), "", functions)); }), HasSubstr("tools[0].name"));
}

TEST(GroupedTools, SchemasMayBeAsDeepAsBodies) {
    std::string schema = "{}";
    for (int i = 0; i < 50; ++i) schema = R"({"not":)" + schema + "}";
    const auto read = grouped(group("n", "", R"({"type":"function","name":"f","parameters":)" + schema + "}"));
    EXPECT_EQ(read.tools.front().parameters, schema);
}

}  // namespace
}  // namespace tessera::server
