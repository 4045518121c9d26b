#include "apps/server/chat_fields.hpp"

#include "apps/server/generation_fields.hpp"

namespace tessera::server {
namespace {

using enum Standing;

// Of a conversation.
constexpr FieldRow kConversationRows[] = {
    {"messages", kHonoured, "the conversation"},
    {"tools", kHonoured, "functions and custom tools that the model may call"},
    {"tool_choice", kHonoured,
     "auto, none; required, a function or allowed_tools of mode required: the answer is such calls; allowed_tools of "
     "mode "
     "auto: it may be"},
    {"parallel_tool_calls", kHonoured, "false: the answer has one call at most"},
    {"chat_template_kwargs", kHonoured,
     "variables of the template; thinking or enable_thinking: whether the model thinks before it answers"},
    {"reasoning_effort", kHonoured, "none, or minimal to max: thinking, and the variable of templates that have it"},
    {"continue_final_message", kHonoured,
     "the answer goes on where the last message ends, which is the assistant's; the default then"},
    {"add_generation_prompt", kHonoured,
     "false: the conversation without what makes the model answer; true: also after an assistant's message"},
};

constexpr FieldRow kChatRows[] = {
    {"logprobs", kHonoured, "true: each token with its log probability"},
    {"top_logprobs", kHonoured, "and with so many of the most likely tokens, 20 at most"},

    {"best_of", kRefused, "answers are not ranked; use n", "[1]"},
    {"functions", kRefused, "use tools"},
    {"function_call", kRefused, "use tool_choice", R"(["none", "auto"])"},
    {"audio", kRefused, kTextAlone},
    {"modalities", kRefused, kTextAlone, R"([["text"], []])"},
    {"mm_processor_kwargs", kRefused, kTextAlone, "[{}]"},
    {"verbosity", kHint, "models have no such setting; ask for it in a message", R"(["medium"])", R"(["low", "high"])"},
    {"reasoning", kRefused, "use reasoning_effort", "[]"},
    {"thinking", kRefused, "use chat_template_kwargs or reasoning_effort", "[]"},
    {"enable_thinking", kRefused, "use chat_template_kwargs or reasoning_effort", "[]"},
    {"thinking_budget", kHonoured, "as reasoning_budget"},
    {"thinking_budget_tokens", kHonoured, "as reasoning_budget"},
    {"thinking_token_budget", kHonoured, "as reasoning_budget"},
    {"reasoning_budget", kHonoured,
     "tokens after which reasoning is ended; 0: as none of reasoning_effort; -1: any number, as without the field"},
    {"reasoning_control", kHarmless, "reasoning of every answer can be ended, by /v1/chat/completions/control"},
    {"include_reasoning", kRefused, "reasoning is a part of the answer", "[true]"},
    {"reasoning_format", kRefused, "reasoning is in reasoning_content", R"(["auto", "deepseek"])"},
    {"reasoning_in_content", kRefused, "reasoning is in reasoning_content"},
    {"separate_reasoning", kRefused, "reasoning is in reasoning_content", "[true]"},
    {"stream_reasoning", kRefused, "a stream has reasoning as the model writes it", "[true]"},
    {"thinking_forced_open", kRefused, "use chat_template_kwargs"},
    {"parse_tool_calls", kRefused, "calls are in tool_calls", "[true]"},
    {"chat_template", kRefused, "the template is the server's (--chat-template, --chat-template-file)", R"([""])"},
    {"documents", kRefused, "put documents into messages"},
    {"echo", kRefused, "use continue_final_message; the answer has only what is new"},
    {"media_io_kwargs", kRefused, kTextAlone, "[{}]"},
    {"use_audio_in_video", kRefused, kTextAlone},
    {"add_special_tokens", kRefused, "the template writes what begins a conversation"},
    {"skip_special_tokens", kRefused, "/v1/completions shows control tokens", "[true]"},
};

constexpr FieldRow kNamedToolRows[] = {
    {"type", kHonoured, "function or custom"},
    {"function", kHonoured, "its name"},
    {"custom", kHonoured, "with type custom: its name"},
};

constexpr FieldRow kNamedFunctionRows[] = {
    {"name", kHonoured, "of one of the tools"},
};

constexpr FieldRow kAllowedChoiceRows[] = {
    {"type", kHonoured, "allowed_tools"},
    {"allowed_tools", kHonoured, "mode, and the tools of which one is, or may be, called"},
};

constexpr FieldRow kAllowedToolsRows[] = {
    {"mode", kHonoured, "auto: the model is told of these tools only; required: one of them is called"},
    {"tools", kHonoured, "a list of tools by their names"},
};

constexpr FieldRow kMessageRows[] = {
    {"role", kHonoured, "system, developer, user, assistant or tool"},
    {"content", kHonoured, "a text, or parts that are texts"},
    {"reasoning_content", kHonoured, "the assistant's, where the template writes it"},
    {"reasoning", kHonoured, "as reasoning_content"},
    {"tool_calls", kHonoured, "the assistant's"},
    {"tool_call_id", kHonoured, "a result's; templates write results in the order of the messages"},
    {"name", kHonoured, "of the author or of the function, where the template writes one"},
    {"cache_control", kHarmless, kAllCached},
    {"annotations", kHarmless, "notes of another server on its answer, which no template writes"},
    {"id", kHarmless, kBookkeeping},
    {"refusal", kRefused, "give the text as content", R"([""])"},
    {"audio", kRefused, kTextAlone},
    {"function_call", kRefused, "use tool_calls", "[]"},
    {"reasoning_details", kRefused, "give the text as reasoning_content"},
    {"prefix", kRefused, "use continue_final_message"},
    {"partial", kRefused, "use continue_final_message"},
};

constexpr FieldRow kPartRows[] = {
    {"type", kHonoured, "text"},
    {"text", kHonoured, "the text"},
    {"cache_control", kHarmless, kAllCached},
    {"annotations", kHarmless, "notes of another server on its answer, which no template writes"},
};

constexpr FieldRow kCallRows[] = {
    {"id", kHonoured, "a text"},
    {"type", kHonoured, "function"},
    {"function", kHonoured, "its name and arguments"},
    {"index", kHarmless, "calls stand in the order of the list, whose positions streams count"},
};

constexpr FieldRow kCalledFunctionRows[] = {
    {"name", kHonoured, "a text"},
    {"arguments", kHonoured, "JSON as a text, or an object"},
};

constexpr FieldRow kCustomCallRows[] = {
    {"id", kHonoured, "a text"},
    {"type", kHonoured, "custom"},
    {"custom", kHonoured, "its name and input"},
    {"index", kHarmless, "calls stand in the order of the list, whose positions streams count"},
};

constexpr FieldRow kCalledCustomRows[] = {
    {"name", kHonoured, "of the tool"},
    {"input", kHonoured, "a string"},
};

constexpr FieldRow kToolRows[] = {
    {"type", kHonoured, "function"},
    {"function", kHonoured, "what may be called"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kToolFunctionRows[] = {
    {"name", kHonoured, "a text"},
    {"description", kHonoured, "a text"},
    {"parameters", kHonoured, "a JSON schema, for the model to read"},
    {"strict", kHonoured, "whether arguments are held to the schema"},
};

constexpr FieldRow kCustomToolRows[] = {
    {"type", kHonoured, "custom"},
    {"custom", kHonoured, "what may be called with a string"},
    {"cache_control", kHarmless, kAllCached},
};

constexpr FieldRow kToolCustomRows[] = {
    {"name", kHonoured, "a string"},
    {"description", kHonoured, "a string"},
    {"format", kHonoured, "constraint on the input; without one any string is accepted"},
};

constexpr FieldRow kCustomFormatRows[] = {
    {"type", kHonoured, "text or grammar"},
    {"grammar", kHonoured, "with type grammar: its syntax and definition"},
};

constexpr FieldRow kCustomGrammarRows[] = {
    {"syntax", kHonoured, "lark or regex"},
    {"definition", kHonoured,
     "the grammar, a part of the description for the model and enforced in calls; as in /v1/responses"},
};

}  // namespace

std::span<const FieldRow> conversation_rows() {
    return kConversationRows;
}

std::span<const FieldRow> chat_rows() {
    return kChatRows;
}

const FieldTable& named_tool_table() {
    static const FieldTable table("a tool that is chosen", {kNamedToolRows});
    return table;
}

const FieldTable& named_function_table() {
    static const FieldTable table("a function that is chosen", {kNamedFunctionRows});
    return table;
}

const FieldTable& allowed_choice_table() {
    static const FieldTable table("tool_choice", {kAllowedChoiceRows});
    return table;
}

const FieldTable& allowed_tools_table() {
    static const FieldTable table("allowed_tools", {kAllowedToolsRows});
    return table;
}

const FieldTable& message_table() {
    static const FieldTable table("a message", {kMessageRows});
    return table;
}

const FieldTable& part_table() {
    static const FieldTable table("a part of a message", {kPartRows});
    return table;
}

const FieldTable& call_table() {
    static const FieldTable table("a tool call", {kCallRows});
    return table;
}

const FieldTable& called_function_table() {
    static const FieldTable table("a called function", {kCalledFunctionRows});
    return table;
}

const FieldTable& tool_table() {
    static const FieldTable table("a tool", {kToolRows});
    return table;
}

const FieldTable& tool_function_table() {
    static const FieldTable table("a tool's function", {kToolFunctionRows});
    return table;
}

const FieldTable& custom_call_table() {
    static const FieldTable table("a call of a custom tool", {kCustomCallRows});
    return table;
}

const FieldTable& called_custom_table() {
    static const FieldTable table("a called custom tool", {kCalledCustomRows});
    return table;
}

const FieldTable& custom_tool_table() {
    static const FieldTable table("a tool of type custom", {kCustomToolRows});
    return table;
}

const FieldTable& tool_custom_table() {
    static const FieldTable table("custom of a tool", {kToolCustomRows});
    return table;
}

const FieldTable& custom_format_table() {
    static const FieldTable table("format of a custom tool", {kCustomFormatRows});
    return table;
}

const FieldTable& custom_grammar_table() {
    static const FieldTable table("grammar of a custom tool's format", {kCustomGrammarRows});
    return table;
}

std::span<const FieldTable* const> chat_tables() {
    static const FieldTable* const tables[] = {
        &named_tool_table(),  &named_function_table(), &allowed_choice_table(), &allowed_tools_table(),
        &message_table(),     &part_table(),           &call_table(),           &called_function_table(),
        &custom_call_table(), &called_custom_table(),  &tool_table(),           &tool_function_table(),
        &custom_tool_table(), &tool_custom_table(),    &custom_format_table(),  &custom_grammar_table()};
    return tables;
}

}  // namespace tessera::server
