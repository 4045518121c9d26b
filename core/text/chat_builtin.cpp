// The built-in templates, for files without one: Jinja programs of our own that write what the models of each family
// were trained on. Sources: the chat_template of each model's published tokenizer_config.json, and its model card.
#include "core/text/chat_builtin.hpp"

namespace tessera::text {
namespace {

#define TSR_CALLS_BEGIN "<\uff5ctool\u2581calls\u2581begin\uff5c>"
#define TSR_CALLS_END "<\uff5ctool\u2581calls\u2581end\uff5c>"
#define TSR_CALL_BEGIN "<\uff5ctool\u2581call\u2581begin\uff5c>"
#define TSR_CALL_END "<\uff5ctool\u2581call\u2581end\uff5c>"
#define TSR_OUTPUT_BEGIN "<\uff5ctool\u2581output\u2581begin\uff5c>"
#define TSR_OUTPUT_END "<\uff5ctool\u2581output\u2581end\uff5c>"
#define TSR_OUTPUTS_BEGIN "<\uff5ctool\u2581outputs\u2581begin\uff5c>"
#define TSR_OUTPUTS_END "<\uff5ctool\u2581outputs\u2581end\uff5c>"
#define TSR_SEPARATOR "<\uff5ctool\u2581sep\uff5c>"
#define TSR_END "<\uff5cend\u2581of\u2581sentence\uff5c>"
#define TSR_USER "<\uff5cUser\uff5c>"
#define TSR_ASSISTANT "<\uff5cAssistant\uff5c>"
#define TSR_DSML "\uff5cDSML\uff5c"

constexpr std::string_view kDeepSeek2 = R"jinja(
{{- bos_token -}}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- 'User: ' + m.content + '\n\n' -}}
{%- elif m.role == 'assistant' -%}{{- 'Assistant: ' + m.content + eos_token -}}
{%- elif m.role == 'system' -%}{{- m.content + '\n\n' -}}
{%- else -%}{{- raise_exception('no tools') -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}
)jinja";

constexpr std::string_view kDeepSeekCoder = R"jinja(
{{- bos_token -}}
{%- if not messages | selectattr('role', 'equalto', 'system') | list -%}
{{- 'You are an AI programming assistant, utilizing the Deepseek Coder model, developed by Deepseek Company, and you only answer questions related to computer science. For politically sensitive questions, security and privacy issues, and other non-computer science questions, you will refuse to answer\n' -}}
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- '### Instruction:\n' + m.content + '\n' -}}
{%- elif m.role == 'assistant' -%}{{- '### Response:\n' + m.content + '\n<|EOT|>\n' -}}
{%- elif m.role == 'system' -%}{{- m.content -}}
{%- else -%}{{- raise_exception('no tools') -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '### Response:\n' -}}{%- endif -%}
)jinja";

// What is said of tools, as vLLM's template for V3 and the model card of V3.1 have it. The templates of files leave it
// out.
constexpr std::string_view kDeepSeek3Tools =
    R"jinja({{- '# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>' -}}
{%- for tool in tools -%}{{- '\n' + tool | tojson -}}{%- endfor -%}
{{- '\n</tools>\n\nFor function call returns, you should first print )jinja" TSR_CALLS_BEGIN
    R"jinja(\n\nFor each function call, you should return object like:\n)jinja" TSR_CALL_BEGIN "function" TSR_SEPARATOR
    R"jinja(<function_name>\n```json\n<function_arguments_in_json_format>\n```)jinja" TSR_CALL_END
    R"jinja(\n\nAt the end of function call returns, you should print )jinja" TSR_CALLS_END TSR_END
    R"jinja(' -}})jinja";
constexpr std::string_view kDeepSeek31Tools =
    R"jinja({{- '## Tools\nYou have access to the following tools:\n\n' -}}
{%- for tool in tools -%}
{{- '### ' + tool.function.name + '\nDescription: ' + (tool.function.description or '') + '\n\nParameters: ' + ((tool.function.parameters or {}) | tojson) + '\n\n' -}}
{%- endfor -%}
{{- 'IMPORTANT: ALWAYS adhere to this exact format for tool use:\n)jinja" TSR_CALLS_BEGIN TSR_CALL_BEGIN
    "tool_call_name" TSR_SEPARATOR "tool_call_arguments" TSR_CALL_END "{additional_tool_calls}" TSR_CALLS_END
    R"jinja(\n\nWhere:\n- `tool_call_name` must be an exact match to one of the available tools\n- `tool_call_arguments` must be valid JSON that strictly follows the tool\'s Parameters Schema\n- For multiple tool calls, chain them directly without separators or spaces' -}})jinja";

// Of Hermes, as Qwen's template writes them.
constexpr std::string_view kHermesCalls = R"jinja({{- content -}}
{%- for call in calls -%}
{{- ('' if loop.first and not content else '\n') + '<tool_call>\n{"name": "' + call.name + '", "arguments": ' -}}
{{- (call.arguments if call.arguments is string else call.arguments | tojson) + '}\n</tool_call>' -}}
{%- endfor -%})jinja";
constexpr std::string_view kGraniteCalls = R"jinja({{- content + '<|tool_call|>[' -}}
{%- for call in calls -%}
{{- ('' if loop.first else ', ') + '{"name": "' + call.name + '", "arguments": ' -}}
{{- (call.arguments if call.arguments is string else call.arguments | tojson) + '}' -}}
{%- endfor -%}
{{- ']' -}})jinja";
// LFM2 says what it calls before it says anything else.
constexpr std::string_view kLfm2Calls = R"jinja(
{%- macro literal(value) -%}
{%- if value is none -%}{{- 'None' -}}
{%- elif value is boolean -%}{{- 'True' if value else 'False' -}}
{%- elif value is mapping -%}
{{- '{' -}}
{%- for key, one in value | items -%}{{- ('' if loop.first else ', ') + key | tojson + ': ' + literal(one) -}}{%- endfor -%}
{{- '}' -}}
{%- elif value is iterable and value is not string -%}
{{- '[' -}}
{%- for one in value -%}{{- ('' if loop.first else ', ') + literal(one) -}}{%- endfor -%}
{{- ']' -}}
{%- else -%}{{- value | tojson -}}
{%- endif -%}
{%- endmacro -%}
{{- '<|tool_call_start|>[' -}}
{%- for call in calls -%}
{{- ('' if loop.first else ', ') + call.name + '(' -}}
{%- if call.arguments is mapping -%}
{%- for key, one in call.arguments | items -%}{{- ('' if loop.first else ', ') + key + '=' + literal(one) -}}{%- endfor -%}
{%- else -%}{{- call.arguments -}}
{%- endif -%}
{{- ')' -}}
{%- endfor -%}
{{- ']<|tool_call_end|>' + content -}})jinja";

// With `place` of system messages (here, last or joined), `drop` of thoughts in answers (none or last), `opening` of
// answers, and whether `questions` open them.
constexpr std::string_view kDeepSeek3 =
    R"jinja(
{%- set ns = namespace(system='', last='') -%}
{{- bos_token -}}
{%- for m in messages if m.role == 'system' and place != 'here' -%}
{%- set ns.system = m.content if loop.first or place == 'last' else ns.system + '\n\n' + m.content -%}
{%- endfor -%}
{{- ns.system -}}
{%- if tools -%}
{{- '\n\n' if ns.system -}}
)jinja";
constexpr std::string_view kDeepSeek3Messages =
    R"jinja(
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'system' -%}{%- if place == 'here' -%}{{- m.content -}}{%- endif -%}
{%- elif m.role == 'user' -%}{{- ')jinja" TSR_USER R"jinja(' + m.content -}}{{- ')jinja" TSR_ASSISTANT
    R"jinja(' if questions -}}{%- set ns.last = 'user' -%}
{%- elif m.role == 'assistant' -%}
{{- ')jinja" TSR_ASSISTANT R"jinja(' if not questions and ns.last != 'tool' -}}
{{- (m.content or '').split('</think>')[-1] if drop == 'last' else m.content -}}
{%- for call in m.tool_calls -%}
{{- ')jinja" TSR_CALLS_BEGIN R"jinja(' if loop.first else '\n' -}}
{{- ')jinja" TSR_CALL_BEGIN "function" TSR_SEPARATOR
    R"jinja(' + call.function.name + '\n```json\n' + call.function.arguments + '\n```)jinja" TSR_CALL_END R"jinja(' -}}
{{- ')jinja" TSR_CALLS_END R"jinja(' if loop.last -}}
{%- endfor -%}
{{- ')jinja" TSR_END R"jinja(' -}}{%- set ns.last = 'assistant' -%}
{%- else -%}
{{- ')jinja" TSR_OUTPUTS_BEGIN R"jinja(' if ns.last != 'tool' else '\n' -}}
{{- ')jinja" TSR_OUTPUT_BEGIN R"jinja(' + m.content + ')jinja" TSR_OUTPUT_END R"jinja(' -}}
{{- ')jinja" TSR_OUTPUTS_END R"jinja(' if loop.last or loop.nextitem.role != 'tool' -}}{%- set ns.last = 'tool' -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and ns.last != 'tool' and not (questions and ns.last == 'user') -%}{{- ')jinja" TSR_ASSISTANT
    R"jinja(' + opening -}}{%- endif -%}
)jinja";

// V2.5 and the first V3 know no tools.
constexpr std::string_view kNoTools = R"jinja(
{%- for m in messages if m.role == 'tool' or m.tool_calls -%}{{- raise_exception('no tools') -}}{%- endfor -%}
{%- set tools = none -%}
)jinja";

// With `always`: answers are opened after all but results.
constexpr std::string_view kDeepSeek31 =
    R"jinja(
{%- set ns = namespace(system='', last='') -%}
{{- bos_token -}}
{%- for m in messages if m.role == 'system' -%}
{%- set ns.system = m.content if loop.first else ns.system + '\n\n' + m.content -%}
{%- endfor -%}
{{- ns.system -}}
{%- if tools -%}
{{- '\n\n' if ns.system -}}
)jinja";
constexpr std::string_view kDeepSeek31Messages =
    R"jinja(
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- ')jinja" TSR_USER R"jinja(' + m.content -}}{%- set ns.last = 'user' -%}
{%- elif m.role == 'assistant' -%}
{{- ')jinja" TSR_ASSISTANT R"jinja(</think>' if ns.last == 'user' -}}
{%- set content = m.content or '' -%}
{%- if not m.tool_calls and ns.last != 'tool' and '</think>' in content -%}
{%- set content = content.split('</think>', 1)[1] -%}
{%- endif -%}
{{- content -}}
{%- for call in m.tool_calls -%}
{{- ')jinja" TSR_CALLS_BEGIN R"jinja(' if loop.first -}}
{{- ')jinja" TSR_CALL_BEGIN R"jinja(' + call.function.name + ')jinja" TSR_SEPARATOR
    R"jinja(' + call.function.arguments + ')jinja" TSR_CALL_END R"jinja(' -}}
{{- ')jinja" TSR_CALLS_END R"jinja(' if loop.last -}}
{%- endfor -%}
{{- ')jinja" TSR_END R"jinja(' -}}{%- set ns.last = 'assistant' -%}
{%- elif m.role == 'tool' -%}
{{- ')jinja" TSR_OUTPUT_BEGIN R"jinja(' + m.content + ')jinja" TSR_OUTPUT_END R"jinja(' -}}{%- set ns.last = 'tool' -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and (ns.last == 'user' or (always and ns.last != 'tool')) -%}
{{- ')jinja" TSR_ASSISTANT R"jinja(' + ('<think>' if thinking else '</think>') -}}
{%- endif -%}
)jinja";

constexpr std::string_view kDeepSeek32 =
    R"jinja(
{%- set ns = namespace(system='', last='', question=-1, calls=0, results=0) -%}
{%- set thinking = thinking | default(false) -%}
{{- bos_token -}}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{%- set ns.system = ns.system + ('\n\n' if ns.last else '') + m.content -%}{%- set ns.last = 'system' -%}
{%- elif m.role == 'user' -%}{%- set ns.question = loop.index0 -%}
{%- elif m.role == 'tool' and (loop.first or loop.previtem.role != 'tool') -%}
{%- set ns.calls = (loop.previtem.tool_calls or []) | length if not loop.first else 0 -%}
{%- endif -%}
{%- if m.role == 'tool' -%}
{%- set ns.results = ns.results + 1 -%}
{%- if (loop.last or loop.nextitem.role != 'tool') and ns.results != ns.calls -%}
{{- raise_exception('message ' ~ loop.index0 ~ ': expected results of the ' ~ ns.calls ~ ' calls before it, found ' ~ ns.results) -}}
{%- endif -%}
{%- else -%}{%- set ns.results = 0 -%}
{%- endif -%}
{%- endfor -%}
{{- ns.system -}}
{%- set ns.last = '' -%}
{%- if tools -%}
{{- '\n\n' if ns.system -}}
{{- '## Tools\n\nYou have access to a set of tools you can use to answer the user\'s question.\nYou can invoke functions by writing a "<)jinja" TSR_DSML
    R"jinja(function_calls>" block like the following as part of your reply to the user:\n<)jinja" TSR_DSML
    R"jinja(function_calls>\n<)jinja" TSR_DSML R"jinja(invoke name="$FUNCTION_NAME">\n<)jinja" TSR_DSML
    R"jinja(parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</)jinja" TSR_DSML
    R"jinja(parameter>\n...\n</)jinja" TSR_DSML R"jinja(invoke>\n<)jinja" TSR_DSML
    R"jinja(invoke name="$FUNCTION_NAME2">\n...\n</)jinja" TSR_DSML R"jinja(invoke>\n</)jinja" TSR_DSML
    R"jinja(function_calls>\n\nString and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).\n\nIf the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:\n\n<)jinja" TSR_DSML
    R"jinja(function_calls>\n...\n</)jinja" TSR_DSML
    R"jinja(function_calls>\n\n<function_results>\n...\n</function_results>\n\n<think>...thinking about results</think>\n\nHere are the functions available in JSONSchema format:\n<functions>\n' -}}
{%- for tool in tools -%}{{- tool.function | tojson + '\n' -}}{%- endfor -%}
{{- '</functions>\n' -}}
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- ')jinja" TSR_USER R"jinja(' + m.content -}}{%- set ns.last = 'user' -%}
{%- elif m.role == 'assistant' -%}
{%- set opens = ns.last == 'user' or ns.last == 'tool' -%}
{{- ')jinja" TSR_ASSISTANT R"jinja(' if ns.last == 'user' else ('\n\n' if ns.last == 'tool') -}}
{%- if opens -%}
{%- if thinking and loop.index0 > ns.question -%}{{- '<think>' + (m.reasoning_content or '') -}}{%- endif -%}
{{- '</think>' -}}
{%- endif -%}
{{- m.content -}}
{%- for call in m.tool_calls -%}
{{- '\n\n<)jinja" TSR_DSML R"jinja(function_calls>\n' if loop.first -}}
{{- '<)jinja" TSR_DSML R"jinja(invoke name="' + call.function.name + '">\n' -}}
{%- if call.function.arguments is not mapping -%}
{{- raise_exception('arguments of ' + call.function.name + ': expected a JSON object') -}}
{%- endif -%}
{%- for key, value in call.function.arguments.items() -%}
{{- '<)jinja" TSR_DSML
    R"jinja(parameter name="' + key + '" string="' + ('true' if value is string else 'false') + '">' -}}
{{- value if value is string else value | tojson -}}
{{- '</)jinja" TSR_DSML R"jinja(parameter>\n' -}}
{%- endfor -%}
{{- '</)jinja" TSR_DSML R"jinja(invoke>\n' -}}
{{- '</)jinja" TSR_DSML R"jinja(function_calls>' if loop.last -}}
{%- endfor -%}
{{- ')jinja" TSR_END R"jinja(' -}}{%- set ns.last = 'assistant' -%}
{%- elif m.role == 'tool' -%}
{{- '\n\n<function_results>' if ns.last != 'tool' -}}
{{- '\n<result>' + m.content + '</result>' -}}
{{- '\n</function_results>' if loop.last or loop.nextitem.role != 'tool' -}}{%- set ns.last = 'tool' -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and (ns.last == 'user' or ns.last == 'tool') -%}
{{- ')jinja" TSR_ASSISTANT R"jinja(' if ns.last == 'user' else '\n\n' -}}{{- '<think>' if thinking else '</think>' -}}
{%- endif -%}
)jinja";

// With `otherwise`, the system message of a conversation without one; `tools_known`; `thoughts`, as Qwen 3 has them;
// and whether arguments are written `as_given`. Arguments that were cut off are, in any case.
constexpr std::string_view kChatMl = R"jinja(
{%- set ns = namespace(question=messages | length - 1) -%}
{%- for m in messages -%}
{%- if m.role == 'tool' or m.tool_calls -%}
{%- if not tools_known -%}{{- raise_exception('no tools') -}}{%- endif -%}
{%- elif m.role == 'user' and not (m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>')) -%}
{%- set ns.question = loop.index0 -%}
{%- endif -%}
{%- endfor -%}
{%- set given = messages[0].role == 'system' -%}
{%- set system = messages[0].content if given else otherwise -%}
{%- if tools_known and tools -%}
{{- '<|im_start|>system\n' -}}
{{- system + '\n\n' if given or otherwise -}}
{{- '# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>' -}}
{%- for tool in tools -%}{{- '\n' + tool | tojson -}}{%- endfor -%}
{{- '\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n' -}}
{%- elif given or otherwise -%}{{- '<|im_start|>system\n' + system + '<|im_end|>\n' -}}
{%- endif -%}
{%- for m in (messages[1:] if given else messages) -%}
{%- set at = loop.index0 + (1 if given else 0) -%}
{%- if m.role == 'user' or m.role == 'system' -%}{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' -}}
{%- elif m.role == 'assistant' -%}
{{- '<|im_start|>assistant\n' -}}
{%- set content = m.content or '' -%}
{%- if thoughts -%}
{%- set reasoning = m.reasoning_content | default('') -%}
{%- if not reasoning and '</think>' in content -%}
{%- set reasoning = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') -%}
{%- set content = content.split('</think>')[-1].lstrip('\n') -%}
{%- endif -%}
{%- if at > ns.question and (loop.last or reasoning) -%}
{{- '<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') -}}
{%- else -%}{{- content -}}
{%- endif -%}
{%- else -%}{{- content -}}
{%- endif -%}
{%- for call in m.tool_calls -%}
{{- '\n' if not loop.first or content -}}
{%- set arguments = call.function.arguments -%}
{{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (arguments | tojson if arguments is mapping or (arguments.endswith('}') and not as_given) else arguments) + '}\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\n' -}}
{%- else -%}
{{- '<|im_start|>user' if loop.first or loop.previtem.role != 'tool' -}}
{{- '\n<tool_response>\n' + m.content + '\n</tool_response>' -}}
{{- '<|im_end|>\n' if loop.last or loop.nextitem.role != 'tool' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- if thoughts and enable_thinking is defined and not enable_thinking -%}{{- '<think>\n\n</think>\n\n' -}}{%- endif -%}
{%- endif -%}
)jinja";

constexpr std::string_view kLlama3 = R"jinja(
{{- bos_token -}}
{%- for m in messages -%}
{%- if m.role not in ['user', 'assistant', 'system'] or m.tool_calls -%}{{- raise_exception('no tools') -}}{%- endif -%}
{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}
)jinja";

// The date is the one that the published template uses if its host has no clock.
constexpr std::string_view kLlama31 = R"jinja(
{{- bos_token -}}
{%- set given = messages[0].role == 'system' -%}
{%- set system = messages[0].content if given else '' -%}
{%- set messages = messages[1:] if given else messages -%}
{{- '<|start_header_id|>system<|end_header_id|>\n\n' -}}
{{- 'Environment: ipython\n' if tools -}}
{{- 'Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n' -}}
{{- system | trim -}}
{{- '<|eot_id|>' -}}
{%- if tools -%}
{%- if not messages or messages[0].role != 'user' -%}
{{- raise_exception('tools are described in the first message after the system\'s, which must be the user\'s') -}}
{%- endif -%}
{{- '<|start_header_id|>user<|end_header_id|>\n\nGiven the following functions, please respond with a JSON for a function call with its proper arguments that best answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of argument name and its value}.Do not use variables.\n\n' -}}
{%- for tool in tools -%}{{- tool | tojson(indent=4) + '\n\n' -}}{%- endfor -%}
{{- messages[0].content | trim + '<|eot_id|>' -}}
{%- set messages = messages[1:] -%}
{%- endif -%}
{%- for m in messages -%}
{%- if m.tool_calls -%}
{%- if m.tool_calls | length > 1 -%}{{- raise_exception('one call a message is written, found ' ~ m.tool_calls | length) -}}{%- endif -%}
{%- set call = m.tool_calls[0].function -%}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n{"name": "' + call.name + '", "parameters": ' + (call.arguments | tojson if call.arguments is mapping or call.arguments.endswith('}') else call.arguments) + '}<|eot_id|>' -}}
{%- elif m.role == 'tool' -%}
{{- '<|start_header_id|>ipython<|end_header_id|>\n\n' + m.content | tojson + '<|eot_id|>' -}}
{%- else -%}
{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}
)jinja";

constexpr std::string_view kKimiK2 = R"jinja(
{%- if messages[0].role != 'system' -%}
{{- '<|im_system|>system<|im_middle|>You are a helpful assistant<|im_end|>' -}}
{%- endif -%}
{%- for m in messages -%}
{%- if m.role not in ['user', 'assistant', 'system'] or m.tool_calls -%}{{- raise_exception('no tools') -}}{%- endif -%}
{{- '<|im_' + m.role + '|>' + m.role + '<|im_middle|>' + m.content + '<|im_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_assistant|>assistant<|im_middle|>' -}}{%- endif -%}
)jinja";

std::string deepseek3(std::string_view place, std::string_view drop, std::string_view opening, bool questions,
                      bool tools = true) {
    std::string program = "{%- set place = '" + std::string(place) + "' -%}{%- set drop = '" + std::string(drop) +
                          "' -%}{%- set opening = '" + std::string(opening) +
                          "' -%}{%- set questions = " + (questions ? "true" : "false") + " -%}";
    if (!tools) program += kNoTools;
    return program.append(kDeepSeek3).append(kDeepSeek3Tools).append(kDeepSeek3Messages);
}

std::string deepseek31(bool always) {
    return std::string("{%- set always = ") + (always ? "true" : "false") + " -%}" +
           std::string(kDeepSeek31).append(kDeepSeek31Tools).append(kDeepSeek31Messages);
}

std::string chatml(std::string_view otherwise, bool tools, bool thoughts) {
    return "{%- set otherwise = '" + std::string(otherwise) +
           "' -%}{%- set tools_known = " + (tools ? "true" : "false") +
           " -%}{%- set thoughts = " + (thoughts ? "true" : "false") + " -%}{%- set as_given = thoughts -%}" +
           std::string(kChatMl);
}

}  // namespace

const std::vector<BuiltinTemplate>& builtin_templates() {
    static const std::vector<BuiltinTemplate> all = {
        {{"deepseek2", "deepseek-v2", "deepseek-llm", "deepseek"}, std::string(kDeepSeek2)},
        {{"deepseek-v2.5", "deepseek2.5"}, deepseek3("last", "none", "", false, false)},
        {{"deepseek3"}, deepseek3("here", "none", "", false, false)},
        {{"deepseek-v3"}, deepseek3("joined", "none", "", false)},
        {{"deepseek-v3-0324", "deepseek-v3-tools"}, deepseek3("joined", "none", "", true)},
        {{"deepseek-v3.1"}, deepseek31(false)},
        {{"deepseek-v3.1-terminus", "deepseek-v3.2-exp"}, deepseek31(true)},
        {{"deepseek-v3.2"}, std::string(kDeepSeek32)},
        {{"deepseek-r1"}, deepseek3("joined", "last", "<think>\\n", false)},
        {{"deepseek-r1-first"}, deepseek3("last", "last", "", false)},
        {{"deepseek-r1-distill"}, deepseek3("last", "last", "<think>\\n", false)},
        {{"deepseek-r1-0528", "deepseek-r1-tools"}, deepseek3("joined", "last", "", true)},
        {{"deepseek-coder"}, std::string(kDeepSeekCoder)},
        {{"chatml"}, chatml("", false, false)},
        {{"qwen2"}, chatml("You are a helpful assistant.", false, false)},
        {{"qwen2.5"}, chatml("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", true, false)},
        {{"qwen3"}, chatml("", true, true)},
        {{"llama3", "llama-3"}, std::string(kLlama3)},
        {{"llama3.1", "llama-3.1", "llama3.2", "llama3.3"}, std::string(kLlama31)},
        {{"kimi-k2"}, std::string(kKimiK2)},
    };
    return all;
}

std::string_view missing_description(ToolSyntax syntax) {
    if (syntax == ToolSyntax::kDeepSeekV3) return kDeepSeek3Tools;
    return syntax == ToolSyntax::kDeepSeekV31 ? kDeepSeek31Tools : std::string_view();
}

std::string_view missing_calls(ToolSyntax syntax) {
    if (syntax == ToolSyntax::kHermes) return kHermesCalls;
    if (syntax == ToolSyntax::kGranite) return kGraniteCalls;
    return syntax == ToolSyntax::kLfm2 ? kLfm2Calls : std::string_view();
}

}  // namespace tessera::text
