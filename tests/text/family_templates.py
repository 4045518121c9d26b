"""Small templates of our own, one a family of models whose published templates are not in the tree: the marks of its format, and no more.
FAMILIES: {name in /props: (program, what ends an answer's turn)}."""

# Of arguments as text between tags: texts as they are, other values as JSON.
BARE = "{{ v if v is string else v | tojson }}"

APERTUS = """{{ tools | tojson if tools }}{% set ns = namespace(results=false) %}{% for m in messages %}{% if m.role == 'tool' %}{{ ', ' if ns.results else '[' }}{{ m.content }}{% set ns.results = true %}{% else %}{{ ']' if ns.results }}{% set ns.results = false %}<|{{ m.role }}_start|>{% if m.reasoning_content %}<|inner_prefix|>{{ m.reasoning_content }}<|inner_suffix|>{% endif %}{{ m.content }}{% if m.tool_calls %}<|tools_prefix|>[{% for c in m.tool_calls %}{"{{ c.function.name }}": {{ c.function.arguments | tojson }}}{{ ', ' if not loop.last }}{% endfor %}]<|tools_suffix|>{% endif %}<|{{ m.role }}_end|>{% endif %}{% endfor %}{{ ']' if ns.results }}{% if add_generation_prompt %}<|assistant_start|>{% endif %}"""

GIGACHAT_31 = """{{ tools | tojson if tools }}{% for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('one call a message') }}{% endif %}{{ 'function result' if m.role == 'tool' else m.role }}<|role_sep|>
{{ m.content }}{% for c in m.tool_calls or [] %}<|function_call|>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}{% endfor %}<|message_sep|>

{% endfor %}{% if add_generation_prompt %}assistant<|role_sep|>
{% endif %}"""

FUNCTIONARY_32 = """{{ tools | tojson if tools }}{% for m in messages %}[{{ m.role }}]
{% if m.role == 'assistant' %}{% if m.content %}>>>all
{{ m.content }}{% endif %}{% for c in m.tool_calls or [] %}>>>{{ c.function.name }}
{{ c.function.arguments }}{% endfor %}{% else %}{{ m.content }}{% endif %}<|eot_id|>{% endfor %}{% if add_generation_prompt %}[assistant]
>>>{% endif %}"""

KIMI_K3 = """{{ tools | tojson if tools }}{% for m in messages %}<|open|>message role="{{ m.role }}"<|sep|>{% if m.role == 'assistant' %}<|open|>think<|sep|>{{ m.reasoning_content or '' }}<|close|>think<|sep|><|open|>response<|sep|>{{ m.content or '' }}<|close|>response<|sep|>{% if m.tool_calls %}<|open|>tools<|sep|>{% for c in m.tool_calls %}<|open|>call tool="{{ c.function.name }}" index="{{ loop.index }}"<|sep|>{% for k, v in c.function.arguments.items() %}<|open|>argument key="{{ k }}" type="{{ 'string' if v is string else 'number' if v is number else 'object' }}"<|sep|>""" + BARE + """<|close|>argument<|sep|>{% endfor %}<|close|>call<|sep|>{% endfor %}<|close|>tools<|sep|>{% endif %}{% else %}{{ m.content }}{% endif %}<|close|>message<|sep|><|end_of_msg|>{% endfor %}{% if add_generation_prompt %}<|open|>message role="assistant"<|sep|><|open|>think<|sep|>{% endif %}"""

MINIMAX_M1 = """{{ tools | tojson if tools }}{% for m in messages %}<beginning_of_sentence>{{ m.role }}
{{ m.content }}{% if m.tool_calls %}
<tool_calls>
{% for c in m.tool_calls %}{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
{% endfor %}</tool_calls>{% endif %}<end_of_sentence>
{% endfor %}{% if add_generation_prompt %}<beginning_of_sentence>assistant
{% endif %}"""

MINIMAX_M3 = """{% set mark = ']<]minimax[>[' %}{% macro tags(value) %}{% if value is mapping %}{% for k, v in value.items() %}{{ mark }}<{{ k }}>{{ tags(v) }}{{ mark }}</{{ k }}>{% endfor %}{% elif value is string %}{{ value }}{% elif value is sequence %}{% for v in value %}{{ mark }}<item>{{ tags(v) }}{{ mark }}</item>{% endfor %}{% else %}{{ value | tojson }}{% endif %}{% endmacro %}{{ tools | tojson if tools }}{% for m in messages %}]~b]{{ m.role }}
{% if m.role == 'assistant' %}{% if m.reasoning_content %}<mm:think>{{ m.reasoning_content }}{% endif %}</mm:think>{% endif %}{{ m.content }}{% if m.tool_calls %}{{ mark }}<tool_call>
{% for c in m.tool_calls %}{{ mark }}<invoke name="{{ c.function.name }}">{{ tags(c.function.arguments) }}{{ mark }}</invoke>
{% endfor %}{{ mark }}</tool_call>{% endif %}[e~[
{% endfor %}{% if add_generation_prompt %}]~b]assistant
{% endif %}"""

MUSE = """{{ tools | tojson if tools }}{% macro head(name) %}<|start|>assistant to={{ name }}<|message|>{% endmacro %}{% for m in messages %}{% if m.role == 'assistant' %}{% if m.reasoning_content %}{{ head('self') }}{{ m.reasoning_content }}{{ '<|eom|>' if m.content or m.tool_calls else '<|eot|>' }}{% endif %}{% if m.content %}{{ head('user') }}{{ m.content }}{{ '<|eom|>' if m.tool_calls else '<|eot|>' }}{% endif %}{% for c in m.tool_calls or [] %}{{ head(c.function.name) }}<atem:function_calls>
<atem:invoke name="{{ c.function.name }}">
{% for k, v in c.function.arguments.items() %}<atem:parameter name="{{ k }}">""" + BARE + """</atem:parameter>
{% endfor %}</atem:invoke>
</atem:function_calls>{{ '<|eot|>' if loop.last else '<|eom|>' }}{% endfor %}{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|eot|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"""

MINICPM = """{{ tools | tojson if tools }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}{{ '\n' if m.content or not loop.first }}<function name="{{ c.function.name }}">{% for k, v in c.function.arguments.items() %}<param name="{{ k }}">{% if v is string and '<' in v %}<![CDATA[{{ v }}]]>{% else %}""" + BARE + """{% endif %}</param>{% endfor %}</function>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

HUNYUAN = """{{ tools | tojson if tools }}{% for m in messages %}<|hy_{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}{% if m.tool_calls %}<tool_calls>
{% for c in m.tool_calls %}<tool_call>{{ c.function.name }}<tool_sep>
{% for k, v in c.function.arguments.items() %}<arg_key>{{ k }}</arg_key>
<arg_value>""" + BARE + """</arg_value>
{% endfor %}</tool_call>
{% endfor %}</tool_calls>{% endif %}<|hy_eos|>{% endfor %}{% if add_generation_prompt %}<|hy_assistant|>{% endif %}"""

HUNYUAN_OPEN = HUNYUAN
for tag in ("think", "tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value"):
    HUNYUAN_OPEN = HUNYUAN_OPEN.replace(f"<{tag}>", f"<{tag}:opensource>").replace(f"</{tag}>", f"</{tag}:opensource>")

SOLAR = """{{ tools | tojson if tools }}{% for m in messages %}{% if m.role == 'assistant' %}{% if m.reasoning_content %}<|begin|>assistant<|think|>{{ m.reasoning_content }}<|end|>{% endif %}{% if m.content %}<|begin|>assistant<|content|>{{ m.content }}<|end|>{% endif %}{% if m.tool_calls %}<|begin|>assistant<|tool_calls|>{% for c in m.tool_calls %}<|tool_call:begin|>{{ c.id }}<|tool_call:name|>{{ c.function.name }}<|tool_call:args|>{{ c.function.arguments | tojson }}<|tool_call:end|>{% endfor %}<|calls|>{% endif %}{% else %}<|begin|>{{ m.role }}<|content|>{{ m.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|begin|>assistant{% endif %}"""

FAMILIES = {"apertus": (APERTUS, "<|assistant_end|>"), "gigachat-3.1": (GIGACHAT_31, "<|message_sep|>\n\n"), "functionary-3.2": (FUNCTIONARY_32, "<|eot_id|>"), "kimi-k3": (KIMI_K3, "<|end_of_msg|>"),
            "minimax-m1": (MINIMAX_M1, "<end_of_sentence>\n"), "minimax-m3": (MINIMAX_M3, "[e~[\n"), "muse": (MUSE, "<|eot|>"), "minicpm": (MINICPM, "<|im_end|>\n"), "hunyuan": (HUNYUAN, "<|hy_eos|>"),
            "hunyuan-open": (HUNYUAN_OPEN, "<|hy_eos|>"), "solar": (SOLAR, "")}
