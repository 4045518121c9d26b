#include "apps/server/chat_messages.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/chat_fields.hpp"
#include "apps/server/chat_tools.hpp"

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
    message.tool_calls = read_tool_calls(fields);
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

Conversation read_conversation(const Fields& fields, const ModelText& model) {
    Conversation conversation{begin_conversation(model)};
    each_message(fields, [&](const json::object& message, const std::string& path) {
        conversation.messages.push_back(message_of(message, path));
    });
    text::ChatOptions& options = conversation.options;
    read_effort(fields, model, options);
    read_variables(fields, model, options);
    read_chat_tools(fields, conversation);
    ToolChoice choice = read_tool_choice(fields);
    choice.parallel = fields.boolean("parallel_tool_calls").value_or(true);
    choose_tools(choice, fields, conversation);
    conversation.continued = continues(fields, conversation.messages);
    options.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
    return conversation;
}

}  // namespace tessera::server
