#include "apps/server/dialects/responses/grouped_tools.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/dialects/responses/dialect.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <set>
#include <utility>

namespace tessera::server::responses {
namespace {

namespace json = boost::json;

// Of the name of a namespace, which each of its functions repeats.
constexpr size_t kMostNameBytes = 256;

bool has_type(const json::object& object, std::string_view type) {
    const json::value* const given = object.if_contains("type");
    return given && *given == json::string_view(type.data(), type.size());
}

// Reads the field format of a custom tool.
InputGrammar read_custom_format(const Fields& tool) {
    const json::object* const given = tool.object("format");
    if (!given) return {};
    const Fields format(*given, custom_format_table(), tool.path("format"));
    const auto type = format.text("type");
    InputGrammar read;
    if (type == "grammar") {
        read = read_input_grammar(format);
    } else if (type != "text") {
        format.reject("type", "text or grammar");
    } else {
        for (const std::string_view name : {"syntax", "definition"}) {
            if (format.text(name)) format.refuse(name, "belongs to the type grammar");
        }
    }
    format.check_read();
    return read;
}

void add_tool(const json::object& object, const std::string& path, const ToolForm& form, GroupedTools& read) {
    if (!has_type(object, "custom")) {
        read.tools.push_back(read_own_tool(object, path, form));
        return;
    }
    const Fields fields(object, custom_tool_table(), path);
    fields.text("type");
    const auto name = fields.text("name");
    if (!name || name->empty()) fields.reject("name", "the name of a tool");
    const InputGrammar grammar = read_custom_format(fields);
    std::string whole_name(form.name_before), description(form.description_before);
    whole_name += *name;
    append_line(description, fields.text("description").value_or(""));
    fields.check_read();
    read.tools.push_back(custom_tool(whole_name, description, grammar, read.custom));
}

// Adds the tools of a namespace.
void add_group(const json::object& object, const std::string& path, const ToolForm& form, GroupedTools& read) {
    const Fields fields(object, namespace_table(), path);
    fields.text("type");
    const auto group = fields.text("name");
    if (!group || group->empty()) fields.reject("name", "the name of a namespace");
    if (group->size() > kMostNameBytes)
        throw ApiError(400,
                       fmt::format("{}: a name of {} bytes; at most {} are accepted", fields.path("name"),
                                   group->size(), kMostNameBytes),
                       fields.path("name"));
    const std::string prefix = whole_name(*group, "");
    ToolForm of_group = form;
    of_group.name_before = prefix;
    of_group.description_before = fields.text("description").value_or("");
    if (!fields.has("tools")) fields.reject("tools", "a list of functions");
    each_object(fields, "tools", kMaximumTools, [&](const json::object& member, const std::string& where) {
        add_tool(member, where, of_group, read);
        const std::string& whole = read.tools.back().name;
        read.names.push_back({whole, std::string(*group), whole.substr(prefix.size())});
        // Said once, however many functions there are.
        of_group.description_before = {};
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
        if (has_type(object, "namespace"))
            add_group(object, path, form, read);
        else
            add_tool(object, path, form, read);
        if (read.tools.size() > kMaximumTools)
            throw ApiError(400, fmt::format("{}: more than {} functions in all", path, kMaximumTools), path);
    });
    std::set<std::string_view> names;
    for (const text::ChatTool& tool : read.tools) {
        if (!names.insert(tool.name).second)
            throw ApiError(400, fmt::format("tools: two of them are called '{}'", printable(tool.name, 60)), "tools");
    }
    return read;
}

}  // namespace tessera::server::responses
