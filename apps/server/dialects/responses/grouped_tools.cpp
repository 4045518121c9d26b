#include "apps/server/dialects/responses/grouped_tools.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/dialects/responses/dialect.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tessera::server::responses {
namespace {

namespace json = boost::json;

// Adds the functions of a namespace.
void add_group(const json::object& object, const std::string& path, const ToolForm& form, GroupedTools& read) {
    const Fields fields(object, namespace_table(), path);
    fields.text("type");
    const auto group = fields.text("name");
    if (!group || group->empty()) fields.reject("name", "the name of a namespace");
    const std::string about(fields.text("description").value_or(""));
    if (!fields.has("tools")) fields.reject("tools", "a list of functions");
    each_object(fields, "tools", kMaximumTools, [&](const json::object& member, const std::string& where) {
        const text::ChatTool tool = read_own_tool(member, where, form);
        std::string whole = whole_name(*group, tool.name), description = about;
        append_line(description, tool.description);
        read.tools.push_back(
            function_tool(whole, description, json::parse(json::string_view(tool.parameters)).as_object()));
        read.tools.back().strict = tool.strict;
        read.names.push_back({std::move(whole), std::string(*group), tool.name});
    });
    fields.check_read();
}

}  // namespace

std::string whole_name(std::string_view group, std::string_view name) {
    return group.empty() ? std::string(name) : fmt::format("{}__{}", group, name);
}

GroupedTools read_tools(const Fields& fields) {
    const ToolForm form{tool_table(), "function", true, "parameters"};
    GroupedTools read;
    each_object(fields, "tools", kMaximumTools, [&](const json::object& object, const std::string& path) {
        const json::value* const type = object.if_contains("type");
        if (type && *type == "namespace")
            add_group(object, path, form, read);
        else
            read.tools.push_back(read_own_tool(object, path, form));
        if (read.tools.size() > kMaximumTools)
            throw ApiError(400, fmt::format("{}: more than {} functions in all", path, kMaximumTools), path);
    });
    for (const GroupedName& name : read.names) {
        if (std::ranges::count(read.tools, name.whole, &text::ChatTool::name) > 1)
            throw ApiError(400, fmt::format("tools: two functions are called '{}'", name.whole), "tools");
    }
    return read;
}

}  // namespace tessera::server::responses
