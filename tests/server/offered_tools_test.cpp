// Tools of dialects that group them, defer them and change them: what is made of them, and where it ends.
#include "apps/server/dialects/anthropic/offered_tools.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/dialects/anthropic/dialect.hpp"
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

TEST(GroupedTools, MessagesShowTheBeginningOfANameAlone) {
    const std::string function = R"({"type":"function","name":")" + std::string(1000, 'f') + R"("})";
    EXPECT_LT(fault_of([&] { grouped(group("n", "", function + "," + function)); }).size(), 200u);
}

constexpr const char* kReference = R"({{"type":"{}","tool":{{"type":"tool_reference","name":"{}"}}}})";
constexpr const char* kDefinition =
    R"({{"type":"tool_addition","tool":{{"type":"tool_definition","definition":{{"name":"{}","description":"{}","input_schema":{{}}}}}}}})";

void change(anthropic::OfferedTools& tools, const std::string& block) {
    tools.add_change(parse_object(block), "messages[0]");
}

std::vector<text::ChatTool> offered(const anthropic::OfferedTools& tools, const std::string& list = "[]") {
    const json::object object = parse_object(R"({"tools":)" + list + "}");
    return tools.read(Fields(object, anthropic::messages_table()));
}

TEST(OfferedTools, ADefinitionTakesThePlaceOfADeferredOne) {
    anthropic::OfferedTools tools;
    change(tools, fmt::format(fmt::runtime(kDefinition), "f", "new"));
    change(tools, fmt::format(fmt::runtime(kReference), "tool_removal", "f"));
    change(tools, fmt::format(fmt::runtime(kReference), "tool_addition", "f"));
    const auto read = offered(tools, R"([{"name":"f","description":"old","input_schema":{},"defer_loading":true}])");
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read.front().description, "new");
}

TEST(OfferedTools, ChangesAreCountedHoweverTheyAreMade) {
    const json::object found = parse_object(R"({"type":"tool_reference","tool_name":"f"})");
    anthropic::OfferedTools tools;
    for (size_t i = 0; i < kMaximumParts; ++i) tools.add_found(found, "messages[0]");
    EXPECT_THAT(fault_of([&] { tools.add_found(found, "messages[1]"); }), HasSubstr("messages[1]"));
    EXPECT_THAT(fault_of([&] { change(tools, fmt::format(fmt::runtime(kReference), "tool_removal", "f")); }),
                HasSubstr("messages[0]"));
}

TEST(OfferedTools, ThoseThatMessagesAddAreCounted) {
    const std::string list = "[" + repeated(R"({{"name":"f{}","input_schema":{{}}}})", kMaximumTools) + "]";
    anthropic::OfferedTools tools;
    change(tools, fmt::format(fmt::runtime(kDefinition), "f0", "new"));
    EXPECT_EQ(offered(tools, list).size(), kMaximumTools);
    change(tools, fmt::format(fmt::runtime(kDefinition), "g", ""));
    EXPECT_THAT(fault_of([&] { offered(tools, list); }), HasSubstr("1025"));
}

TEST(OfferedTools, MessagesShowTheBeginningOfANameAlone) {
    for (const char* type : {"tool_addition", "tool_removal"}) {
        anthropic::OfferedTools tools;
        change(tools, fmt::format(fmt::runtime(kReference), type, std::string(1000, 'f')));
        EXPECT_LT(fault_of([&] { offered(tools); }).size(), 200u);
    }
}

}  // namespace
}  // namespace tessera::server
