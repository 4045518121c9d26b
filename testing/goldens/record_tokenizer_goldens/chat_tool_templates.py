"""Chat templates in Jinja with all that decides how tools, calls and their results are written, and conversations that use
them. record_chat_tools.py --full DIR checks the texts against the complete published programs."""
import chat_templates as ct

B, E, USER, ASSISTANT = ct.B, ct.E, ct.USER, ct.ASSISTANT
CALLS, CALLS_END = "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"
CALL, CALL_END = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"
SEP = "<\uff5ctool\u2581sep\uff5c>"
OUTPUTS, OUTPUTS_END = "<\uff5ctool\u2581outputs\u2581begin\uff5c>", "<\uff5ctool\u2581outputs\u2581end\uff5c>"
OUTPUT, OUTPUT_END = "<\uff5ctool\u2581output\u2581begin\uff5c>", "<\uff5ctool\u2581output\u2581end\uff5c>"

# DeepSeek V3-0324 and R1-0528, as published; `content` is how they name an answer, `described` a part that they do not have.
V3_CALL = (CALL + "' + tool['type'] + '" + SEP + "' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments'] + '\\n'"
           " + '```' + '" + CALL_END + "'}}")


def deepseek3(content, drop, described=""):
    return (ct.NO_PROMPT + ct.SYSTEM_JOINED + described + "{%- for message in messages %}" + drop[0] +
            "{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{%- set ns.is_first = false -%}{%- set ns.is_last_user = true -%}"
            "{{'" + USER + "' + " + content + " + '" + ASSISTANT + "'}}{%- endif %}" + drop[1] +
            "{%- if message['role'] == 'assistant' and message['tool_calls'] is defined and message['tool_calls'] is not none %}"
            "{%- set ns.is_last_user = false -%}{%- if ns.is_tool %}{{'" + OUTPUTS_END + "'}}{%- endif %}{%- set ns.is_first = false %}"
            "{%- set ns.is_tool = false -%}{%- set ns.is_output_first = true %}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}"
            "{%- if " + content + " is none %}{{'" + CALLS + V3_CALL + "{%- else %}{{" + content + " + '" + CALLS + V3_CALL + "{%- endif %}"
            "{%- set ns.is_first = true -%}{%- else %}{{'\\n' + '" + V3_CALL + "{%- endif %}{%- endfor %}{{'" + CALLS_END + E + "'}}{%- endif %}"
            "{%- if message['role'] == 'assistant' and (message['tool_calls'] is not defined or message['tool_calls'] is none)%}"
            "{%- set ns.is_last_user = false -%}{%- if ns.is_tool %}{{'" + OUTPUTS_END + "' + " + content + " + '" + E + "'}}{%- set ns.is_tool = false -%}"
            "{%- else %}" + drop[2] + "{{content + '" + E + "'}}{%- endif %}{%- endif %}"
            "{%- if message['role'] == 'tool' %}{%- set ns.is_last_user = false -%}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}"
            "{{'" + OUTPUTS + OUTPUT + "' + " + content + " + '" + OUTPUT_END + "'}}{%- set ns.is_output_first = false %}{%- else %}"
            "{{'\\n" + OUTPUT + "' + " + content + " + '" + OUTPUT_END + "'}}{%- endif %}{%- endif %}{%- endfor -%}"
            "{% if ns.is_tool %}{{'" + OUTPUTS_END + "'}}{% endif %}"
            "{% if add_generation_prompt and not ns.is_last_user and not ns.is_tool %}{{'" + ASSISTANT + "'}}{% endif %}")


KEEP = ("", "", "{% set content = message['content'] %}")
DROP = ("{% set content = message['content'] %}",
        "{%- if message['role'] == 'assistant' %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{% endif %}", "")
# Of V3 and R1: what vLLM's template for V3 says, without the indentation that it leaves in the text.
DESCRIBED = ("{%- if tools %}{% if ns.system_prompt %}{{'\\n\\n'}}{% endif %}{{'# Tools\\n\\nYou may call one or more functions to assist with the user query."
             "\\n\\nYou are provided with function signatures within <tools></tools> XML tags:\\n<tools>'}}{%- for tool in tools %}{{'\\n' + (tool | tojson)}}"
             "{%- endfor %}{{'\\n</tools>\\n\\nFor function call returns, you should first print " + CALLS + "\\n\\nFor each function call, you should "
             "return object like:\\n" + CALL + "function" + SEP + "<function_name>\\n```json\\n<function_arguments_in_json_format>\\n```" + CALL_END +
             "\\n\\nAt the end of function call returns, you should print " + CALLS_END + E + "'}}{%- endif %}")


def deepseek31(arguments, described=""):
    call = CALL + "' + tool['function']['name'] + '" + SEP + "' + tool['function']['arguments']" + arguments + " + '" + CALL_END + "'}}"
    return (ct.NO_PROMPT + "{% if not thinking is defined %}{% set thinking = false %}{% endif %}" + ct.SYSTEM_JOINED + described +
            "{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{%- set ns.is_first = false -%}"
            "{%- set ns.is_last_user = true -%}{{'" + USER + "' + message['content']}}{%- endif %}"
            "{%- if message['role'] == 'assistant' and message['tool_calls'] is defined and message['tool_calls'] is not none %}"
            "{%- if ns.is_last_user %}{{'" + ASSISTANT + "</think>'}}{%- endif %}{%- set ns.is_last_user = false -%}{%- set ns.is_first = false %}"
            "{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}"
            "{{'" + CALLS + call.replace("' + tool", "'+ tool", 1) + "{%- else %}{{message['content'] + '" + CALLS + call + "{%- endif %}{%- set ns.is_first = true -%}"
            "{%- else %}{{'" + call.replace("' + tool", "'+ tool", 1) + "{%- endif %}{%- endfor %}{{'" + CALLS_END + E + "'}}{%- endif %}"
            "{%- if message['role'] == 'assistant' and (message['tool_calls'] is not defined or message['tool_calls'] is none) %}"
            "{%- if ns.is_last_user %}{{'" + ASSISTANT + "'}}{%- if message['prefix'] is defined and message['prefix'] and thinking %}{{'<think>'}}"
            "{%- else %}{{'</think>'}}{%- endif %}{%- endif %}{%- set ns.is_last_user = false -%}"
            "{%- if ns.is_tool %}{{message['content'] + '" + E + "'}}{%- set ns.is_tool = false -%}{%- else %}{%- set content = message['content'] -%}"
            "{%- if '</think>' in content %}{%- set content = content.split('</think>', 1)[1] -%}{%- endif %}{{content + '" + E + "'}}{%- endif %}{%- endif %}"
            "{%- if message['role'] == 'tool' %}{%- set ns.is_last_user = false -%}{%- set ns.is_tool = true -%}"
            "{{'" + OUTPUT + "' + message['content'] + '" + OUTPUT_END + "'}}{%- endif %}{%- endfor -%}"
            "{%- if add_generation_prompt and ns.is_last_user and not ns.is_tool %}{{'" + ASSISTANT + "'}}{%- if not thinking %}{{'</think>'}}"
            "{%- else %}{{'<think>'}}{%- endif %}{% endif %}")


# The model card of V3.1.
CARD = ("{% if tools %}{% if ns.system_prompt %}{{'\\n\\n'}}{% endif %}{{'## Tools\\nYou have access to the following tools:\\n\\n'}}{% for tool in tools %}"
        "{{'### ' + tool.function.name + '\\nDescription: ' + tool.function.description + '\\n\\nParameters: ' + (tool.function.parameters | tojson) + '\\n\\n'}}"
        "{% endfor %}{{'IMPORTANT: ALWAYS adhere to this exact format for tool use:\\n" + CALLS + CALL + "tool_call_name" + SEP + "tool_call_arguments" +
        CALL_END + "{additional_tool_calls}" + CALLS_END + "\\n\\nWhere:\\n- `tool_call_name` must be an exact match to one of the available tools\\n"
        "- `tool_call_arguments` must be valid JSON that strictly follows the tool\\'s Parameters Schema\\n- For multiple tool calls, chain them directly "
        "without separators or spaces'}}{% endif %}")



def terminus(described=""):
    """V3.1-Terminus and V3.2-Exp."""
    text = deepseek31("", described)
    for old, new in (("{% set ns.is_first_sp = false %}{%- else %}", "{% set ns.is_first_sp = false %}{% set ns.is_only_sys = true %}{%- else %}"),
                     ("is_last_user=false)", "is_last_user=false, is_only_sys=false, is_prefix=false)"),
                     ("{%- if ns.is_last_user %}{{'" + ASSISTANT + "</think>'}}", "{%- if ns.is_last_user or ns.is_only_sys %}{{'" + ASSISTANT + "</think>'}}"),
                     ("{%- endif %}{%- endfor -%}{%- if add_generation_prompt and ns.is_last_user and not ns.is_tool %}",
                      "{%- endif %}{%- if message['role'] != 'system' %}{% set ns.is_only_sys = false %}{%- endif %}{%- endfor -%}"
                      "{% if add_generation_prompt and not ns.is_tool%}{% if ns.is_last_user or ns.is_only_sys or not ns.is_prefix %}")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text + "{% endif %}"


# V3.2 is published as a Python program, and as Jinja by llama.cpp and its kin.
DSML = "\uff5cDSML\uff5c"


def deepseek32(answer):
    return (
        ct.NO_PROMPT + "{%- if not thinking is defined -%}{%- set thinking = false -%}{%- endif -%}"
        "{%- set dsml_token = '" + DSML + "' -%}{%- set thinking_start_token = '<think>' -%}{%- set thinking_end_token = '</think>' -%}"
        "{%- set tools_header = '## Tools\\n\\nYou have access to a set of tools you can use to answer the user\\'s question.\\nYou can invoke functions by "
        "writing a \"<' + dsml_token + 'function_calls>\" block like the following as part of your reply to the user:\\n<' + dsml_token + 'function_calls>\\n"
        "<' + dsml_token + 'invoke name=\"$FUNCTION_NAME\">\\n<' + dsml_token + 'parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE"
        "</' + dsml_token + 'parameter>\\n...\\n</' + dsml_token + 'invoke>\\n<' + dsml_token + 'invoke name=\"$FUNCTION_NAME2\">\\n...\\n</' + dsml_token + "
        "'invoke>\\n</' + dsml_token + 'function_calls>\\n\\nString and scalar parameters should be specified as is without any escaping or quotes, while "
        "lists and objects should use JSON format. The \"string\" attribute should be set to \"true\" for string type parameters and \"false\" for other "
        "types (numbers, booleans, arrays, objects).\\n\\nIf the thinking_mode is enabled, then after function results you should strongly consider "
        "outputting a thinking block. Here is an example:\\n\\n<' + dsml_token + 'function_calls>\\n...\\n</' + dsml_token + 'function_calls>\\n\\n"
        "<function_results>\\n...\\n</function_results>\\n\\n' + thinking_start_token + '...thinking about results' + thinking_end_token + '\\n\\nHere are "
        "the functions available in JSONSchema format:\\n<functions>\\n' -%}{%- set tools_footer = '</functions>\\n' -%}"
        "{%- set ns = namespace(system_prompt='', is_first_sp=true) -%}{%- for message in messages -%}{%- if message['role'] == 'system' -%}"
        "{%- if ns.is_first_sp -%}{%- set ns.system_prompt = ns.system_prompt + (message['content'] or '') -%}{%- set ns.is_first_sp = false -%}{%- else -%}"
        "{%- set ns.system_prompt = ns.system_prompt + '\\n\\n' + (message['content'] or '') -%}{%- endif -%}{%- endif -%}{%- endfor -%}"
        "{%- if tools is defined and tools -%}{%- set ts = namespace(schemas='') -%}{%- for tool in tools -%}{%- if tool['type'] == 'function' -%}"
        "{%- set ts.schemas = ts.schemas + (tool['function'] | tojson) + '\\n' -%}{%- endif -%}{%- endfor -%}"
        "{%- if ns.system_prompt -%}{%- set ns.system_prompt = ns.system_prompt + '\\n\\n' + tools_header + ts.schemas + tools_footer -%}"
        "{%- else -%}{%- set ns.system_prompt = tools_header + ts.schemas + tools_footer -%}{%- endif -%}{%- endif -%}"
        "{{- bos_token -}}{{- ns.system_prompt -}}{%- set last_user_idx = namespace(value=-1) -%}{%- for message in messages -%}"
        "{%- if message['role'] == 'user' -%}{%- set last_user_idx.value = loop.index0 -%}{%- endif -%}{%- endfor -%}"
        "{%- set state = namespace(pending_asst_marker=false, pending_tool_marker=false) -%}{%- for message in messages -%}"
        "{%- if message['role'] == 'user' -%}{{- '" + USER + "' + (message['content'] or '') -}}{%- set state.pending_asst_marker = true -%}"
        "{%- set state.pending_tool_marker = false -%}{%- elif message['role'] == 'assistant' -%}"
        "{%- set is_after_last_user = loop.index0 > last_user_idx.value -%}{%- if state.pending_asst_marker -%}{{- '" + ASSISTANT + "' -}}"
        "{%- if is_after_last_user and thinking -%}{{- thinking_start_token -}}{%- if message['reasoning_content'] -%}{{- message['reasoning_content'] -}}"
        "{%- endif -%}{{- thinking_end_token -}}{%- else -%}{{- thinking_end_token -}}{%- endif -%}{%- elif state.pending_tool_marker -%}"
        "{%- if is_after_last_user and thinking -%}{{- '\\n\\n' + thinking_start_token -}}{%- if message['reasoning_content'] -%}"
        "{{- message['reasoning_content'] -}}{%- endif -%}{{- thinking_end_token -}}{%- else -%}{{- '\\n\\n' + thinking_end_token -}}{%- endif -%}{%- endif -%}"
        "{%- set state.pending_asst_marker = false -%}{%- set state.pending_tool_marker = false -%}"
        "{%- if message['content'] -%}{{- message['content'] -}}{%- endif -%}{%- if message['tool_calls'] -%}"
        "{{- '\\n\\n<' + dsml_token + 'function_calls>\\n' -}}{%- for tool in message['tool_calls'] -%}{%- set func = tool['function'] -%}"
        "{{- '<' + dsml_token + 'invoke name=\"' + func['name'] + '\">\\n' -}}{%- for key, val in func['arguments'].items() -%}{%- if val is string -%}"
        "{{- '<' + dsml_token + 'parameter name=\"' + key + '\" string=\"true\">' + val + '</' + dsml_token + 'parameter>\\n' -}}{%- else -%}"
        "{{- '<' + dsml_token + 'parameter name=\"' + key + '\" string=\"false\">' + (val | tojson) + '</' + dsml_token + 'parameter>\\n' -}}{%- endif -%}"
        "{%- endfor -%}{{- '</' + dsml_token + 'invoke>\\n' -}}{%- endfor -%}{{- '</' + dsml_token + 'function_calls>' -}}{%- endif -%}{{- '" + E + "' -}}"
        "{%- elif message['role'] == 'tool' -%}{%- set outer_index = loop.index0 -%}{%- set assistant_idx = namespace(value=-1) -%}"
        "{%- for prev_msg in messages -%}{%- if prev_msg['role'] == 'assistant' and prev_msg['tool_calls'] and loop.index0 < outer_index -%}"
        "{%- set assistant_idx.value = loop.index0 -%}{%- endif -%}{%- endfor -%}{%- set call_order = outer_index - assistant_idx.value -%}"
        "{%- set tool_call_count = messages[assistant_idx.value]['tool_calls'] | length -%}"
        "{%- if call_order == 1 -%}{{- '\\n\\n<function_results>' -}}{%- endif -%}{{- '\\n<result>' + (message['content'] or '') + '</result>' -}}"
        "{%- if call_order == tool_call_count -%}{{- '\\n</function_results>' -}}{%- set state.pending_asst_marker = false -%}"
        "{%- set state.pending_tool_marker = true -%}{%- endif -%}{%- endif -%}{%- endfor -%}"
        "{%- if add_generation_prompt -%}{%- if state.pending_asst_marker -%}{{- '" + ASSISTANT + "' -}}{%- if thinking -%}{{- thinking_start_token -}}"
        "{%- else -%}{{- " + answer + " -}}{%- endif -%}{%- elif state.pending_tool_marker -%}{%- if thinking -%}{{- '\\n\\n' + thinking_start_token -}}"
        "{%- else -%}{{- '\\n\\n' + " + answer + " -}}{%- endif -%}{%- endif -%}{%- endif -%}")


# Qwen 2.5 and 3.
QWEN_TOOLS = (
    "# Tools\\n\\nYou may call one or more functions to assist with the user query.\\n\\nYou are provided with function signatures within "
    "<tools></tools> XML tags:\\n<tools>\" }}\n    {%- for tool in tools %}\n        {{- \"\\n\" }}\n        {{- tool | tojson }}\n    {%- endfor %}\n"
    "    {{- \"\\n</tools>\\n\\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\\n"
    "<tool_call>\\n{\\\"name\\\": <function-name>, \\\"arguments\\\": <args-json-object>}\\n</tool_call><|im_end|>\\n\" }}\n")
QWEN_RESULT = (
    "    {%- elif message.role == \"tool\" %}\n        {%- if loop.first or (messages[loop.index0 - 1].role != \"tool\") %}\n            {{- '<|im_start|>user' }}\n"
    "        {%- endif %}\n        {{- '\\n<tool_response>\\n' }}\n        {{- message.content }}\n        {{- '\\n</tool_response>' }}\n"
    "        {%- if loop.last or (messages[loop.index0 + 1].role != \"tool\") %}\n            {{- '<|im_end|>\\n' }}\n        {%- endif %}\n    {%- endif %}\n{%- endfor %}\n")
QWEN25 = (
    "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0]['role'] == 'system' %}\n        {{- messages[0]['content'] }}\n    {%- else %}\n"
    "        {{- 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}\n    {%- endif %}\n    {{- \"\\n\\n" + QWEN_TOOLS + "{%- else %}\n    " +
    ct.TEMPLATES["qwen2.5"].split("{%- for message in messages %}")[0].rstrip("\n") + "\n{%- endif %}\n{%- for message in messages %}\n"
    "    {%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) or (message.role == \"assistant\" and not message.tool_calls) %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n    {%- elif message.role == \"assistant\" %}\n"
    "        {{- '<|im_start|>' + message.role }}\n        {%- if message.content %}\n            {{- '\\n' + message.content }}\n        {%- endif %}\n"
    "        {%- for tool_call in message.tool_calls %}\n            {%- set tool_call = tool_call.function %}\n            {{- '\\n<tool_call>\\n{\"name\": \"' }}\n"
    "            {{- tool_call.name }}\n            {{- '\", \"arguments\": ' }}\n            {{- tool_call.arguments | tojson }}\n            {{- '}\\n</tool_call>' }}\n"
    "        {%- endfor %}\n        {{- '<|im_end|>\\n' }}\n" + QWEN_RESULT + "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n")
QWEN3 = (
    "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0].role == 'system' %}\n        {{- messages[0].content + '\\n\\n' }}\n    {%- endif %}\n"
    "    {{- \"" + QWEN_TOOLS + "{%- else %}\n    " +
    ct.TEMPLATES["qwen3"].replace("    {%- endif %}\n{%- set ns", "    {%- endif %}\n{%- endif %}\n{%- set ns")
    .replace("{%- set reasoning_content = '' %}\n            {%- if", "{%- set reasoning_content = '' %}\n        {%- if message.reasoning_content is defined and "
             "message.reasoning_content is not none %}\n            {%- set reasoning_content = message.reasoning_content %}\n        {%- else %}\n            {%- if")
    .replace("            {%- endif %}\n        {%- if loop.index0", "            {%- endif %}\n        {%- endif %}\n        {%- if loop.index0")
    .replace("        {{- '<|im_end|>\\n' }}\n    {%- endif %}\n{%- endfor %}\n",
             "        {%- if message.tool_calls %}\n            {%- for tool_call in message.tool_calls %}\n"
             "                {%- if (loop.first and content) or (not loop.first) %}\n                    {{- '\\n' }}\n                {%- endif %}\n"
             "                {%- set tool_call = tool_call.function %}\n                {{- '<tool_call>\\n{\"name\": \"' }}\n"
             "                {{- tool_call.name }}\n                {{- '\", \"arguments\": ' }}\n                {%- if tool_call.arguments is string %}\n"
             "                    {{- tool_call.arguments }}\n                {%- else %}\n                    {{- tool_call.arguments | tojson }}\n"
             "                {%- endif %}\n                {{- '}\\n</tool_call>' }}\n            {%- endfor %}\n        {%- endif %}\n"
             "        {{- '<|im_end|>\\n' }}\n" + QWEN_RESULT))
# As Qwen 3 of July 2025 without thinking has it.
QWEN3_INSTRUCT = (
    QWEN3[:QWEN3.index("{%- set ns")] + "{%- for message in messages %}\n    {%- if message.content is string %}\n        {%- set content = message.content %}\n"
    "    {%- else %}\n        {%- set content = '' %}\n    {%- endif %}\n    {%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}\n    {%- elif message.role == \"assistant\" %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + content }}\n" + QWEN3[QWEN3.index("        {%- if message.tool_calls %}"):QWEN3.index("    {%- if enable_thinking")] +
    "{%- endif %}")

# Llama 3.1 and 3.3.
LLAMA = (
    "{{- bos_token }}\n{%- if not tools_in_user_message is defined %}\n    {%- set tools_in_user_message = true %}\n{%- endif %}\n"
    "{%- if not date_string is defined %}\n    {%- set date_string = \"26 Jul 2024\" %}\n{%- endif %}\n{%- if not tools is defined %}\n    {%- set tools = none %}\n"
    "{%- endif %}\n{%- if messages[0]['role'] == 'system' %}\n    {%- set system_message = messages[0]['content']|trim %}\n    {%- set messages = messages[1:] %}\n"
    "{%- else %}\n    {%- set system_message = \"\" %}\n{%- endif %}\n{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}\n{%- if tools is not none %}\n"
    "    {{- \"Environment: ipython\\n\" }}\n{%- endif %}\n{{- \"Cutting Knowledge Date: December 2023\\n\" }}\n{{- \"Today Date: \" + date_string + \"\\n\\n\" }}\n"
    "{{- system_message }}\n{{- \"<|eot_id|>\" }}\n{%- if tools_in_user_message and not tools is none %}\n    {%- set first_user_message = messages[0]['content']|trim %}\n"
    "    {%- set messages = messages[1:] %}\n    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}\n"
    "    {{- \"Given the following functions, please respond with a JSON for a function call \" }}\n"
    "    {{- \"with its proper arguments that best answers the given prompt.\\n\\n\" }}\n"
    "    {{- 'Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name and its value}.' }}\n"
    "    {{- \"Do not use variables.\\n\\n\" }}\n    {%- for t in tools %}\n        {{- t | tojson(indent=4) }}\n        {{- \"\\n\\n\" }}\n    {%- endfor %}\n"
    "    {{- first_user_message + \"<|eot_id|>\"}}\n{%- endif %}\n{%- for message in messages %}\n"
    "    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}\n"
    "        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}\n"
    "    {%- elif 'tool_calls' in message %}\n        {%- if not message.tool_calls|length == 1 %}\n            {{- raise_exception(\"one call\") }}\n        {%- endif %}\n"
    "        {%- set tool_call = message.tool_calls[0].function %}\n        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}\n"
    "        {{- '{\"name\": \"' + tool_call.name + '\", ' }}\n        {{- '\"parameters\": ' }}\n        {{- tool_call.arguments | tojson }}\n        {{- \"}\" }}\n"
    "        {{- \"<|eot_id|>\" }}\n    {%- elif message.role == \"tool\" or message.role == \"ipython\" %}\n"
    "        {{- \"<|start_header_id|>ipython<|end_header_id|>\\n\\n\" }}\n        {%- if message.content is mapping or message.content is iterable %}\n"
    "            {{- message.content | tojson }}\n        {%- else %}\n            {{- message.content }}\n        {%- endif %}\n        {{- \"<|eot_id|>\" }}\n"
    "    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n{%- endif %}\n")

# name: (program, arguments are objects in it, it tells the model of tools, it is recognised with all of that)
TEMPLATES = {
    "deepseek-v3-0324": (deepseek3("message['content']", KEEP), False, False, True),
    "deepseek-r1-0528": (deepseek3("content", DROP), False, False, True),
    "deepseek-v3-tools": (deepseek3("message['content']", KEEP, DESCRIBED), False, True, False),
    "deepseek-r1-tools": (deepseek3("content", DROP, DESCRIBED), False, True, False),
    "deepseek-v3.1": (deepseek31("", CARD), False, True, False),
    "deepseek-v3.1 (as published)": (deepseek31(""), False, False, True),
    "deepseek-v3.1 (arguments as JSON)": (deepseek31(" | tojson"), True, False, True),
    "deepseek-v3.1-terminus": (terminus(CARD), False, True, False),
    "deepseek-v3.1-terminus (as published)": (terminus(), False, False, True),
    "deepseek-v3.2": (deepseek32("thinking_end_token"), True, True, True),
    "deepseek-v3.2 (llama.cpp)": (deepseek32("thinking_start_token + thinking_end_token"), True, True, True),
    "qwen2.5": (QWEN25, True, True, True),
    "qwen3": (QWEN3, False, True, True),
    "chatml (Qwen 3 Instruct)": (QWEN3_INSTRUCT, False, True, True),
    "llama3.1": (LLAMA, True, True, True),
}
# Formats of the same name that are known only through a program in a file.
UNNAMED = {"deepseek-v3.1 (as published)", "deepseek-v3.1-terminus (as published)", "deepseek-v3.1 (arguments as JSON)", "deepseek-v3.2 (llama.cpp)", "chatml (Qwen 3 Instruct)"}
THINKING = {"deepseek-v3.1", "deepseek-v3.1-terminus", "deepseek-v3.2", "deepseek-v3.2 (llama.cpp)", "qwen3"}
# Complete programs in a folder.
FULL = {"deepseek-v3.2 (llama.cpp)": "deepseek-ai-DeepSeek-V3.2.jinja", "qwen2.5": "Qwen-Qwen2.5-7B-Instruct.jinja", "qwen3": "Qwen-Qwen3-0.6B.jinja",
        "llama3.1": "meta-llama-Llama-3.1-8B-Instruct.jinja"}

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a \"city\" now, in \u00b0C <now> & later.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "such as M\u00fcnchen, \u5317\u4eac\n"}, "days": {"type": "integer", "minimum": 1, "maximum": 1e16}},
        "required": ["city"], "additionalProperties": False}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}, "strict": True}},
]


def call(name, arguments, i=0):
    return {"id": f"call_{i}", "name": name, "arguments": arguments}


W1 = call("get_weather", '{"city": "M\u00fcnchen", "days": 3, "exact": [1.50, true, null, {"a": "b"}]}')
W2 = call("now", "{}", 1)
ONE = {"role": "assistant", "content": "", "tool_calls": [W1]}
SAID = {"role": "assistant", "content": "Let me see.", "tool_calls": [W1]}
BOTH = {"role": "assistant", "content": "Both.", "tool_calls": [W1, W2]}
THOUGHT = {"role": "assistant", "content": "", "reasoning": "I must look.\n", "tool_calls": [W1]}


def user(text):
    return {"role": "user", "content": text}


def answer(text, **more):
    return {"role": "assistant", "content": text, **more}


def result(text, i=0):
    return {"role": "tool", "content": text, "tool_call_id": f"call_{i}"}


SYSTEM = {"role": "system", "content": "Be brief."}
CONVERSATIONS = [
    [user("Weather?")],
    [SYSTEM, user("Weather?")],
    [{"role": "system", "content": ""}, user(" Weather? ")],
    [user("Weather?"), ONE],
    [user("Weather?"), ONE, result("{\"t\": \"21 \u00b0C\"}\n")],
    [SYSTEM, user("Weather?"), SAID, result("warm")],
    [SYSTEM, user("Weather?"), ONE, result("warm"), answer("It is warm.")],
    [user("Weather?"), ONE, result("warm"), answer("It is warm."), user("Now?")],
    [user("Weather?"), BOTH, result("warm"), result("12:00 \"noon\"", 1)],
    [user("Weather?"), BOTH, result("warm"), result("12:00", 1), answer("Warm at noon."), user("And?"), ONE, result("cold")],
    [user("Weather?"), ONE, result("warm"), SAID, result("cold"), answer("Both.")],
    [user("Hm?"), answer("Well.", reasoning="Short."), user("Weather?"), THOUGHT, result("warm"), answer("Warm.", reasoning="\nSo.\n")],
    [user("Weather?"), THOUGHT, result("warm")],
    [user("Weather?"), answer("<think>a</think>b"), user("?"), {**SAID, "content": "<think>\nx\n</think>\n\ny"}, result("warm"), answer("<think>z</think>w")],
    [SYSTEM, user("a"), answer("b", reasoning="c"), SYSTEM, user("d")],
    [user("a"), answer("b")],
]
# Those that are also written with TOOLS.
WITH_TOOLS = {0, 1, 2, 4, 8, 10}

# Texts and what Python writes of their values.
JSON = ["null", "true", "-0", "0", "12345678901234567890123", "1.0", "-0.0", "1e5", "1E+16", "1e15", "123456789012345680.0", "0.0001", "0.00001", "1.5e-7", "1e22", "1e23",
        "5e-324", "1.7976931348623157e308", "1e400", "-1e400", "1e-400", "3.141592653589793238", "0.1", "100.25", "-12.5e1", "[]", "{}", "[ ]", "[1,2 , 3]",
        "{\"a\":1,\"b\":[{},[]]}", "{\"b\": 1, \"a\": 2, \"b\": 3}", "\"\"", "\"a\\u00e4\\u4e2d\\ud83d\\ude00\\/\\\"\\\\\"", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u2028\"", "\" <>&' \"",
        "{\"\": {\"\\n\": \"x\"}}", " { \"x\" : [ true , false ] } \n"]
