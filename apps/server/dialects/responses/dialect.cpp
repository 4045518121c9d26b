#include "apps/server/dialects/responses/dialect.hpp"

#include "apps/server/generation_fields.hpp"

namespace tessera::server::responses {
namespace {

using enum Standing;

constexpr std::string_view kNothingKept = "answers are not kept: send the whole conversation as input";
constexpr std::string_view kNotes = "notes of another server on its answer, which no template writes";

constexpr std::string_view kCallTells = "the call that it answers says which tool";

constexpr FieldRow kRequest[] = {
    {"input", kHonoured,
     "a text, or a list of messages, function_call, function_call_output, custom_tool_call, custom_tool_call_output "
     "and reasoning; a last message of the assistant's is continued"},
    {"instructions", kHonoured, "the first message of the system"},
    {"tools", kHonoured, "functions and custom tools that the model may call"},
    {"tool_choice", kHonoured,
     "auto, none; required, a function or allowed_tools of mode required: the answer is such calls; allowed_tools of "
     "mode "
     "auto: it may be"},
    {"parallel_tool_calls", kHonoured, "false: the answer has one call at most"},
    {"text", kHonoured, "format"},
    {"unenforced", kHonoured, kUnenforcedTold},
    {"reasoning", kHonoured, "effort"},
    {"include", kHonoured,
     "reasoning.encrypted_content: reasoning once more as what clients send back of it; what belongs to images and to "
     "tools that a server runs, of which there are none, adds nothing"},
    {"max_output_tokens", kHonoured, "tokens of the answer at most, reasoning included"},
    {"metadata", kHonoured, "repeated in the answer"},
    {"stream", kHonoured, "server-sent events"},
    {"stream_options", kHonoured, "include_obfuscation"},
    {"seed", kHonoured, "of the random numbers; -1: random, whatever the server's is"},
    {"stop", kHonoured, "a text or a list of texts that end the answer; empty ones are none"},

    {"model", kHarmless, "the one model answers, whatever it is called"},
    {"store", kHint, "nothing is stored, as false asks; clients leave out the default, which is true", "[false]",
     "[true]"},
    {"user", kHarmless, kBookkeeping},
    {"safety_identifier", kHarmless, kBookkeeping},
    {"client_metadata", kHarmless, kBookkeeping},
    {"prompt_cache_key", kHarmless, "whatever is cached for the key of the request is found"},
    {"prompt_cache_retention", kHarmless, "what is cached stays as long as its memory is not needed"},
    {"service_tier", kHarmless, "all requests of a client are served alike"},
    {"priority", kHarmless, "all requests of a client are served alike"},
    {"prompt_cache_options", kHonoured, kCacheOptionsTold},
    {"max_tool_calls", kHarmless, "of tools that a server runs, of which there are none"},
    {"context_management", kHarmless, "nothing of a conversation is cleared; one that is too long is refused"},

    {"previous_response_id", kRefused, kNothingKept},
    {"conversation", kRefused, kNothingKept},
    {"background", kRefused, "answers are not kept: ask for a stream"},
    {"prompt", kRefused, "there are no stored prompts: send the text as instructions and input"},
    {"moderation", kRefused, "nothing is moderated"},
    {"truncation", kHint, "prompts are never cut; one that is too long is refused", R"(["disabled"])", R"(["auto"])"},
    {"top_logprobs", kRefused, "use /v1/chat/completions"},
    {"modalities", kRefused, "this version reads and makes text alone", R"([["text"], []])"},
};

constexpr FieldRow kMessage[] = {
    {"type", kHonoured, "message, or nothing"},
    {"role", kHonoured, "system, developer, user or assistant"},
    {"content", kHonoured, "a text, or parts that are texts"},
    {"id", kHarmless, kBookkeeping},
    {"status", kHarmless, kBookkeeping},
    {"phase", kHarmless, kBookkeeping},
    {"end_turn", kHarmless, kBookkeeping},
};

constexpr FieldRow kAnyCall[] = {
    {"call_id", kHonoured, "a text"},
    {"id", kHarmless, kBookkeeping},
    {"status", kHarmless, kBookkeeping},
    {"caller", kHarmless, kBookkeeping},
};

constexpr FieldRow kCall[] = {
    {"type", kHonoured, "function_call"},
    {"name", kHonoured, "of the function"},
    {"arguments", kHonoured, "JSON as a text"},
    {"namespace", kHonoured, "of the function, where it is of one"},
};

constexpr FieldRow kCustomCall[] = {
    {"type", kHonoured, "custom_tool_call"},
    {"name", kHonoured, "of the tool"},
    {"input", kHonoured, "a text"},
    {"namespace", kHonoured, "of the tool, where it is of one"},
};

constexpr FieldRow kAnyCallOutput[] = {
    {"call_id", kHonoured, "the call that it answers"},
    {"output", kHonoured,
     "a text, or parts that are texts; of an image or a file the model is told that it cannot be shown"},
    {"name", kHarmless, kCallTells},
    {"namespace", kHarmless, kCallTells},
    {"caller", kHarmless, kBookkeeping},
    {"id", kHarmless, kBookkeeping},
    {"status", kHarmless, kBookkeeping},
};

constexpr FieldRow kCallOutput[] = {
    {"type", kHonoured, "function_call_output"},
};

constexpr FieldRow kCustomCallOutput[] = {
    {"type", kHonoured, "custom_tool_call_output"},
};

constexpr FieldRow kReasoningItem[] = {
    {"type", kHonoured, "reasoning"},
    {"content", kHonoured, "the assistant's reasoning, where the template writes it"},
    {"encrypted_content", kHonoured,
     "the same, of an answer of this server, where there is no content; no model reads what another has encrypted"},
    {"summary", kHarmless, "a summary is not what the model wrote"},
    {"id", kHarmless, kBookkeeping},
    {"status", kHarmless, kBookkeeping},
};

constexpr FieldRow kPart[] = {
    {"type", kHonoured, "input_text, output_text or text"},
    {"text", kHonoured, "the text"},
    {"annotations", kHarmless, kNotes},
    {"logprobs", kHarmless, kNotes},
    {"prompt_cache_breakpoint", kHarmless, kAllCached},
};

constexpr FieldRow kUnread[] = {
    {"type", kHonoured, "input_image or input_file"},
    {"image_url", kHarmless, kNotShown},
    {"detail", kHarmless, kNotShown},
    {"file_id", kHarmless, kNotShown},
    {"file_data", kHarmless, kNotShown},
    {"file_url", kHarmless, kNotShown},
    {"filename", kHarmless, kNotShown},
    {"prompt_cache_breakpoint", kHarmless, kAllCached},
};

constexpr FieldRow kReasoningPart[] = {
    {"type", kHonoured, "reasoning_text or text"},
    {"text", kHonoured, "the text"},
};

constexpr std::string_view kNoPrograms = "no programs run here that could call tools";

constexpr FieldRow kTool[] = {
    {"type", kHonoured, "function"},
    {"name", kHonoured, "a text"},
    {"description", kHonoured, "a text"},
    {"parameters", kHonoured, "a JSON schema, for the model to read"},
    {"strict", kHonoured, "whether arguments are held to the schema"},
    {"defer_loading", kRefused, "all tools are described to the model from the beginning"},
    {"output_schema", kHarmless, "results are taken as they are sent"},
    {"allowed_callers", kRefused, kNoPrograms, R"([[], ["direct"]])"},
};

constexpr FieldRow kCustomTool[] = {
    {"type", kHonoured, "custom"},
    {"name", kHonoured, "a text"},
    {"description", kHonoured, "a text"},
    {"format", kHonoured, "what the text is like that it is called with"},
    {"defer_loading", kRefused, "all tools are described to the model from the beginning"},
    {"allowed_callers", kRefused, kNoPrograms, R"([[], ["direct"]])"},
};

constexpr FieldRow kCustomFormat[] = {
    {"type", kHonoured, "text or grammar"},
    {"syntax", kHonoured, "lark or regex, with type grammar"},
    {"definition", kHonoured,
     "with type grammar; the model reads it, and its calls are held to it; with lark where the model writes arguments "
     "as "
     "JSON and with what docs/server.md lists, else tool_choice auto describes it only and required is refused"},
};

constexpr FieldRow kNamespace[] = {
    {"type", kHonoured, "namespace"},
    {"name", kHonoured, "what the names of its functions begin with for the model, before two underscores"},
    {"description", kHonoured, "a text, which stands before that of its first function"},
    {"tools", kHonoured, "functions and custom tools"},
};

constexpr FieldRow kNamedTool[] = {
    {"type", kHonoured, "function or custom"},
    {"name", kHonoured, "of one of the tools"},
    {"namespace", kHonoured, "its namespace, where it is of one"},
};

constexpr FieldRow kAllowedTools[] = {
    {"type", kHonoured, "allowed_tools"},
    {"mode", kHonoured, "required"},
    {"tools", kHonoured, "a list of functions by their names"},
};

constexpr FieldRow kReasoning[] = {
    {"effort", kHonoured, "none, or minimal to max: thinking, and the variable of templates that have it"},
    {"summary", kHarmless, "reasoning itself is a part of the answer"},
    {"generate_summary", kHarmless, "reasoning itself is a part of the answer"},
    {"context", kHarmless, "reasoning that is sent is written where the template writes it"},
    {"mode", kRefused, "there is one way to answer", R"(["standard"])"},
};

constexpr FieldRow kText[] = {
    {"format", kHonoured, "type text, json_object, or json_schema: the answer is such JSON"},
    {"verbosity", kHint, "models have no such setting; ask for it in a message", R"(["medium"])", R"(["low", "high"])"},
};

constexpr FieldRow kFormat[] = {
    {"type", kHonoured, "text, json_object or json_schema"},
    {"schema", kHonoured, "what the answer is, with type json_schema"},
    {"name", kHonoured, "a text, of no effect"},
    {"description", kHonoured, "a text, of no effect"},
    {"strict", kHonoured, "the answer keeps to the schema with both values"},
};

std::span<const FieldTable* const> tables() {
    static const FieldTable* const all[] = {&responses_table(),
                                            &message_table(),
                                            &call_table(),
                                            &call_output_table(),
                                            &reasoning_item_table(),
                                            &part_table(),
                                            &reasoning_part_table(),
                                            &tool_table(),
                                            &named_tool_table(),
                                            &allowed_tools_table(),
                                            &reasoning_table(),
                                            &text_table(),
                                            &format_table(),
                                            &namespace_table(),
                                            &custom_tool_table(),
                                            &unread_table(),
                                            &custom_format_table(),
                                            &custom_call_table(),
                                            &custom_call_output_table()};
    return all;
}

}  // namespace

const Dialect kResponses{
    .error_json = json_of,
    .stream_type = "text/event-stream",
    .part = server_sent_event,
    .silence = ": waiting\n\n",
    .tables = tables,
};

const FieldTable& responses_table() {
    static const FieldTable table("/v1/responses", {kRequest, sampling_rows()});
    return table;
}

const FieldTable& message_table() {
    static const FieldTable table("a message of /v1/responses", {kMessage});
    return table;
}

const FieldTable& call_table() {
    static const FieldTable table("an item function_call of /v1/responses", {kCall, kAnyCall});
    return table;
}

const FieldTable& call_output_table() {
    static const FieldTable table("an item function_call_output of /v1/responses", {kCallOutput, kAnyCallOutput});
    return table;
}

const FieldTable& custom_call_table() {
    static const FieldTable table("an item custom_tool_call of /v1/responses", {kCustomCall, kAnyCall});
    return table;
}

const FieldTable& custom_call_output_table() {
    static const FieldTable table("an item custom_tool_call_output of /v1/responses",
                                  {kCustomCallOutput, kAnyCallOutput});
    return table;
}

const FieldTable& reasoning_item_table() {
    static const FieldTable table("an item reasoning of /v1/responses", {kReasoningItem});
    return table;
}

const FieldTable& part_table() {
    static const FieldTable table("a part of a content of /v1/responses", {kPart});
    return table;
}

const FieldTable& unread_table() {
    static const FieldTable table("a part input_image or input_file of an output of /v1/responses", {kUnread});
    return table;
}

const FieldTable& reasoning_part_table() {
    static const FieldTable table("a part of an item reasoning of /v1/responses", {kReasoningPart});
    return table;
}

const FieldTable& tool_table() {
    static const FieldTable table("a tool of /v1/responses", {kTool});
    return table;
}

const FieldTable& namespace_table() {
    static const FieldTable table("a tool of type namespace of /v1/responses", {kNamespace});
    return table;
}

const FieldTable& custom_tool_table() {
    static const FieldTable table("a tool of type custom of /v1/responses", {kCustomTool});
    return table;
}

const FieldTable& custom_format_table() {
    static const FieldTable table("format of a tool of type custom of /v1/responses", {kCustomFormat});
    return table;
}

const FieldTable& named_tool_table() {
    static const FieldTable table("a function that tool_choice of /v1/responses names", {kNamedTool});
    return table;
}

const FieldTable& allowed_tools_table() {
    static const FieldTable table("tool_choice of /v1/responses", {kAllowedTools});
    return table;
}

const FieldTable& reasoning_table() {
    static const FieldTable table("reasoning of /v1/responses", {kReasoning});
    return table;
}

const FieldTable& text_table() {
    static const FieldTable table("text of /v1/responses", {kText});
    return table;
}

const FieldTable& format_table() {
    static const FieldTable table("text.format of /v1/responses", {kFormat});
    return table;
}

}  // namespace tessera::server::responses
