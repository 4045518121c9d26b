#include "apps/server/dialects/anthropic/dialect.hpp"

#include "apps/server/generation_fields.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

namespace tessera::server::anthropic {
namespace {

using enum Standing;

constexpr std::string_view kNoCitations = "this version cites nothing";
constexpr std::string_view kServerTools = "tools that a server runs are not offered";

constexpr FieldRow kConversation[] = {
    {"messages", kHonoured, "the conversation; a last message of the assistant's is continued"},
    {"system", kHonoured,
     "a text, or blocks of text; a line at its beginning that is x-anthropic-billing-header is left out, which changes "
     "with every request and is no part of the prompt"},
    {"tools", kHonoured, "functions that the model may call"},
    {"tool_choice", kHonoured, "auto, any, tool, none"},
    {"thinking", kHonoured, "whether the model thinks before it answers, where it has the choice"},
    {"output_config", kHonoured, "effort, format"},
    {"unenforced", kHonoured, kUnenforcedTold},

    {"model", kHarmless, "the one model answers, whatever it is called"},
    {"cache_control", kHarmless, kAllCached},
    {"context_management", kHarmless, "nothing of a conversation is cleared; one that is too long is refused"},
    {"compaction", kRefused, "nothing is summarised here; send a shorter conversation", "[]"},
    {"billing_policy", kHarmless, kBookkeeping},
    {"workspace_id", kHarmless, kBookkeeping},
    {"mcp_servers", kRefused, kServerTools},
    {"container", kRefused, kServerTools},
    {"output_format", kRefused, "use output_config.format"},
};

constexpr FieldRow kGeneration[] = {
    {"max_tokens", kHonoured, "tokens of the answer at most, reasoning included; needed"},
    {"stop_sequences", kHonoured, "texts that end the answer"},
    {"stream", kHonoured, "server-sent events"},
    {"seed", kHonoured, "of the random numbers; -1: random, whatever the server's is"},
    {"metadata", kHarmless, kBookkeeping},
    {"service_tier", kHarmless, "all requests of a client are served alike"},
    {"inference_geo", kHarmless, "there is one place"},
    {"speed", kHarmless, "answers come as fast as they can"},
    {"diagnostics", kHarmless, "timings.cache_differs says where a prompt differs from what is cached"},
    {"fallbacks", kHarmless, "the one model answers, and nothing is declined"},
    {"user_profile_id", kHarmless, kBookkeeping},
    {"fallback_credit_token", kHarmless, kBookkeeping},
    {"thread", kHonoured,
     "refused with the details thread_unsupported_request, for which clients send the whole conversation instead"},
};

constexpr FieldRow kMessage[] = {
    {"role", kHonoured, "user, assistant or system"},
    {"content", kHonoured, "a text, or blocks"},
    {"id", kHarmless, kBookkeeping},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kText[] = {
    {"type", kHonoured, "text"},
    {"text", kHonoured, "the text"},
    {"cache_control", kHarmless, kAllCached},
    {"citations", kRefused, kNoCitations, "[[]]"},
};

constexpr FieldRow kThinking[] = {
    {"type", kHonoured, "thinking"},
    {"thinking", kHonoured, "the assistant's reasoning, where the template writes it"},
    {"signature", kHonoured, "the same, of an answer of this server that omitted it; others are of no effect"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kRedacted[] = {
    {"type", kHonoured, "redacted_thinking"},
    {"data", kHarmless, "encrypted by another server: no model reads it"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kToolUse[] = {
    {"type", kHonoured, "tool_use"},           {"id", kHonoured, "a text"},
    {"name", kHonoured, "of the function"},    {"input", kHonoured, "its arguments, an object"},
    {"cache_control", kHarmless, kAllCached},  {"caller", kHarmless, kBookkeeping},
    {"toolset_name", kHarmless, kBookkeeping},
};

constexpr FieldRow kToolResult[] = {
    {"type", kHonoured, "tool_result"},
    {"tool_use_id", kHonoured, "the call that it answers"},
    {"content", kHonoured,
     "a text, or blocks of text; of an image or a document the model is told that it cannot be shown"},
    {"is_error", kHarmless, "the text says what failed"},
    {"toolset_name", kHarmless, kBookkeeping},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kUnread[] = {
    {"type", kHonoured, "image or document"}, {"source", kHarmless, kNotShown},
    {"title", kHarmless, kNotShown},          {"context", kHarmless, kNotShown},
    {"citations", kHarmless, kNotShown},      {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kDocument[] = {
    {"type", kHonoured, "document"},
    {"source", kHonoured, "a text; others are refused in a message"},
    {"title", kHonoured, "a text, which stands before the document"},
    {"context", kHonoured, "a text, which stands before the document"},
    {"citations", kHonoured, "an object"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kDocumentSource[] = {
    {"type", kHonoured, "text or content"},
    {"data", kHonoured, "with type text: the text"},
    {"content", kHonoured, "with type content: a text, or blocks of text"},
    {"media_type", kHarmless, "the text is written as it is"},
};

constexpr FieldRow kSearchResult[] = {
    {"type", kHonoured, "search_result"},
    {"title", kHonoured, "a text, which stands before the result"},
    {"source", kHonoured, "a text, which stands before the result"},
    {"content", kHonoured, "blocks of text"},
    {"citations", kHonoured, "an object"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kCitations[] = {
    {"enabled", kRefused, kNoCitations},
};

constexpr FieldRow kTool[] = {
    {"type", kHonoured, "custom"},
    {"name", kHonoured, "a text"},
    {"description", kHonoured, "a text"},
    {"input_schema", kHonoured, "a JSON schema, for the model to read"},
    {"strict", kHonoured, "whether arguments are held to the schema"},
    {"cache_control", kHarmless, kAllCached},
    {"eager_input_streaming", kHarmless, "arguments are streamed as the model writes them"},
    {"defer_loading", kHonoured, "true: the model is told of it from where a message names it"},
    {"allowed_callers", kRefused, kServerTools, R"([[], ["direct"]])"},
    {"input_examples", kRefused, "give examples in the description", "[[]]"},
};

constexpr FieldRow kFoundTool[] = {
    {"type", kHonoured, "tool_reference"},
    {"tool_name", kHonoured, "of one of the tools, which the model is told of"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kToolChange[] = {
    {"type", kHonoured, "tool_addition or tool_removal"},
    {"tool", kHonoured, "which one"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kChangedTool[] = {
    {"type", kHonoured, "tool_reference, or to add one, tool_definition"},
    {"name", kHonoured, "of one of the tools, with type tool_reference"},
    {"definition", kHonoured, "a tool as the field tools has it, with type tool_definition"},
};

constexpr FieldRow kToolChoice[] = {
    {"type", kHonoured, "auto, any, tool, none"},
    {"name", kHonoured, "of the tool that is to be called"},
    {"disable_parallel_tool_use", kHonoured, "true: the answer has one call at most"},
};

constexpr FieldRow kThinkingOption[] = {
    {"type", kHonoured,
     "enabled: 400 for a model that does not think; disabled; adaptive: enabled where the model has the choice"},
    {"budget_tokens", kHonoured, "tokens after which reasoning is ended; with type enabled"},
    {"display", kHonoured,
     "omitted, updates: reasoning is told as a signature alone, which is read where it is sent back; summarized, full: "
     "all of it is told"},
};

constexpr FieldRow kOutputConfig[] = {
    {"effort", kHonoured,
     "low, medium, high, xhigh or max, for templates that know efforts; others have no use for it"},
    {"format", kHonoured, "json_schema: the answer is held to it"},
    {"task_budget", kRefused, "max_tokens bounds an answer; a task has no bound"},
};

constexpr FieldRow kFormat[] = {
    {"type", kHonoured, "json_schema"},
    {"schema", kHonoured, "a JSON schema"},
};

std::string_view error_type(const ApiError& error) {
    if (error.status() == 413) return "request_too_large";
    if (error.status() == 503) return "overloaded_error";
    return error.status() >= 500 ? "api_error" : error_type_of(error.status());
}

// Clients that shorten conversations look for the API's own words.
std::string message_of(const ApiError& error) {
    if (error.code() != "context_length_exceeded" || error.more.size() < 2) return error.what();
    return fmt::format("prompt is too long: {} tokens > {} maximum; {}", error.more[0].second, error.more[1].second,
                       error.what());
}

std::string error_json(const ApiError& error) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("type", "error").key("error").begin_object();
    json.member("type", error_type(error)).member("message", message_of(error));
    if (!error.details.empty()) json.key("details").json(error.details);
    json.end_object().end_object();
    return out;
}

std::span<const FieldTable* const> tables() {
    static const FieldTable* const all[] = {&messages_table(),
                                            &count_table(),
                                            &message_table(),
                                            &system_part_table(),
                                            &text_table(),
                                            &thinking_table(),
                                            &redacted_thinking_table(),
                                            &tool_use_table(),
                                            &tool_result_table(),
                                            &unread_table(),
                                            &document_table(),
                                            &document_source_table(),
                                            &search_result_table(),
                                            &citations_table(),
                                            &tool_table(),
                                            &tool_choice_table(),
                                            &thinking_option_table(),
                                            &output_config_table(),
                                            &format_table(),
                                            &found_tool_table(),
                                            &tool_change_table(),
                                            &changed_tool_table()};
    return all;
}

}  // namespace

const Dialect kAnthropic{
    .error_json = error_json,
    .silence = "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    .tables = tables,
};

const FieldTable& messages_table() {
    static const FieldTable table("/v1/messages", {kConversation, kGeneration, sampling_rows()});
    return table;
}

const FieldTable& count_table() {
    // All that concerns generation alone is harmless where tokens are counted.
    static const std::vector<FieldRow> others = without_effect({kGeneration, sampling_rows()});
    static const FieldTable table("/v1/messages/count_tokens", {kConversation, others});
    return table;
}

const FieldTable& message_table() {
    static const FieldTable table("a message of /v1/messages", {kMessage});
    return table;
}

const FieldTable& system_part_table() {
    static const FieldTable table("a block of the system text of /v1/messages", {kText});
    return table;
}

const FieldTable& text_table() {
    static const FieldTable table("a block text of /v1/messages", {kText});
    return table;
}

const FieldTable& thinking_table() {
    static const FieldTable table("a block thinking of /v1/messages", {kThinking});
    return table;
}

const FieldTable& redacted_thinking_table() {
    static const FieldTable table("a block redacted_thinking of /v1/messages", {kRedacted});
    return table;
}

const FieldTable& tool_use_table() {
    static const FieldTable table("a block tool_use of /v1/messages", {kToolUse});
    return table;
}

const FieldTable& tool_result_table() {
    static const FieldTable table("a block tool_result of /v1/messages", {kToolResult});
    return table;
}

const FieldTable& tool_table() {
    static const FieldTable table("a tool of /v1/messages", {kTool});
    return table;
}

const FieldTable& unread_table() {
    static const FieldTable table("a block image or document of a tool_result of /v1/messages", {kUnread});
    return table;
}

const FieldTable& document_table() {
    static const FieldTable table("a block document of /v1/messages", {kDocument});
    return table;
}

const FieldTable& document_source_table() {
    static const FieldTable table("the source of a block document of /v1/messages", {kDocumentSource});
    return table;
}

const FieldTable& search_result_table() {
    static const FieldTable table("a block search_result of /v1/messages", {kSearchResult});
    return table;
}

const FieldTable& citations_table() {
    static const FieldTable table("citations of a block document or search_result of /v1/messages", {kCitations});
    return table;
}

const FieldTable& found_tool_table() {
    static const FieldTable table("a block tool_reference of /v1/messages", {kFoundTool});
    return table;
}

const FieldTable& tool_change_table() {
    static const FieldTable table("a block tool_addition or tool_removal of /v1/messages", {kToolChange});
    return table;
}

const FieldTable& changed_tool_table() {
    static const FieldTable table("the tool of a block tool_addition or tool_removal of /v1/messages", {kChangedTool});
    return table;
}

const FieldTable& tool_choice_table() {
    static const FieldTable table("tool_choice of /v1/messages", {kToolChoice});
    return table;
}

const FieldTable& thinking_option_table() {
    static const FieldTable table("thinking of /v1/messages", {kThinkingOption});
    return table;
}

const FieldTable& output_config_table() {
    static const FieldTable table("output_config of /v1/messages", {kOutputConfig});
    return table;
}

const FieldTable& format_table() {
    static const FieldTable table("output_config.format of /v1/messages", {kFormat});
    return table;
}

}  // namespace tessera::server::anthropic
