#include "apps/tessera-server/chat_messages.hpp"

#include "apps/tessera-server/api_error.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumMessages = 100'000, kMaximumParts = 10'000, kMaximumTools = 1024, kMaximumCalls = 1024;

const json::object& object_of(const json::value& value, const std::string& path) {
    if (!value.is_object()) throw ApiError(400, path + ": expected an object, found " + shown(value), path);
    return value.get_object();
}

// A text, or a list of parts that are texts.
std::string content_of(const Fields& message) {
    const json::value* const content = message.find("content");
    if (!content) return {};
    if (content->is_string()) return std::string(content->get_string());
    std::string text;
    const json::array* const parts = message.array("content", kMaximumParts);
    for (size_t i = 0; i < parts->size(); ++i) {
        const std::string path = fmt::format("{}[{}]", message.path("content"), i);
        const Fields fields(object_of((*parts)[i], path), path);
        const auto type = fields.text("type");
        if (type != "text")
            throw ApiError(501,
                           fmt::format("{}: parts of type {} are not read; this version reads text alone", path,
                                       type ? shown(*fields.find("type")) : "nothing"),
                           path, "not_supported");
        text += fields.text("text").value_or("");
    }
    return text;
}

std::string text_of(const Fields& fields, std::string_view name) {
    return std::string(fields.text(name).value_or(""));
}

// A text, or JSON that is written as one: some clients send arguments as an object.
std::string arguments_of(const Fields& function) {
    const json::value* const arguments = function.find("arguments");
    if (!arguments) return "{}";
    return arguments->is_string() ? std::string(arguments->get_string()) : json::serialize(*arguments);
}

std::vector<text::ToolCall> calls_of(const Fields& message) {
    std::vector<text::ToolCall> calls;
    const json::array* const given = message.array("tool_calls", kMaximumCalls);
    for (size_t i = 0; given && i < given->size(); ++i) {
        const std::string path = fmt::format("{}[{}]", message.path("tool_calls"), i);
        const Fields call(object_of((*given)[i], path), path);
        const json::object* const function = call.object("function");
        if (!function) call.reject("function", "an object");
        const Fields fields(*function, path + ".function");
        if (!fields.text("name")) fields.reject("name", "the name of a function");
        calls.push_back({text_of(call, "id"), text_of(fields, "name"), arguments_of(fields)});
    }
    return calls;
}

text::ChatMessage message_of(const json::value& value, const std::string& path) {
    const Fields fields(object_of(value, path), path);
    const auto role = fields.text("role");
    if (!role) fields.reject("role", "system, developer, user, assistant or tool");
    text::ChatMessage message{std::string(*role), content_of(fields)};
    message.reasoning = text_of(fields, "reasoning_content");
    message.tool_calls = calls_of(fields);
    message.tool_call_id = text_of(fields, "tool_call_id");
    message.name = text_of(fields, "name");
    return message;
}

std::vector<text::ChatTool> tools_of(const Fields& fields) {
    std::vector<text::ChatTool> tools;
    const json::array* const given = fields.array("tools", kMaximumTools);
    for (size_t i = 0; given && i < given->size(); ++i) {
        const std::string path = fmt::format("tools[{}]", i);
        const Fields tool(object_of((*given)[i], path), path);
        if (tool.text("type").value_or("function") != "function")
            tool.refuse("type", "this version knows functions alone");
        const json::object* const function = tool.object("function");
        if (!function) tool.reject("function", "an object");
        const Fields described(*function, path + ".function");
        if (!described.text("name") || described.text("name")->empty())
            described.reject("name", "the name of a function");
        const json::object* const parameters = described.object("parameters");
        tools.push_back({text_of(described, "name"), text_of(described, "description"),
                         parameters ? json::serialize(*parameters) : "{}", json::serialize((*given)[i])});
    }
    return tools;
}

// The OpenAI API's field: all of its values but "none" ask for reasoning, since templates have one kind of it.
std::optional<bool> thinking_of_effort(const Fields& fields, const ModelText& model) {
    const auto effort = fields.text("reasoning_effort");
    if (!effort) return model.writer->options().thinking;
    if (*effort == "none") return false;
    static constexpr std::string_view kEfforts[] = {"minimal", "low", "medium", "high", "xhigh"};
    if (std::ranges::find(kEfforts, *effort) == std::end(kEfforts))
        fields.reject("reasoning_effort", R"("none", "minimal", "low", "medium", "high" or "xhigh")");
    if (!model.writer->can_think())
        throw ApiError(
            400, fmt::format("reasoning_effort: the template {} has no switch for thinking", model.writer->name()),
            "reasoning_effort");
    return true;
}

// What templates of other servers take as variables.
std::optional<bool> thinking_of(const Fields& fields, const ModelText& model) {
    const json::object* const given = fields.object("chat_template_kwargs");
    if (!given) return thinking_of_effort(fields, model);
    const Fields variables(*given, "chat_template_kwargs");
    for (const auto& [key, value] : *given) {
        if (key != "thinking" && key != "enable_thinking")
            variables.refuse({key.data(), key.size()}, "this template has thinking and enable_thinking alone");
    }
    auto thinking = variables.boolean("thinking");
    if (!thinking) thinking = variables.boolean("enable_thinking");
    if (!thinking) return thinking_of_effort(fields, model);
    if (thinking.value_or(false) && !model.writer->can_think())
        throw ApiError(
            400, fmt::format("chat_template_kwargs: the template {} has no switch for thinking", model.writer->name()),
            "chat_template_kwargs");
    return thinking;
}

// The choice of tools: true if there are to be none.
bool refuses_tools(const Fields& fields) {
    const json::value* const choice = fields.find("tool_choice");
    if (!choice) return false;
    if (choice->is_string() && choice->get_string() == "none") return true;
    if (choice->is_string() && choice->get_string() == "auto") return false;
    fields.refuse("tool_choice", "only \"auto\" and \"none\" are offered: the model decides");
}

}  // namespace

text::WrittenChat write_chat(const Fields& fields, const ModelText& model) {
    if (!model.writer) throw ApiError(400, model.writer_fault, "messages");
    const json::array* const given = fields.array("messages", kMaximumMessages);
    if (!given || given->empty()) throw ApiError(400, "messages: expected a list of at least one message", "messages");
    std::vector<text::ChatMessage> messages;
    for (size_t i = 0; i < given->size(); ++i)
        messages.push_back(message_of((*given)[i], fmt::format("messages[{}]", i)));
    text::ChatOptions options = model.writer->options();
    options.thinking = thinking_of(fields, model);
    options.tools = tools_of(fields);
    if (refuses_tools(fields)) options.tools.clear();
    if (!options.tools.empty() && !fields.boolean("parallel_tool_calls").value_or(true))
        fields.refuse("parallel_tool_calls", "the model decides how many calls an answer has");
    const bool continued = fields.boolean("continue_final_message").value_or(false);
    options.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
    if (continued && fields.boolean("add_generation_prompt").value_or(false))
        throw ApiError(400,
                       "continue_final_message: excludes add_generation_prompt: a message is continued or answered",
                       "continue_final_message");
    text::WrittenChat chat =
        continued ? model.writer->write_continued(messages, options) : model.writer->write(messages, options);
    // A model that has been given no tools writes text.
    if (options.tools.empty()) chat.reply.tools = text::ToolSyntax::kNone;
    return chat;
}

}  // namespace tessera::server
