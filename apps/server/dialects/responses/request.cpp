#include "apps/server/dialects/responses/request.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/dialects/responses/dialect.hpp"
#include "apps/server/dialects/responses/grouped_tools.hpp"
#include "apps/server/dialects/responses/input_items.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace tessera::server::responses {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumIncluded = 64;
constexpr std::string_view kReasoningAgain = "reasoning.encrypted_content";
// What belongs to images and to tools that a server runs.
constexpr std::string_view kNeverThere[] = {"code_interpreter_call.outputs",  "computer_call_output.output.image_url",
                                            "file_search_call.results",       "message.input_image.image_url",
                                            "web_search_call.action.sources", "web_search_call.results"};

std::string named_function(const json::object& object, const std::string& path) {
    const Fields fields(object, named_tool_table(), path);
    if (const auto type = fields.text("type"); type != "function" && type != "custom")
        fields.reject("type", "function or custom");
    const auto name = fields.text("name");
    if (!name) fields.reject("name", "the name of a function");
    std::string whole = whole_name(fields.text("namespace").value_or(""), *name);
    fields.check_read();
    return whole;
}

// "auto", "none", "required", a function, or {"type": "allowed_tools", "mode": "required", "tools": [...]}.
ToolChoice choice_of(const Fields& fields) {
    using enum ToolChoice::Kind;
    constexpr std::string_view kExpected = R"("auto", "none", "required", a function or allowed_tools)";
    const std::string path = fields.path("tool_choice");
    const json::value* const choice = fields.find("tool_choice");
    if (!choice || *choice == "auto") return {};
    if (*choice == "none") return {kNone};
    if (*choice == "required") return {kRequired};
    if (!choice->is_object()) fields.reject("tool_choice", kExpected);
    const json::object& object = choice->get_object();
    const json::value* const type = object.if_contains("type");
    if (!type || *type != "allowed_tools") return {kNamed, {named_function(object, path)}};
    const Fields allowed(object, allowed_tools_table(), path);
    allowed.text("type");
    return read_allowed_tools(allowed, named_function);
}

std::optional<AskedStructure> read_format(const Fields& fields, structure::SchemaOptions options) {
    const json::object* const given = fields.object("format");
    if (!given) return std::nullopt;
    const Fields format(*given, format_table(), fields.path("format"));
    const auto type = format.text("type");
    const json::value* const schema = format.find("schema");
    format.text("name");
    format.text("description");
    options.closed = format.boolean("strict").value_or(false);
    std::optional<AskedStructure> made;
    if (type == "json_schema") {
        if (!schema) format.reject("schema", "a JSON schema");
        made = structure_of(format.path("schema"), *schema, options);
    } else if (type == "json_object") {
        made = any_object(fields.path("format"));
    } else if (type != "text") {
        format.reject("type", R"("text", "json_object" or "json_schema")");
    }
    if (schema && type != "json_schema") format.refuse("schema", "belongs to the type json_schema");
    format.check_read();
    return made;
}

std::optional<AskedStructure> read_text(const Fields& fields, bool allow_unenforced) {
    const json::object* const given = fields.object("text");
    if (!given) return std::nullopt;
    const Fields text(*given, text_table(), fields.path("text"));
    auto made = read_format(text, {.allow_unenforced = allow_unenforced});
    text.check_read();
    return made;
}

void read_reasoning(const Fields& fields, const ModelText& model, text::ChatOptions& options) {
    const json::object* const given = fields.object("reasoning");
    if (!given) return;
    const Fields reasoning(*given, reasoning_table(), fields.path("reasoning"));
    if (const auto effort = reasoning.text("effort")) set_effort(*effort, reasoning, "effort", model, options);
    reasoning.check_read();
}

// Whether reasoning is to be told a second time, as what is sent back.
bool returns_reasoning(const Fields& fields) {
    const json::array* const list = fields.array("include", kMaximumIncluded);
    bool found = false;
    for (size_t i = 0; list && i < list->size(); ++i) {
        if (!(*list)[i].is_string()) fields.reject("include", "a list of texts");
        if ((*list)[i] == "message.output_text.logprobs")
            fields.refuse("include", "probabilities are told by /v1/chat/completions");
        const std::string_view asked = (*list)[i].get_string();
        if (asked != kReasoningAgain && std::ranges::find(kNeverThere, asked) == std::end(kNeverThere))
            fields.refuse("include", fmt::format("expected {} or {}, found {}", kReasoningAgain,
                                                 fmt::join(kNeverThere, ", "), shown((*list)[i])));
        found = found || asked == kReasoningAgain;
    }
    return found;
}

// What an answer repeats of its request, as the API has it.
ChatDelivery::Members repeated(const Fields& fields, const session::Request& request) {
    const auto given = [&](std::string_view name, std::string_view otherwise) {
        const json::value* const value = fields.find(name);
        return value ? json::serialize(*value) : std::string(otherwise);
    };
    const auto number = [](float value) {
        std::string out;
        text::JsonWriter(out).value(value);
        return out;
    };
    return {
        {"instructions", given("instructions", "null")},
        {"max_output_tokens", given("max_output_tokens", "null")},
        {"metadata", given("metadata", "{}")},
        {"parallel_tool_calls", given("parallel_tool_calls", "true")},
        {"previous_response_id", "null"},
        {"reasoning", given("reasoning", R"({"effort":null,"summary":null})")},
        {"store", "false"},
        {"temperature", number(request.sampling.temperature)},
        {"text", given("text", R"({"format":{"type":"text"}})")},
        {"tool_choice", given("tool_choice", R"("auto")")},
        {"tools", given("tools", "[]")},
        {"top_p", number(request.sampling.top_p)},
        {"truncation", R"("disabled")"},
    };
}

}  // namespace

ChatRequest read_response(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, responses_table());
    ChatRequest read{read_delivery(fields), read_request(fields, model), {}};
    read.delivery.dialect = &kResponses;
    Conversation conversation{begin_conversation(model)};
    conversation.messages = read_input(fields, fields.text("instructions").value_or(""));
    GroupedTools tools = read_tools(fields);
    conversation.options.tools = std::move(tools.tools);
    conversation.custom_tools = std::move(tools.custom);
    read.chat.grouped = std::move(tools.names);
    ToolChoice choice = choice_of(fields);
    choice.parallel = fields.boolean("parallel_tool_calls").value_or(true);
    choose_tools(choice, fields, conversation);
    read_reasoning(fields, model, conversation.options);
    conversation.allow_unenforced = allows_unenforced(fields);
    conversation.structure = read_text(fields, conversation.allow_unenforced);
    conversation.continued = ends_begun(conversation.messages);
    fields.object("metadata");
    read.chat.returns_reasoning = returns_reasoning(fields);
    read.chat.repeated = repeated(fields, read.request);
    fields.check_read();
    write_prompt(read, conversation, model);
    return read;
}

}  // namespace tessera::server::responses
