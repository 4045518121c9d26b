#include "apps/server/chat_tools.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/chat_fields.hpp"
#include "apps/server/custom_tools.hpp"
#include "apps/server/tool_input.hpp"
#include "core/base/text.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

namespace tessera::server {
namespace {

namespace json = boost::json;

// Returns whether a tool, a choice or a call is of type custom. Checked before its other fields, since each type has
// its own. A missing type means function.
bool is_custom(const json::object& object, const std::string& path) {
    const json::value* const type = object.if_contains("type");
    if (!type || type->is_null() || *type == "function") return false;
    if (*type == "custom") return true;
    throw ApiError(400,
                   fmt::format("{}: the type {} is not supported (expected function or custom); describe a function "
                               "that the client runs",
                               path, shown(*type)),
                   path, "not_supported");
}

text::ChatTool function_tool_of(const json::object& given, const std::string& path) {
    const Fields tool(given, tool_table(), path);
    tool.text("type");
    const json::object* const function = tool.object("function");
    if (!function) tool.reject("function", "an object");
    const Fields described(*function, tool_function_table(), tool.path("function"));
    if (text_or_empty(described, "name").empty()) described.reject("name", "the name of a function");
    const json::object* const parameters = described.object("parameters");
    text::ChatTool made{text_or_empty(described, "name"), text_or_empty(described, "description"),
                        parameters ? json::serialize(*parameters) : "{}", json::serialize(given),
                        described.boolean("strict").value_or(false)};
    described.check_read();
    tool.check_read();
    return made;
}

// Reads {"type": "grammar", "grammar": {"syntax": ..., "definition": ...}}, or {"type": "text"}.
InputGrammar read_format(const Fields& tool) {
    const json::object* const given = tool.object("format");
    if (!given) return {};
    const Fields format(*given, custom_format_table(), tool.path("format"));
    const auto type = format.text("type");
    const json::object* const grammar = format.object("grammar");
    InputGrammar read;
    if (type == "grammar") {
        if (!grammar) format.reject("grammar", "an object with syntax and definition");
        const Fields fields(*grammar, custom_grammar_table(), format.path("grammar"));
        read = read_input_grammar(fields);
        fields.check_read();
    } else if (type != "text") {
        format.reject("type", "text or grammar");
    } else if (grammar) {
        format.refuse("grammar", "belongs to the type grammar");
    }
    format.check_read();
    return read;
}

text::ChatTool custom_tool_of(const json::object& given, const std::string& path, CustomTools& custom) {
    const Fields outer(given, custom_tool_table(), path);
    outer.text("type");
    const json::object* const object = outer.object("custom");
    if (!object) outer.reject("custom", "an object");
    const Fields tool(*object, tool_custom_table(), outer.path("custom"));
    const auto name = tool.text("name");
    if (!name || name->empty()) tool.reject("name", "the name of a tool");
    const InputGrammar grammar = read_format(tool);
    text::ChatTool made = custom_tool(*name, tool.text("description").value_or(""), grammar, custom);
    tool.check_read();
    outer.check_read();
    return made;
}

// Reads the name in {"type": "function", "function": {"name": ...}}, or the same of type custom.
std::string named_tool(const json::object& object, const std::string& path) {
    const Fields fields(object, named_tool_table(), path);
    const auto type = fields.text("type");
    if (type != "function" && type != "custom") fields.reject("type", "function or custom");
    const std::string_view other = *type == "custom" ? "function" : "custom";
    if (fields.object(other)) fields.refuse(other, fmt::format("belongs to the type {}", other));
    const json::object* const tool = fields.object(*type);
    if (!tool) fields.reject(*type, "an object");
    const Fields inner(*tool, named_function_table(), fields.path(*type));
    const auto name = inner.text("name");
    if (!name) inner.reject("name", "the name of a tool");
    inner.check_read();
    fields.check_read();
    return std::string(*name);
}

// Some clients send arguments as an object, not as a string of JSON.
std::string arguments_of(const Fields& function) {
    const json::value* const arguments = function.find("arguments");
    if (!arguments) return "{}";
    if (!arguments->is_string() && !arguments->is_object())
        function.reject("arguments", "JSON as a text, or an object");
    return arguments->is_string() ? std::string(arguments->get_string()) : json::serialize(*arguments);
}

text::ToolCall function_call_of(const json::object& given, const std::string& path) {
    const Fields call(given, call_table(), path);
    call.text("type");
    const json::object* const function = call.object("function");
    if (!function) call.reject("function", "an object");
    const Fields fields(*function, called_function_table(), call.path("function"));
    if (!fields.text("name")) fields.reject("name", "the name of a function");
    text::ToolCall made{text_or_empty(call, "id"), text_or_empty(fields, "name"), arguments_of(fields)};
    fields.check_read();
    call.check_read();
    return made;
}

text::ToolCall custom_call_of(const json::object& given, const std::string& path) {
    const Fields call(given, custom_call_table(), path);
    call.text("type");
    const json::object* const custom = call.object("custom");
    if (!custom) call.reject("custom", "an object");
    const Fields fields(*custom, called_custom_table(), call.path("custom"));
    if (!fields.text("name")) fields.reject("name", "the name of a tool");
    text::ToolCall made{text_or_empty(call, "id"), text_or_empty(fields, "name"),
                        arguments_of_input(fields.text("input").value_or(""))};
    fields.check_read();
    call.check_read();
    return made;
}

}  // namespace

std::vector<text::ChatTool> read_function_tools(const Fields& fields) {
    std::vector<text::ChatTool> tools;
    each_object(fields, "tools", kMaximumTools, [&](const json::object& given, const std::string& path) {
        if (is_custom(given, path))
            throw ApiError(400,
                           fmt::format("{}: custom tools are not supported by this API; describe a function with a "
                                       "string as its parameter, or use /v1/chat/completions or /v1/responses",
                                       path),
                           path, "not_supported");
        tools.push_back(function_tool_of(given, path));
    });
    return tools;
}

void read_chat_tools(const Fields& fields, Conversation& conversation) {
    std::vector<text::ChatTool>& tools = conversation.options.tools;
    each_object(fields, "tools", kMaximumTools, [&](const json::object& given, const std::string& path) {
        tools.push_back(is_custom(given, path) ? custom_tool_of(given, path, conversation.custom_tools)
                                               : function_tool_of(given, path));
    });
    // A call has the name only, so that another tool of this name could not be told from the custom one.
    for (const auto& [name, grammar] : conversation.custom_tools) {
        if (std::ranges::count(tools, name, &text::ChatTool::name) > 1)
            throw ApiError(400,
                           fmt::format("tools: a custom tool needs a name of its own (found '{}' twice); rename one",
                                       printable(name, 60)),
                           "tools");
    }
}

ToolChoice read_tool_choice(const Fields& fields) {
    using enum ToolChoice::Kind;
    const json::value* const choice = fields.find("tool_choice");
    if (!choice) return {};
    constexpr std::string_view kExpected = R"("auto", "none", "required" or a function)";
    const std::string path = fields.path("tool_choice");
    if (choice->is_string()) {
        const std::string_view word = choice->get_string();
        if (word != "auto" && word != "none" && word != "required") fields.reject("tool_choice", kExpected);
        return {word == "none" ? kNone : word == "required" ? kRequired : kAuto};
    }
    if (!choice->is_object()) fields.reject("tool_choice", kExpected);
    const json::object& object = choice->get_object();
    const json::value* const type = object.if_contains("type");
    if (!type || *type != "allowed_tools") return {kNamed, {named_tool(object, path)}};
    const Fields outer(object, allowed_choice_table(), path);
    outer.text("type");
    const json::object* const allowed = outer.object("allowed_tools");
    if (!allowed) outer.reject("allowed_tools", "an object");
    const Fields inner(*allowed, allowed_tools_table(), outer.path("allowed_tools"));
    ToolChoice made = read_allowed_tools(inner, named_tool);
    outer.check_read();
    return made;
}

std::vector<text::ToolCall> read_tool_calls(const Fields& message) {
    std::vector<text::ToolCall> calls;
    each_object(message, "tool_calls", kMaximumCalls, [&](const json::object& given, const std::string& path) {
        calls.push_back(is_custom(given, path) ? custom_call_of(given, path) : function_call_of(given, path));
    });
    return calls;
}

}  // namespace tessera::server
