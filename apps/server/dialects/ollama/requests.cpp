#include "apps/server/dialects/ollama/requests.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/chat_tools.hpp"
#include "apps/server/dialects/ollama/dialect.hpp"
#include "apps/server/prompts_of_request.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace tessera::server::ollama {
namespace {

namespace json = boost::json;

// Sampling, limits and how the answer is sent.
Asked read_both(const Fields& fields, const ModelText& model) {
    static const json::object none;
    const json::object* const given = fields.object("options");
    const Fields options(given ? *given : none, options_table(), fields.path("options"));
    Asked read{{{}, read_request(options, model), {}}};
    options.check_read();
    read.delivery.stream = fields.boolean("stream").value_or(true);
    read.delivery.dialect = &kOllama;
    read.chat.probabilities = read.request.probabilities = read_probabilities(fields);
    return read;
}

// A time as Go writes it: "0", or numbers that each have a unit, as "1h30m".
bool is_time(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (text == "0") return true;
    constexpr std::string_view kDigits = "0123456789",
                               kUnits[] = {"ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"};
    do {
        const size_t begin = std::min(text.find_first_not_of("0123456789."), text.size());
        const std::string_view number = text.substr(0, begin);
        text.remove_prefix(begin);
        const std::string_view unit = text.substr(0, text.find_first_of("0123456789."));
        if (number.find_first_of(kDigits) == number.npos || std::ranges::count(number, '.') > 1 ||
            std::ranges::find(kUnits, unit) == std::end(kUnits))
            return false;
        text.remove_prefix(unit.size());
    } while (!text.empty());
    return true;
}

// Of a request for no text: what it is for, by the time for which the model is to stay.
std::string_view loading_of(const Fields& fields) {
    const json::value* const time = fields.find("keep_alive");
    if (!time) return "load";
    if (time->is_number()) return *time == 0 || *time == 0.0 ? "unload" : "load";
    if (!time->is_string() || !is_time(*fields.text("keep_alive")))
        fields.reject("keep_alive", "seconds, or a text with a unit, as \"5m\"");
    return fields.text("keep_alive")->find_first_of("123456789") == std::string_view::npos ? "unload" : "load";
}

std::optional<AskedStructure> read_format(const Fields& fields) {
    const json::value* const format = fields.find("format");
    const bool allowed = allows_unenforced(fields);
    if (!format || *format == "") return std::nullopt;
    if (*format == "json") return any_object("format");
    if (!format->is_object()) fields.reject("format", "\"json\" or a JSON schema");
    return structure_of("format", *format, {.closed = true, .allow_unenforced = allowed});
}

void read_think(const Fields& fields, const ModelText& model, text::ChatOptions& options) {
    const json::value* const think = fields.find("think");
    if (!think) return;
    if (!think->is_bool() && !think->is_string()) fields.reject("think", "true, false, low, medium or high");
    // A model without a template may still be loaded.
    if (!model.writer && *think != false) throw ApiError(400, model.writer_fault, "think");
    if (think->is_bool()) return set_thinking(think->get_bool(), "think", model, options);
    set_effort(*fields.text("think"), fields, "think", model, options);
}

text::ToolCall call_of(const json::object& object, const std::string& path) {
    const Fields call(object, call_table(), path);
    const json::object* const function = call.object("function");
    if (!function) call.reject("function", "an object");
    const Fields fields(*function, function_table(), path + ".function");
    if (!fields.text("name")) fields.reject("name", "the name of a function");
    const json::object* const arguments = fields.object("arguments");
    text::ToolCall made{text_or_empty(call, "id"), text_or_empty(fields, "name"),
                        arguments ? json::serialize(*arguments) : "{}"};
    fields.check_read();
    call.check_read();
    return made;
}

text::ChatMessage message_of(const json::object& object, const std::string& path) {
    const Fields fields(object, message_table(), path);
    const auto role = fields.text("role");
    if (!role) fields.reject("role", "system, user, assistant or tool");
    text::ChatMessage message{std::string(*role), text_or_empty(fields, "content")};
    message.reasoning = text_or_empty(fields, "thinking");
    each_object(fields, "tool_calls", kMaximumCalls, [&](const json::object& call, const std::string& where) {
        message.tool_calls.push_back(call_of(call, where));
    });
    message.tool_call_id = text_or_empty(fields, "tool_call_id");
    message.name =
        read_any(fields, {"tool_name", "name"}, [&](std::string_view name) { return fields.text(name); }).value_or("");
    check_reasoning(message, path);
    fields.check_read();
    return message;
}

}  // namespace

Asked read_chat(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, chat_table());
    Asked read = read_both(fields, model);
    const std::string_view loading = loading_of(fields);
    const json::array* const messages = fields.array("messages", kMaximumMessages);
    const bool loads = !messages || messages->empty();
    Conversation conversation{loads ? text::ChatOptions() : begin_conversation(model)};
    if (!loads) {
        each_message(fields, [&](const json::object& message, const std::string& path) {
            conversation.messages.push_back(message_of(message, path));
        });
    }
    conversation.options.tools = read_function_tools(fields);
    choose_tools({}, fields, conversation);
    read_think(fields, model, conversation.options);
    conversation.allow_unenforced = allows_unenforced(fields);
    conversation.structure = read_format(fields);
    conversation.continued = ends_begun(conversation.messages);
    fields.check_read();
    if (loads)
        read.loading = loading;
    else
        write_prompt(read, conversation, model);
    return read;
}

Asked read_generate(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, generate_table());
    Asked read = read_both(fields, model);
    const std::string_view loading = loading_of(fields);
    const bool raw = fields.boolean("raw").value_or(false);
    const auto system = fields.text("system");
    auto structure = read_format(fields);
    const auto suffix = fields.text("suffix");
    const bool fills = suffix && !suffix->empty(), plain = raw || fills;
    const bool loads = text_or_empty(fields, "prompt").empty() && !fills;
    if (plain) {
        if (system && !system->empty())
            fields.refuse("system", "begin the prompt with it: with raw or suffix no template writes it");
        if (const json::value* const think = fields.find("think"); think && *think != false)
            fields.refuse("think", "with raw or suffix no template asks for it");
    }
    Conversation conversation{loads || plain ? text::ChatOptions() : begin_conversation(model)};
    if (!plain) read_think(fields, model, conversation.options);
    if (loads) {
        fields.check_read();
        read.loading = loading;
        return read;
    }
    if (plain) {
        read.request.prompt = fills ? infill_prompt({text_or_empty(fields, "prompt"), std::string(*suffix), {}}, model)
                                    : std::move(read_prompts(fields, model, {}).front().tokens);
        read.request.show_control = true;
        read.request.show_end = false;
        fields.check_read();
        if (structure) hold_to(read.request, *structure, model, read.delivery);
        return read;
    }
    if (system && !system->empty()) conversation.messages.push_back({"system", std::string(*system)});
    conversation.messages.push_back({"user", text_or_empty(fields, "prompt")});
    conversation.structure = std::move(structure);
    fields.check_read();
    write_prompt(read, conversation, model);
    return read;
}

}  // namespace tessera::server::ollama
