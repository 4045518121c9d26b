#!/usr/bin/env python3
"""Writes the seeds of jinja_fuzzer and its dictionary: make_jinja_corpus.py FOLDER DICTIONARY.

Programs of others serve as further seeds while fuzzing; each needs a byte before it, which chooses the conversation.
"""
import pathlib
import sys

SEEDS = {
    "loop": "{{ bos_token }}{% for m in messages %}{{ loop.index0 }}{{ m['role'] }}:{{ m.content|trim }}{% if not loop.last %}\n{% endif %}{% else %}none{% endfor %}",
    "filter": "{% for m in messages if m.role == 'user' %}{{ m.content | upper | replace('A', 'b') }}{% endfor %}",
    "namespace": "{% set ns = namespace(a=0, b='') %}{% for m in messages %}{% set ns.a = ns.a + 1 %}{% set ns.b = ns.b ~ m.role[:2] %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "macro": "{% macro f(x, y='b') -%}{{ x }}{{ y|tojson }}{{ caller() if caller else '' }}{%- endmacro %}{{ f(1) }}{% call f(2, y=[1]) %}c{% endcall %}",
    "slices": "{{ messages[::-1] | length }}{{ 'abcdef'[1:-1:2] }}{{ messages[-1].content[0] }}{{ [1, 2, 3][1:] }}",
    "tests": "{{ n is defined }}{{ x is not defined }}{{ none is none }}{{ 'a' is string }}{{ messages is iterable }}{{ 3 is odd }}{{ n is divisibleby 7 }}",
    "methods": "{{ ' a b '.strip().split(' ') }}{{ 'a,b'.split(',')[0].startswith('a') }}{{ {'a': 1}.items() | list }}{{ {'a': 1}.get('b', 2) }}{{ 'ab'.replace('a', '') }}",
    "json": "{{ messages | tojson(indent=2) }}{{ {'a': [1, 2.5, none, true, '\\u00e4<']} | tojson }}",
    "tools": "{% if tools %}{% for t in tools %}{{ t.function.name }}{{ t['function']['parameters'] | tojson }}{% endfor %}{% endif %}",
    "calls": "{% for m in messages %}{% if m.tool_calls is defined and m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments }}{% endfor %}{% endif %}{% endfor %}",
    "raise": "{% if messages[0].role != 'system' %}{{ raise_exception('no ' + messages[0].role) }}{% endif %}",
    "time": "{{ strftime_now('%d %b %Y') }}",
    "control": "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "blanks": "  {%- set a = 1 -%}  \n  {{- a -}}  \n{#- remark -#}\n   {% if a %}\n   x\n   {% endif %}\n",
    "arithmetic": "{{ 1 + 2 * 3 - 4 // 5 % 6 ** 2 }}{{ 7 / 2 }}{{ -n }}{{ 9223372036854775807 + 1 }}{{ 'a' * 3 }}{{ 1 < 2 <= 2 }}",
    "logic": "{{ (1 and 0) or not (2 in [1, 2]) }}{{ 'a' if n > 3 else 'b' }}{{ 'x' if false }}{{ n not in messages }}",
    "set-block": "{% set text %}a{{ n }}{% endset %}{{ text|length }}{% filter upper %}b{% endfilter %}",
    "generation": "{% generation %}a{% endgeneration %}{% if add_generation_prompt %}{{ eos_token }}{% endif %}",
    "select": "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('; ') }}{{ [3, 1] | sort | first }}{{ [1] | reject('odd') | list }}",
    "dictionary": "{% set d = dict(a=1) %}{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}{{ d | dictsort }}{{ d | items | list }}",
    "deep": "{{ " + "[" * 90 + "]" * 90 + " }}" + "{{ " + "(" * 90 + "1" + ")" * 90 + " }}",
    "long-loop": "{% for i in range(99999) %}{% for j in range(99999) %}{{ i }}{% endfor %}{% endfor %}",
    "growth": "{% set ns = namespace(a='ab') %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}{{ ns.a }}",
    "recursion": "{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}",
    "raw": "{% raw %}{{ not run }}{% endraw %}{{ '{{' }}{{ \"%}\" }}",
    "escapes": "{{ '\\n\\t\\'\\\"\\\\\\x41\\u00e4\\U0001F600' }}{{ 'a' 'b' }}",
    "broken": "{% for m in messages %}{{ m.content | nosuch }}{% endif %}",
    "unclosed": "{{ messages[0]['content' }}{% if",
    "attributes": "{{ messages.__class__ }}{{ ''.__class__.__mro__ }}{{ n.a.b.c }}",
    "format": "{{ '%s|%5d|%-4s|%.2f|%x|%r' % (n, n, 'a', n, n, 'b') }}{{ '{} {0!r} {x:>4} {:.1f}'.format(n, x=1) }}{{ '{0[a]}'.format({'a': 1}) }}",
    "recursive": "{% for a in [[1, [2, [3]]]] recursive %}{{ loop.depth }}{{ loop.cycle('x', 'y') }}{{ loop.changed(a) }}{% if a is iterable and a is not string %}{{ loop(a) }}{% endif %}{% endfor %}",
    "with": "{% with a = 1, b = messages %}{{ a }}{{ b[0].content }}{% endwith %}{% set x, y = 'ab' %}{{ x ~ y }}{% set t | upper %}c{% endset %}{{ t }}",
    "texts": "{% set t = messages[0].content %}{{ t.title() }}{{ t.partition(' ') }}{{ t.splitlines() }}{{ t.center(9, '*') }}{{ t | e }}{{ (t | safe) + '<' }}{{ t.find('b') }}{{ t.rsplit(none, 1) }}{{ t | indent(2) }}{{ t | truncate(4) }}{{ t | urlencode }}",
    "collections": "{{ messages | groupby('role') }}{{ messages | sort(attribute='content') | unique | list }}{{ [1, 2, 3] | batch(2) | list }}{{ [3, 1.5] | sum }}{{ [1, 2] | slice(2) | list }}{{ (1, 2) < (1, 3) }}{{ {1: 'a', none: 2} }}",
    "lists": "{% set n2 = namespace(l=[]) %}{% for m in messages %}{% set _ = n2.l.append(m.content) %}{% endfor %}{{ n2.l | join }}{{ n2.l.pop(0) }}",
    "thinking": "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>{% endif %}{{ m.content.split('</think>')[-1].lstrip('\\n') if m is defined }}",
    "types": "{%- macro type_of(spec, deep=false) -%}{%- if spec.type == 'array' -%}{{ type_of(spec['items']) ~ '[]' }}{%- elif spec.enum is defined and spec.enum -%}{{ '\"' + spec.enum|join('\" | \"') + '\"' }}{%- elif spec.type == 'object' -%}{ {%- for name, one in (spec.properties or {}).items() -%}{{ name + ': ' + type_of(one) }}{{- ', ' if not loop.last else '' -}}{%- endfor -%} }{%- else -%}{{ spec.type or 'any' }}{%- endif -%}{%- endmacro -%}{% for t in tools or [] %}{{ type_of(t.function.parameters) }}{% endfor %}",
    "channels": "{% set ns = namespace(last=none) %}{% for m in messages -%}{% if m.role == 'assistant' %}{% if 'tool_calls' in m %}{% set ns.last = m.tool_calls[0].function.name %}{{ '<|start|>assistant to=functions.' ~ ns.last ~ '<|channel|>commentary json<|message|>' ~ m.tool_calls[0].function.arguments|tojson ~ '<|call|>' }}{% elif loop.last and not add_generation_prompt %}{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|return|>' }}{% endif %}{% elif m.role == 'tool' %}{% if ns.last is none %}{{ raise_exception('no call before the result') }}{% endif %}{% endif %}{% endfor %}",
    "turns": "{% if messages[0]['role'] == 'system' %}{% if messages[0]['content'] is string %}{% set first = messages[0]['content'] + '\\n' %}{% else %}{% set first = messages[0]['content'][0]['text'] %}{% endif %}{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles alternate') }}{% endif %}{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + (first if loop.first else '') }}{% if m.content is string %}{{ m.content | trim }}{% elif m.content is iterable %}{% for item in m.content %}{% if item['type'] == 'text' %}{{ item['text'] | trim }}{% endif %}{% endfor %}{% endif %}{{ '<end_of_turn>\\n' }}{% endfor %}",
}
WORDS = ["{{", "}}", "{%", "%}", "{%-", "-%}", "{{-", "-}}", "{#", "#}", "for ", " in ", "endfor", "if ", "elif ", "else", "endif", "set ", "endset", "macro ",
         "endmacro", "call ", "endcall", "filter ", "endfilter", "raw", "endraw", "break", "continue", "generation", "endgeneration", "namespace(", "range(", "dict(",
         "raise_exception(", "strftime_now(", "messages", "content", "role", "tools", "tool_calls", "function", "arguments", "loop.", "index0", "previtem", "is ",
         "not ", "defined", "none", "true", "|tojson", "|trim", "|length", "|join(", "|list", "|map(attribute=", "|selectattr(", "|default(", "|items", "|string", ".split(",
         ".strip(", ".startswith(", ".items()", ".get(", ".replace(", "[::-1]", "[1:]", " if ", " else ", " and ", " or ", "**", "//", "~", "==", "\\\\n", "indent=",
         "is string", "is iterable", "is mapping", "is none", "loop.first", "loop.last", "raise_exception('a')", "['type'] == 'text'", "<|channel|>", "<start_of_turn>"]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, program) in enumerate(SEEDS.items()):
        (folder / f"seed-{name}").write_bytes(bytes([(number * 37 + 75) % 256]) + program.encode())
    lines = ["\"" + word.replace("\"", "\\\"") + "\"\n" for word in WORDS]
    pathlib.Path(sys.argv[2]).write_text("".join(lines))


if __name__ == "__main__":
    main()
