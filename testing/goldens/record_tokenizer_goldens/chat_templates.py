"""Chat templates in Jinja, as models publish them. Of long ones the branches for tools are left out, which do not change
what ordinary messages become; `record_chat.py --full DIR` checks that against the complete texts."""

B = "<\uff5cbegin\u2581of\u2581sentence\uff5c>"
E = "<\uff5cend\u2581of\u2581sentence\uff5c>"
USER = "<\uff5cUser\uff5c>"
ASSISTANT = "<\uff5cAssistant\uff5c>"
NO_PROMPT = "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"

SYSTEM_LAST = ("{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='') %}{%- for message in messages %}"
               "{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}"
               "{{bos_token}}{{ns.system_prompt}}")
SYSTEM_JOINED = ("{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true"
                 ", is_last_user=false) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}"
                 "{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}"
                 "{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}"
                 "{{ bos_token }}{{ ns.system_prompt }}")
DEEPSEEK_USER = ("{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}"
                 "{{'" + USER + "' + message['content']}}{%- endif %}")
DEEPSEEK_ANSWER = ("{%- if message['role'] == 'assistant' and message['content'] is not none %}{{'" + ASSISTANT +
                   "' + message['content'] + '" + E + "'}}{%- endif %}{%- endfor -%}")
DEEPSEEK_ANSWER_NO_THOUGHT = ("{%- if message['role'] == 'assistant' and message['content'] is not none %}{% set content = message['content'] %}"
                              "{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'" + ASSISTANT +
                              "' + content + '" + E + "'}}{%- endif %}{%- endfor -%}")
PROMPT = "{% if add_generation_prompt and not ns.is_tool %}{{'" + ASSISTANT + "'}}{% endif %}"
PROMPT_THINK = "{% if add_generation_prompt and not ns.is_tool %}{{'" + ASSISTANT + "<think>\\n'}}{% endif %}"

TEMPLATES = {
    "deepseek2": NO_PROMPT + "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\n\n' }}"
    "{% elif message['role'] == 'assistant' %}{{ 'Assistant: ' + message['content'] + eos_token }}{% elif message['role'] == 'system' %}"
    "{{ message['content'] + '\n\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}",
    "deepseek-v2.5": NO_PROMPT + SYSTEM_LAST + DEEPSEEK_USER + DEEPSEEK_ANSWER + PROMPT,
    "deepseek-v3": NO_PROMPT + SYSTEM_JOINED + DEEPSEEK_USER + DEEPSEEK_ANSWER + PROMPT,
    "deepseek-v3-0324": NO_PROMPT + SYSTEM_JOINED + "{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}"
    "{%- set ns.is_first = false -%}{%- set ns.is_last_user = true -%}{{'" + USER + "' + message['content'] + '" + ASSISTANT + "'}}{%- endif %}"
    "{%- if message['role'] == 'assistant' and (message['tool_calls'] is not defined or message['tool_calls'] is none)%}"
    "{%- set ns.is_last_user = false -%}{% set content = message['content'] %}{{content + '" + E + "'}}{%- endif %}{%- endfor -%}"
    "{% if add_generation_prompt and not ns.is_last_user and not ns.is_tool %}{{'" + ASSISTANT + "'}}{% endif %}",
    "deepseek-r1": NO_PROMPT + SYSTEM_JOINED + DEEPSEEK_USER + DEEPSEEK_ANSWER_NO_THOUGHT + PROMPT_THINK,
    "deepseek-r1 (first)": NO_PROMPT + SYSTEM_LAST + DEEPSEEK_USER + DEEPSEEK_ANSWER_NO_THOUGHT + PROMPT,
    "deepseek-r1-distill": NO_PROMPT + SYSTEM_LAST + DEEPSEEK_USER + DEEPSEEK_ANSWER_NO_THOUGHT + PROMPT_THINK,
    "deepseek-v3.1": NO_PROMPT + "{% if not thinking is defined %}{% set thinking = false %}{% endif %}" + SYSTEM_JOINED +
    "{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{%- set ns.is_first = false -%}"
    "{%- set ns.is_last_user = true -%}{{'" + USER + "' + message['content']}}{%- endif %}"
    "{%- if message['role'] == 'assistant' and (message['tool_calls'] is not defined or message['tool_calls'] is none) %}"
    "{%- if ns.is_last_user %}{{'" + ASSISTANT + "'}}{%- if message['prefix'] is defined and message['prefix'] and thinking %}{{'<think>'}}"
    "{%- else %}{{'</think>'}}{%- endif %}{%- endif %}{%- set ns.is_last_user = false -%}{%- set content = message['content'] -%}"
    "{%- if '</think>' in content %}{%- set content = content.split('</think>', 1)[1] -%}{%- endif %}{{content + '" + E + "'}}{%- endif %}"
    "{%- endfor -%}{%- if add_generation_prompt and ns.is_last_user and not ns.is_tool %}{{'" + ASSISTANT + "'}}{%- if not thinking %}"
    "{{'</think>'}}{%- else %}{{'<think>'}}{%- endif %}{% endif %}",
    # What make_gguf.py and the bundled model carry.
    "tessera": NO_PROMPT + "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '" + USER + "' + m['content'] }}"
    "{% elif m['role'] == 'assistant' %}{{ '" + ASSISTANT + "' + m['content'] + '" + E + "' }}"
    "{% elif m['role'] == 'system' %}{{ m['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '" + ASSISTANT + "' }}{% endif %}",
    "deepseek-coder": "{% if not add_generation_prompt is defined %}\n{% set add_generation_prompt = false %}\n{% endif %}\n"
    "{%- set ns = namespace(found=false) -%}\n{%- for message in messages -%}\n    {%- if message['role'] == 'system' -%}\n"
    "        {%- set ns.found = true -%}\n    {%- endif -%}\n{%- endfor -%}\n{{bos_token}}{%- if not ns.found -%}\n"
    "{{'You are an AI programming assistant, utilizing the Deepseek Coder model, developed by Deepseek Company, and you only answer questions "
    "related to computer science. For politically sensitive questions, security and privacy issues, and other non-computer science questions, "
    "you will refuse to answer\\n'}}\n{%- endif %}\n{%- for message in messages %}\n    {%- if message['role'] == 'system' %}\n"
    "{{ message['content'] }}\n    {%- else %}\n        {%- if message['role'] == 'user' %}\n{{'### Instruction:\\n' + message['content'] + '\\n'}}\n"
    "        {%- else %}\n{{'### Response:\\n' + message['content'] + '\\n<|EOT|>\\n'}}\n        {%- endif %}\n    {%- endif %}\n{%- endfor %}\n"
    "{% if add_generation_prompt %}\n{{'### Response:'}}\n{% endif %}",
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "qwen2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "qwen2.5": "{%- if messages[0]['role'] == 'system' %}\n        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
    "    {%- else %}\n        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}\n"
    "    {%- endif %}\n{%- for message in messages %}\n"
    "    {%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) or (message.role == \"assistant\" and not message.tool_calls) %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n    {%- endif %}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n",
    "qwen3": "{%- if messages[0].role == 'system' %}\n        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}\n    {%- endif %}\n"
    "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\n{%- for message in messages[::-1] %}\n"
    "    {%- set index = (messages|length - 1) - loop.index0 %}\n"
    "    {%- if ns.multi_step_tool and message.role == \"user\" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}\n"
    "        {%- set ns.multi_step_tool = false %}\n        {%- set ns.last_query_index = index %}\n    {%- endif %}\n{%- endfor %}\n"
    "{%- for message in messages %}\n    {%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n    {%- elif message.role == \"assistant\" %}\n"
    "        {%- set content = message.content %}\n        {%- set reasoning_content = '' %}\n            {%- if '</think>' in message.content %}\n"
    "                {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}\n"
    "                {%- set reasoning_content = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n"
    "            {%- endif %}\n        {%- if loop.index0 > ns.last_query_index %}\n"
    "            {%- if loop.last or (not loop.last and reasoning_content) %}\n"
    "                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}\n"
    "            {%- else %}\n                {{- '<|im_start|>' + message.role + '\\n' + content }}\n            {%- endif %}\n        {%- else %}\n"
    "            {{- '<|im_start|>' + message.role + '\\n' + content }}\n        {%- endif %}\n        {{- '<|im_end|>\\n' }}\n    {%- endif %}\n"
    "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n"
    "    {%- if enable_thinking is defined and enable_thinking is false %}\n        {{- '<think>\\n\\n</think>\\n\\n' }}\n    {%- endif %}\n{%- endif %}",
    "llama3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "llama3.1": "{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- set date_string = \"26 Jul 2024\" %}\n{%- endif %}\n"
    "{%- if messages[0]['role'] == 'system' %}\n    {%- set system_message = messages[0]['content']|trim %}\n    {%- set messages = messages[1:] %}\n"
    "{%- else %}\n    {%- set system_message = \"\" %}\n{%- endif %}\n{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}\n"
    "{{- \"Cutting Knowledge Date: December 2023\\n\" }}\n{{- \"Today Date: \" + date_string + \"\\n\\n\" }}\n{{- system_message }}\n{{- \"<|eot_id|>\" }}\n"
    "{%- for message in messages %}\n        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}\n"
    "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n{%- endif %}\n",
    "kimi-k2": "{%- for message in messages -%}\n  {%- if loop.first and messages[0]['role'] != 'system' -%}\n"
    "    <|im_system|>system<|im_middle|>You are a helpful assistant<|im_end|>\n  {%- endif -%}\n  {%- if message['role'] == 'system' -%}\n"
    "    <|im_system|>system<|im_middle|>\n  {%- elif message['role'] == 'user' -%}\n    <|im_user|>user<|im_middle|>\n"
    "  {%- elif message['role'] == 'assistant' -%}\n    <|im_assistant|>assistant<|im_middle|>\n  {%- endif -%}\n"
    "  {%- if message['content'] is string -%}\n    {{ message['content'] }}\n  {%- endif -%}\n  <|im_end|>\n{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}\n  <|im_assistant|>assistant<|im_middle|>\n{%- endif -%}\n",
}

# As a later release of Kimi has it: another default, and a newline after it.
TEMPLATES["kimi-k2 (later)"] = TEMPLATES["kimi-k2"].replace(
    "You are a helpful assistant<|im_end|>\n  {%- endif -%}", "You are Kimi, an AI assistant created by Moonshot AI.<|im_end|>\n  {% endif %}")

# The name under which the runtime knows the format, where it differs from the key.
NAMES = {"deepseek-r1 (first)": "deepseek-r1-first", "tessera": "deepseek3"}
# Known only through a program in a file.
UNNAMED = {"kimi-k2 (later)"}
# Complete texts in a folder of templates, to check the short ones against.
FULL = {"qwen2.5": "Qwen-Qwen2.5-7B-Instruct.jinja", "qwen3": "Qwen-Qwen3-0.6B.jinja", "kimi-k2": "moonshotai-Kimi-K2.jinja", "kimi-k2 (later)": "Kimi-K2-Instruct.jinja",
        "llama3.1": "meta-llama-Llama-3.1-8B-Instruct.jinja"}

# These must be refused, not taken for something near.
UNKNOWN = {
    "mistral": "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}",
    "phi": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '<|im_sep|>' + message['content'] + '<|im_end|>'}}{% endfor %}",
    "deepseek with an end after the user": NO_PROMPT + SYSTEM_LAST + DEEPSEEK_USER.replace("message['content']}}", "message['content'] + '" + E + "'}}") +
    DEEPSEEK_ANSWER + PROMPT,
    "deepseek with another opening": NO_PROMPT + SYSTEM_LAST + DEEPSEEK_USER + DEEPSEEK_ANSWER + PROMPT.replace(ASSISTANT, ASSISTANT + "Well, "),
    "chatml that trims": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] | trim + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "chatml with another opening": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\nSure' }}{% endif %}",
    "empty": "",
}

CONVERSATIONS = [
    [("user", "Hello")],
    [("system", "You are terse."), ("user", "Hello")],
    [("user", "Hi"), ("assistant", "Hello!"), ("user", "  Who are you?\n")],
    [("system", " Be kind.\n"), ("user", "Hi"), ("assistant", "  Hello!  "), ("user", "Bye"), ("assistant", "Good-bye")],
    [("user", "1+1?"), ("assistant", "<think>\nadd\n</think>\n\n2"), ("user", "And then?"), ("assistant", "<think>more</think>3</think>4")],
    [("system", "One."), ("system", "Two."), ("user", "a"), ("user", "b"), ("assistant", "c"), ("system", "Three."), ("user", "d")],
    [("assistant", "Welcome."), ("user", "Thanks \u00e4\u4e2d\U0001f600 {{ braces }} 'quotes' \"double\" \\n")],
    [("user", "q"), ("assistant", "a1"), ("assistant", "a2")],
]
