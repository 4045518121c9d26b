// The forms of known families. Sources: the chat_template of each model's published tokenizer_config.json.
#include "core/text/chat_template.hpp"

namespace tessera::text {
namespace {

constexpr const char* kDeepSeekEnd = "<\uff5cend\u2581of\u2581sentence\uff5c>";
constexpr const char* kDeepSeekUser = "<\uff5cUser\uff5c>";
constexpr const char* kDeepSeekAssistant = "<\uff5cAssistant\uff5c>";

#define TSR_CALLS_BEGIN "<\uff5ctool\u2581calls\u2581begin\uff5c>"
#define TSR_CALLS_END "<\uff5ctool\u2581calls\u2581end\uff5c>"
#define TSR_CALL_BEGIN "<\uff5ctool\u2581call\u2581begin\uff5c>"
#define TSR_CALL_END "<\uff5ctool\u2581call\u2581end\uff5c>"
#define TSR_SEPARATOR "<\uff5ctool\u2581sep\uff5c>"
#define TSR_END "<\uff5cend\u2581of\u2581sentence\uff5c>"

// The programs of V3 and R1 do not describe tools; this is how vLLM's template for V3 does. Calls and results are those
// of V3-0324 and R1-0528.
ChatFormat::Tools deepseek3_tools(ChatFormat::Tools::Program program) {
    ChatFormat::Tools t;
    t.syntax = ToolSyntax::kDeepSeekV3;
    t.program = program;
    t.describe = ChatFormat::Tools::Describe::kWhole;
    t.all.before =
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with "
        "function "
        "signatures within <tools></tools> XML tags:\n<tools>";
    t.each.before = "\n";
    t.all.after = "\n</tools>\n\nFor function call returns, you should first print " TSR_CALLS_BEGIN
                  "\n\nFor each function call, you should return object like:\n" TSR_CALL_BEGIN "function" TSR_SEPARATOR
                  "<function_name>\n```json\n<function_arguments_in_json_format>\n```" TSR_CALL_END
                  "\n\nAt the end of function call returns, you should print " TSR_CALLS_END TSR_END;
    t.calls = {TSR_CALLS_BEGIN, TSR_CALLS_END};
    t.call = {TSR_CALL_BEGIN "function" TSR_SEPARATOR, "\n```" TSR_CALL_END};
    t.name_after = "\n```json\n";
    t.call_separator = "\n";
    t.arguments_as_given = true;
    t.results = {"<\uff5ctool\u2581outputs\u2581begin\uff5c>", "<\uff5ctool\u2581outputs\u2581end\uff5c>"};
    t.result = {"<\uff5ctool\u2581output\u2581begin\uff5c>", "<\uff5ctool\u2581output\u2581end\uff5c>"};
    t.result_separator = "\n";
    t.generation_after = "";
    return t;
}

// Descriptions as the model card of V3.1 has them.
ChatFormat::Tools deepseek31_tools() {
    ChatFormat::Tools t;
    t.syntax = ToolSyntax::kDeepSeekV31;
    t.program = ChatFormat::Tools::Program::kCalls;
    t.describe = ChatFormat::Tools::Describe::kParts;
    t.all.before = "## Tools\nYou have access to the following tools:\n\n";
    t.each.after = "\n\n";
    t.all.after =
        "IMPORTANT: ALWAYS adhere to this exact format for tool use:\n" TSR_CALLS_BEGIN TSR_CALL_BEGIN
        "tool_call_name" TSR_SEPARATOR "tool_call_arguments" TSR_CALL_END "{additional_tool_calls}" TSR_CALLS_END
        "\n\nWhere:\n- `tool_call_name` must be an exact match to one of the available tools\n- "
        "`tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema\n- For "
        "multiple tool calls, chain them directly without separators or spaces";
    t.calls = {TSR_CALLS_BEGIN, TSR_CALLS_END};
    t.call = {TSR_CALL_BEGIN, TSR_CALL_END};
    t.name_after = TSR_SEPARATOR;
    t.arguments_as_given = true;
    t.result = {"<\uff5ctool\u2581output\u2581begin\uff5c>", "<\uff5ctool\u2581output\u2581end\uff5c>"};
    t.generation_after = "";
    t.thoughts_beside = false;
    return t;
}

#define TSR_DSML "\uff5cDSML\uff5c"

ChatFormat::Tools deepseek32_tools() {
    ChatFormat::Tools t;
    t.syntax = ToolSyntax::kDeepSeekV32;
    t.describe = ChatFormat::Tools::Describe::kFunction;
    t.all.before =
        "## Tools\n\nYou have access to a set of tools you can use to answer the user's question.\nYou can invoke "
        "functions "
        "by writing a \"<" TSR_DSML
        "function_calls>\" block like the following as part of your reply to the user:\n<" TSR_DSML
        "function_calls>\n<" TSR_DSML "invoke name=\"$FUNCTION_NAME\">\n<" TSR_DSML
        "parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</" TSR_DSML
        "parameter>\n...\n</" TSR_DSML "invoke>\n<" TSR_DSML "invoke name=\"$FUNCTION_NAME2\">\n...\n</" TSR_DSML
        "invoke>\n</" TSR_DSML
        "function_calls>\n\nString and scalar parameters should be specified as is without any escaping or quotes, "
        "while "
        "lists and objects should use JSON format. The \"string\" attribute should be set to \"true\" for string type "
        "parameters and \"false\" for other types (numbers, booleans, arrays, objects).\n\nIf the thinking_mode is "
        "enabled, "
        "then after function results you should strongly consider outputting a thinking block. Here is an example:\n\n"
        "<" TSR_DSML "function_calls>\n...\n</" TSR_DSML
        "function_calls>\n\n<function_results>\n...\n</function_results>\n\n<think>...thinking about "
        "results</think>\n\n"
        "Here are the functions available in JSONSchema format:\n<functions>\n";
    t.each.after = "\n";
    t.all.after = "</functions>\n";
    t.calls = {"\n\n<" TSR_DSML "function_calls>\n", "</" TSR_DSML "function_calls>"};
    t.call = {"<" TSR_DSML "invoke name=\"", "</" TSR_DSML "invoke>\n"};
    t.name_after = "\">\n";
    t.results = {"\n\n<function_results>", "\n</function_results>"};
    t.result = {"\n<result>", "</result>"};
    t.generation_after = "\n\n";
    return t;
}

ChatFormat::Tools qwen_tools(bool arguments_as_given) {
    ChatFormat::Tools t;
    t.syntax = ToolSyntax::kHermes;
    t.describe = ChatFormat::Tools::Describe::kWhole;
    t.all.before =
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with "
        "function "
        "signatures within <tools></tools> XML tags:\n<tools>";
    t.each.before = "\n";
    t.all.after =
        "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
        "<args-json-object>}\n</tool_call>";
    t.call = {"<tool_call>\n{\"name\": \"", "}\n</tool_call>"};
    t.name_after = "\", \"arguments\": ";
    t.call_separator = "\n";
    t.content_after = "\n";
    t.arguments_as_given = arguments_as_given;
    t.results = {"<|im_start|>user", "<|im_end|>\n"};
    t.result = {"\n<tool_response>\n", "\n</tool_response>"};
    return t;
}

ChatFormat::Tools llama_tools() {
    ChatFormat::Tools t;
    t.syntax = ToolSyntax::kLlama3;
    t.describe = ChatFormat::Tools::Describe::kWhole;
    t.indent = 4;
    t.in_question = true;
    t.system_before = "Environment: ipython\n";
    t.all.before =
        "Given the following functions, please respond with a JSON for a function call with its proper arguments that "
        "best answers the given prompt.\n\nRespond in the format {\"name\": function name, \"parameters\": dictionary "
        "of "
        "argument name and its value}.Do not use variables.\n\n";
    t.each.after = "\n\n";
    t.call = {"{\"name\": \"", "}"};
    t.name_after = "\", \"parameters\": ";
    t.one_call = true;
    t.result = {"<|start_header_id|>ipython<|end_header_id|>\n\n", "<|eot_id|>"};
    t.result_as_json = true;
    return t;
}

ChatFormat deepseek2() {
    ChatFormat f;
    f.bos = true;
    f.system = {"", "\n\n"};
    f.user = {"User: ", "\n\n"};
    f.assistant = {"Assistant: ", ""};
    f.eos_after_assistant = true;
    f.generation = "Assistant:";
    return f;
}

ChatFormat deepseek3(ChatFormat::System place, ChatFormat::Thoughts thoughts, const char* opening) {
    ChatFormat f;
    f.bos = true;
    f.system_place = place;
    f.user = {kDeepSeekUser, ""};
    f.assistant = {kDeepSeekAssistant, kDeepSeekEnd};
    f.thoughts = thoughts;
    f.generation = std::string(kDeepSeekAssistant) + opening;
    return f;
}

// The first programs of V3 and R1 leave a single call open and end with the second one.
ChatFormat deepseek3_with_tools(ChatFormat::System place, ChatFormat::Thoughts thoughts, const char* opening) {
    ChatFormat f = deepseek3(place, thoughts, opening);
    f.tools = deepseek3_tools(ChatFormat::Tools::Program::kNothing);
    f.assistant_before = ChatFormat::When::kNotAfterResults;
    return f;
}

ChatFormat deepseek3_0324() {
    ChatFormat f = deepseek3(ChatFormat::System::kJoined, ChatFormat::Thoughts::kKeep, "");
    f.user.after = kDeepSeekAssistant;
    f.assistant.before.clear();
    f.generation_when = ChatFormat::When::kNotAfterUser;
    f.tools = deepseek3_tools(ChatFormat::Tools::Program::kCalls);
    return f;
}

ChatFormat deepseek_r1_0528() {
    ChatFormat f = deepseek3_0324();
    f.thoughts = ChatFormat::Thoughts::kDropToLastEnd;
    return f;
}

ChatFormat deepseek3_1() {
    ChatFormat f = deepseek3(ChatFormat::System::kJoined, ChatFormat::Thoughts::kDropToFirstEnd, "");
    f.assistant.before = kDeepSeekAssistant;
    f.assistant.before += "</think>";
    f.assistant_before = ChatFormat::When::kAfterUser;
    f.generation_when = ChatFormat::When::kAfterUser;
    f.can_think = true;
    f.generation_thinking = "<think>";
    f.generation_direct = "</think>";
    f.tools = deepseek31_tools();
    return f;
}

ChatFormat deepseek3_1_terminus() {
    ChatFormat f = deepseek3_1();
    f.generation_when = ChatFormat::When::kAlways;
    return f;
}

ChatFormat deepseek3_2() {
    ChatFormat f = deepseek3(ChatFormat::System::kJoined, ChatFormat::Thoughts::kKeep, "");
    f.deepseek32_thoughts = true;
    f.generation_when = ChatFormat::When::kAfterUser;
    f.can_think = true;
    f.generation_thinking = "<think>";
    f.generation_direct = "</think>";
    f.tools = deepseek32_tools();
    return f;
}

ChatFormat deepseek_coder() {
    ChatFormat f;
    f.bos = true;
    f.user = {"### Instruction:\n", "\n"};
    f.assistant = {"### Response:\n", "\n<|EOT|>\n"};
    f.default_system =
        "You are an AI programming assistant, utilizing the Deepseek Coder model, developed by Deepseek Company, and "
        "you only "
        "answer questions related to computer science. For politically sensitive questions, security and privacy "
        "issues, and "
        "other non-computer science questions, you will refuse to answer\n";
    f.default_system_only_without_any = true;
    f.generation = "### Response:\n";
    return f;
}

ChatFormat chatml() {
    ChatFormat f;
    f.system = {"<|im_start|>system\n", "<|im_end|>\n"};
    f.user = {"<|im_start|>user\n", "<|im_end|>\n"};
    f.assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"};
    f.generation = "<|im_start|>assistant\n";
    return f;
}

ChatFormat chatml_with(const char* default_system) {
    ChatFormat f = chatml();
    f.default_system = default_system;
    return f;
}

ChatFormat qwen2_5() {
    ChatFormat f = chatml_with("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
    f.tools = qwen_tools(false);
    return f;
}

ChatFormat qwen3() {
    ChatFormat f = chatml();
    f.qwen3_thoughts = true;
    f.can_think = true;
    f.thinks_by_default = true;
    f.generation_direct = "<think>\n\n</think>\n\n";
    f.tools = qwen_tools(true);
    return f;
}

ChatFormat llama3() {
    ChatFormat f;
    f.bos = true;
    f.trim = true;
    f.system = {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"};
    f.user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"};
    f.assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"};
    f.generation = "<|start_header_id|>assistant<|end_header_id|>\n\n";
    return f;
}

ChatFormat llama3_1() {
    ChatFormat f = llama3();
    f.system_place = ChatFormat::System::kFirstInBlock;
    // The date that the published program uses if its host has no clock.
    f.default_system = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
    f.tools = llama_tools();
    return f;
}

ChatFormat kimi_k2() {
    ChatFormat f;
    f.system = {"<|im_system|>system<|im_middle|>", "<|im_end|>"};
    f.user = {"<|im_user|>user<|im_middle|>", "<|im_end|>"};
    f.assistant = {"<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"};
    f.default_system = "You are a helpful assistant";
    f.generation = "<|im_assistant|>assistant<|im_middle|>";
    return f;
}

}  // namespace

const std::vector<NamedChatFormat>& known_chat_formats() {
    using System = ChatFormat::System;
    using Thoughts = ChatFormat::Thoughts;
    static const std::vector<NamedChatFormat> known = [] {
        std::vector<NamedChatFormat> all = {
            {{"deepseek2", "deepseek-v2", "deepseek-llm", "deepseek"}, deepseek2()},
            {{"deepseek-v2.5", "deepseek2.5"}, deepseek3(System::kLast, Thoughts::kKeep, "")},
            {{"deepseek3"}, deepseek3(System::kInPlace, Thoughts::kKeep, "")},
            {{"deepseek-v3"}, deepseek3_with_tools(System::kJoined, Thoughts::kKeep, "")},
            {{"deepseek-v3-0324", "deepseek-v3-tools"}, deepseek3_0324()},
            {{"deepseek-v3.1"}, deepseek3_1()},
            {{"deepseek-v3.1-terminus", "deepseek-v3.2-exp"}, deepseek3_1_terminus()},
            {{"deepseek-v3.2"}, deepseek3_2()},
            {{"deepseek-r1"}, deepseek3_with_tools(System::kJoined, Thoughts::kDropToLastEnd, "<think>\n")},
            {{"deepseek-r1-first"}, deepseek3_with_tools(System::kLast, Thoughts::kDropToLastEnd, "")},
            {{"deepseek-r1-distill"}, deepseek3_with_tools(System::kLast, Thoughts::kDropToLastEnd, "<think>\n")},
            {{"deepseek-r1-0528", "deepseek-r1-tools"}, deepseek_r1_0528()},
            {{"deepseek-coder"}, deepseek_coder()},
            {{"chatml"}, chatml()},
            {{"qwen2"}, chatml_with("You are a helpful assistant.")},
            {{"qwen2.5"}, qwen2_5()},
            {{"qwen3"}, qwen3()},
            {{"llama3", "llama-3"}, llama3()},
            {{"llama3.1", "llama-3.1", "llama3.2", "llama3.3"}, llama3_1()},
            {{"kimi-k2"}, kimi_k2()},
        };
        for (NamedChatFormat& one : all) one.format.name = one.names.front();
        return all;
    }();
    return known;
}

}  // namespace tessera::text
