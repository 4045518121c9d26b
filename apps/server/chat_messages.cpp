#include "apps/server/chat_messages.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/chat_fields.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <span>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumVariables = 64;

constexpr std::string_view kContent = "a text, or a list of parts that are texts";

// A text, or a list of parts that are texts.
std::string content_of(const Fields& message) {
    const json::value* const content = message.find("content");
    if (!content) return {};
    if (content->is_string()) return std::string(content->get_string());
    if (!content->is_array()) message.reject("content", kContent);
    std::string text;
    each_object(message, "content", kMaximumParts, [&](const json::object& part, const std::string& path) {
        // Before other fields are looked at, which parts of other types have of their own.
        const json::value* const type = part.if_contains("type");
        if (!type || *type != "text")
            throw ApiError(400,
                           fmt::format("{}: parts of type {} are not read; this version reads text alone", path,
                                       type ? shown(*type) : "nothing"),
                           path, "not_supported");
        const Fields fields(part, part_table(), path);
        fields.text("type");
        const auto given = fields.text("text");
        if (!given) fields.reject("text", "a text");
        text += *given;
        fields.check_read();
    });
    return text;
}

// Before other fields are looked at, which tools and calls of other types have of their own.
void check_function(const json::object& object, const std::string& path) {
    const json::value* const type = object.if_contains("type");
    if (!type || type->is_null() || *type == "function") return;
    throw ApiError(400,
                   fmt::format("{}: the type {} is not read here; describe a function, for a custom tool one with a "
                               "text as its parameter, or use /v1/responses",
                               path, shown(*type)),
                   path, "not_supported");
}

// A text, or JSON that is written as one: some clients send arguments as an object.
std::string arguments_of(const Fields& function) {
    const json::value* const arguments = function.find("arguments");
    if (!arguments) return "{}";
    if (!arguments->is_string() && !arguments->is_object())
        function.reject("arguments", "JSON as a text, or an object");
    return arguments->is_string() ? std::string(arguments->get_string()) : json::serialize(*arguments);
}

std::vector<text::ToolCall> calls_of(const Fields& message) {
    std::vector<text::ToolCall> calls;
    each_object(message, "tool_calls", kMaximumCalls, [&](const json::object& given, const std::string& path) {
        check_function(given, path);
        const Fields call(given, call_table(), path);
        call.text("type");
        const json::object* const function = call.object("function");
        if (!function) call.reject("function", "an object");
        const Fields fields(*function, called_function_table(), path + ".function");
        if (!fields.text("name")) fields.reject("name", "the name of a function");
        calls.push_back({text_or_empty(call, "id"), text_or_empty(fields, "name"), arguments_of(fields)});
        fields.check_read();
        call.check_read();
    });
    return calls;
}

text::ChatMessage message_of(const json::object& object, const std::string& path) {
    const Fields fields(object, message_table(), path);
    const auto role = fields.text("role");
    static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
    if (!role || std::ranges::find(kRoles, *role) == std::end(kRoles))
        fields.reject("role", "system, developer, user, assistant or tool");
    text::ChatMessage message{std::string(*role), content_of(fields)};
    message.reasoning = read_any(fields, {"reasoning_content", "reasoning"}, [&](std::string_view name) {
                            return fields.text(name);
                        }).value_or("");
    message.tool_calls = calls_of(fields);
    message.tool_call_id = text_or_empty(fields, "tool_call_id");
    message.name = text_or_empty(fields, "name");
    // An assistant's may be calls or reasoning alone.
    if (!fields.has("content") && message.tool_calls.empty() && message.reasoning.empty())
        fields.reject("content", kContent);
    check_reasoning(message, path);
    if (!message.tool_call_id.empty() && *role != "tool")
        throw ApiError(400, fmt::format("{}: only a message of the role tool answers a call", path), path);
    fields.check_read();
    return message;
}

void read_effort(const Fields& fields, const ModelText& model, text::ChatOptions& options) {
    if (const auto effort = fields.text("reasoning_effort"))
        set_effort(*effort, fields, "reasoning_effort", model, options);
}

// Variables of the template, as other servers take them.
void read_variables(const Fields& fields, const ModelText& model, text::ChatOptions& options) {
    const json::object* const given = fields.object("chat_template_kwargs");
    if (!given) return;
    const std::string path = fields.path("chat_template_kwargs");
    if (given->size() > kMaximumVariables)
        throw ApiError(400, fmt::format("{}: expected at most {} variables", path, kMaximumVariables), path);
    std::optional<bool> thinking;
    for (const auto& [key, value] : *given) {
        const std::string name(key);
        const std::string place = path + "." + name;
        if (name == "thinking" || name == "enable_thinking") {
            if (!value.is_bool())
                throw ApiError(400, fmt::format("{}: expected true or false, found {}", place, shown(value)), place);
            if (thinking && *thinking != value.get_bool())
                throw ApiError(400, path + ": thinking and enable_thinking contradict each other", path);
            thinking = value.get_bool();
            continue;
        }
        if (!text::is_free_variable(name) || !model.writer->reads(name))
            throw ApiError(400, fmt::format("{}: {} has no such variable", place, model.writer->title()), place);
        auto read = text::parse_python_json(json::serialize(value));
        if (!read) throw ApiError(400, place + ": expected JSON in UTF-8", place);
        set_variable(options, name, std::move(*read));
    }
    if (!thinking) return;
    if (fields.has("reasoning_effort") && options.thinking && options.thinking != thinking)
        fields.contradict("chat_template_kwargs", "reasoning_effort");
    set_thinking(*thinking, "chat_template_kwargs", model, options);
}

// The name in {"type": "function", "function": {"name": ...}}.
std::string named_function(const json::object& object, const std::string& path) {
    const Fields fields(object, named_tool_table(), path);
    if (fields.text("type") != "function") fields.reject("type", "function");
    const json::object* const function = fields.object("function");
    if (!function) fields.reject("function", "an object");
    const Fields inner(*function, named_function_table(), path + ".function");
    const auto name = inner.text("name");
    if (!name) inner.reject("name", "the name of a function");
    inner.check_read();
    fields.check_read();
    return std::string(*name);
}

// "auto", "none", "required", a function, or {"type": "allowed_tools", "allowed_tools": {"mode": "required", ...}}.
ToolChoice choice_of(const Fields& fields) {
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
    if (!type || *type != "allowed_tools") return {kNamed, {named_function(object, path)}};
    const Fields outer(object, allowed_choice_table(), path);
    outer.text("type");
    const json::object* const allowed = outer.object("allowed_tools");
    if (!allowed) outer.reject("allowed_tools", "an object");
    const Fields inner(*allowed, allowed_tools_table(), outer.path("allowed_tools"));
    ToolChoice made = read_allowed_tools(inner, named_function);
    outer.check_read();
    return made;
}

// Whether the last message is an answer that has been begun: if the request says so, or says nothing and it is the
// assistant's.
bool continues(const Fields& fields, std::span<const text::ChatMessage> messages) {
    const auto asked = fields.boolean("continue_final_message"), opened = fields.boolean("add_generation_prompt");
    if (asked.value_or(false) && opened.value_or(false))
        throw ApiError(400,
                       "continue_final_message: excludes add_generation_prompt: a message is continued or answered",
                       "continue_final_message");
    if (asked || opened) return asked.value_or(false);
    return ends_begun(messages, ", or say what follows with add_generation_prompt");
}

}  // namespace

std::vector<text::ChatTool> read_function_tools(const Fields& fields) {
    std::vector<text::ChatTool> tools;
    each_object(fields, "tools", kMaximumTools, [&](const json::object& given, const std::string& path) {
        check_function(given, path);
        const Fields tool(given, tool_table(), path);
        tool.text("type");
        const json::object* const function = tool.object("function");
        if (!function) tool.reject("function", "an object");
        const Fields described(*function, tool_function_table(), path + ".function");
        if (!described.text("name") || described.text("name")->empty())
            described.reject("name", "the name of a function");
        const json::object* const parameters = described.object("parameters");
        tools.push_back({text_or_empty(described, "name"), text_or_empty(described, "description"),
                         parameters ? json::serialize(*parameters) : "{}", json::serialize(given),
                         described.boolean("strict").value_or(false)});
        described.check_read();
        tool.check_read();
    });
    return tools;
}

Conversation read_conversation(const Fields& fields, const ModelText& model) {
    Conversation conversation{begin_conversation(model)};
    each_message(fields, [&](const json::object& message, const std::string& path) {
        conversation.messages.push_back(message_of(message, path));
    });
    text::ChatOptions& options = conversation.options;
    read_effort(fields, model, options);
    read_variables(fields, model, options);
    options.tools = read_function_tools(fields);
    ToolChoice choice = choice_of(fields);
    choice.parallel = fields.boolean("parallel_tool_calls").value_or(true);
    choose_tools(choice, fields, conversation);
    conversation.continued = continues(fields, conversation.messages);
    options.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
    return conversation;
}

}  // namespace tessera::server
