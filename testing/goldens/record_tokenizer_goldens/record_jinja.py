#!/usr/bin/env python3
"""Records what Python's Jinja makes of small programs, as transformers sets it up: tests/text/data/jinja.json."""
import json

import record_chat_tools

VARIABLES = {
    "text": "  H\u00e9llo \u4e16\u754c\n", "words": ["b", "a", "c"], "numbers": [3, -1, 2], "none": None, "yes": True, "no": False, "empty": "", "nothing": [],
    "map": {"b": 1, "a": {"x": [1, "two", None, True, {"y": "z\"\n"}]}, "items": 3}, "items": [{"name": "x", "ok": True}, {"name": "y"}, {"name": "z", "ok": False}],
    "big": 12345678901234567890, "half": 0.5}
EXPRESSIONS = [
    "text", "none", "yes", "no", "numbers", "words", "map.a", "map['b']", "half", "big", "missing", "map.missing", "map['missing']", "words[0]", "words[-1]", "words[9]",
    "words[1:]", "words[:-1]", "words[::-1]", "text[2:7]", "text[-3:]", "text[3]", "text[:99]", "1 + 2 * 3 - 4", "7 // 2", "-7 // 2", "-7 % 3", "7 % -3", "2 - -1", "1 < 2", "'a' < 'b'", "2 >= 2",
    "1 == 1", "1 == '1'", "yes == 1", "none == none", "words == []", "'a' in words", "'d' not in words", "'ell' in 'hello'", "'b' in map", "'a' ~ 1 ~ none", "'a' + 'b' 'c'", "not words", "not nothing",
    "words and 5", "nothing or 'x'", "none or 0", "'x' if yes else 'y'", "'x' if no", "1 if no else 2 if no else 3", "(1, 2)", "[1, [2], 'a']", "{'a': 1, 'b': [2]}", "'it\\'s \\n \\x41\\u00e9\\q'",
    "text | trim", "text | length", "words | length", "map | length", "words | join(', ')", "numbers | join", "words | first", "words | last", "'aBc' | upper", "'aBc' | lower", "'aBc' | capitalize",
    "missing | default('d')", "none | default('d')", "none | default('d', true)", "'' | default('e', boolean=true)", "map | tojson", "map | tojson(indent=2)", "text | tojson", "big | tojson", "half | tojson", "yes | tojson", "none | tojson",
    "'a-b-c' | replace('-', '+')", "words | list", "map | list", "'abc' | list", "map | items | list", "map | dictsort", "items | map(attribute='name') | join('/')", "items | selectattr('ok') | map(attribute='name') | list",
    "items | rejectattr('ok') | list | length", "items | selectattr('name', 'equalto', 'y') | list", "numbers | select('odd') | list", "numbers | reject('equalto', 2) | list", "words | map('upper') | list", "words | reverse | list",
    "3 | string", "none | string", "-numbers[0]", "-1 | string", "text.strip()", "text.lstrip()", "text.rstrip()", "'xxaxx'.strip('x')", "'xxaxx'.lstrip('x')", "'a,b,c'.split(',')", "'a,b,c'.split(',', 1)", "'a,b'.split(',')[-1]",
    "'abc'.startswith('ab')", "'abc'.endswith('bc')", "'aXbX'.replace('X', '')", "'-'.join(words)", "'ab'.upper()", "map.get('b')", "map.get('c')", "map.get('c', 'd')", "map.items() | list", "map.keys() | list", "map.values() | list | length",
    "range(3) | list", "range(1, 4) | list", "range(5, 0, -2) | list", "namespace(a=1).a", "dict(a=1)", "text is string", "map is mapping", "words is iterable", "words is sequence", "text is iterable", "none is none", "missing is defined",
    "text is defined", "missing is undefined", "1 is number", "yes is number", "yes is boolean", "1 is integer", "yes is true", "no is false", "1 is odd", "2 is even", "1 is eq 1", "1 is ne 2", "'a' is in words", "none is not none", "words is not string",
    "not 1 is odd", "1 is odd and 2 is even", "map.a.x[4].y", "map.a['x'][1]", "words.0", "'%s' | length", "'a' * 2", "1 / 2", "missing.x", "none + 'a'", "1 + 'a'", "[] + words", "words | nobody", "words is nobody", "words.append(1)", "map.pop('b')",
    "{'a': {'b': 1}}.a.b", "map.items", "(words | map('upper')) | length", "words[yes]", "text.x.y", "7 // 0", "'a' in none", "'%d' % 3", "1 < 'a'", "raise_exception('own words')", "words('x')", "[1, 2] == [1, 2]", "1.5 + 1", "2 ** 3", "1 < 2 < 3",
    "'a' | tojson | safe", "('<' | safe) + '<'"]
# Numbers at the ends of 64 bits; Python has no such ends.
LEAST, MOST = "(-9223372036854775807 - 1)", "9223372036854775807"
EXPRESSIONS += [
    LEAST, MOST, f"-{MOST}", f"-{LEAST}", f"- -{MOST}", f"{MOST} + 1", f"{LEAST} - 1", f"{MOST} * 2", f"{LEAST} * -1", f"{LEAST} // -1", f"{LEAST} % -1", f"{LEAST} // 1", f"{LEAST} % 3", f"{MOST} // -1", f"7 % {LEAST}", f"-7 // {MOST}",
    "9223372036854775808", "-9223372036854775808", "-big", "big + 1", f"{LEAST} < {MOST}", f"{LEAST} == {MOST}", f"{LEAST} is odd", f"{MOST} is odd", f"{LEAST} | string", f"{LEAST} | int", f"{LEAST} | tojson", f"{LEAST} | abs", "-3 | abs",
    f"words[{MOST}]", f"words[{LEAST}]", f"text[{MOST}]", f"text[{LEAST}]", f"words[{LEAST}:]", f"words[{MOST}:]", f"words[:{LEAST}]", f"words[:{MOST}]", f"text[{LEAST}:{MOST}]", f"text[{MOST}:{LEAST}]", f"words[::{MOST}]", f"words[::{LEAST}]",
    f"words[::-{MOST}]", "words[0:3:2]", "words[::0]", f"range({MOST} - 2, {MOST}) | list", f"range({MOST} - 7, {MOST}, 5) | list", f"range({LEAST} + 7, {LEAST}, -5) | list", f"range(0, {MOST}, 4611686018427387904) | list", f"range({LEAST}, {MOST}, {MOST}) | list",
    f"range({MOST}, {LEAST}) | list", f"range({LEAST}) | list", "range(0, 5, 0) | list", f"range({MOST}, {LEAST}, {LEAST}) | list", f"'a,b,c'.split(',', {MOST})", f"'a,b,c'.split(',', {LEAST})", "'a,b,c'.split(',', 0)", "'a' * 0", "'a' * -1", "[1] * 2", "2 * 'ab'",
    f"'a' * {LEAST}", "'12' | int", "'x' | int", "'99999999999999999999' | int", "1.5 | int", "2.5 | round", "1234 | round(-2)", "'a\nb' | indent(2)", "'a\nb' | indent(0)", "map | tojson(indent=0)", "'abc' | center(9)", "'abcdef' | truncate(3)", "words | batch(2) | list"]
PROGRAMS = [
    "a\n{% if yes %}\n  b\n{% endif %}\nc\n", "a\n  {%- if yes -%}  \n b {%- endif -%}\n c", " {% if yes %}x{% endif %} \n", "x {#- c -#} y", "x\n{# c #}\ny", "x {# c #} y\n", "{{ 1 }}\n\n{{ 2 }}\n", "{{- 1 }} {{ 2 -}}  3",
    "a {%+ if yes %} b{% endif +%}\nc", "\r\na\rb\r\n", "{% for x in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ x }}{% endfor %}",
    "{% for x in words %}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}", "{% for k, v in map.items() %}{{ k }}{% endfor %}", "{% for (a, b) in [(1, 2), (3, 4)] %}{{ a + b }}{% endfor %}", "{% for x in numbers if x > 0 %}{{ loop.index }}{{ x }}{% endfor %}",
    "{% for x in nothing %}a{% else %}b{% endfor %}", "{% for x in missing %}a{% endfor %}", "{% for c in 'ab\u00e9' %}[{{ c }}]{% endfor %}", "{% for x in words %}{% if x == 'a' %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in words %}{% if x == 'a' %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for y in words %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "{% set n = namespace(x=0) %}{% for y in words %}{% set n.x = n.x + 1 %}{% endfor %}{{ n.x }}", "{% if no %}a{% elif yes %}b{% else %}c{% endif %}", "{% if no %}{% set q = 1 %}{% endif %}{{ q is defined }}",
    "{% set x %}a{{ 1 }}b{% endset %}{{ x }}{{ x | length }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% macro f(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=4, a=5) }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% macro f() %}{{ text | trim }}{% endmacro %}{% for text in words %}{{ f() }}{% endfor %}", "{{ '{{' }}{{ '%}' }}{{ {'a': {'b': 1}}['a']['b'] }}", "{% set messages = words[1:] %}{{ messages[0] }}", "{% generation %}x{% endgeneration %}", "{{ x", "{% if yes %}", "{% endif %}", "{% nobody %}", "{{ 'a }}",
    "{% for x in words %}{% for y in numbers %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% set n.x = 1 %}", "{{ loop.index }}", "{% if missing %}a{% endif %}{% if not missing %}b{% endif %}", "{%- set x = 'a' -%}\n\n{{- x -}}\n\n", "{% if yes and\n not no %}\nz\n{% endif %}\n\n\n"]


def main():
    one = record_chat_tools.environment()
    rows = []
    for program in ["{{ " + e + " }}" for e in EXPRESSIONS] + PROGRAMS:
        try:
            rows.append([program, one.from_string(program.replace("{% generation %}", "").replace("{% endgeneration %}", "")).render(VARIABLES)])
        except Exception:  # Python refuses it
            rows.append([program, None])
    path = record_chat_tools.record_chat.DATA / "jinja.json"
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text('{"variables": ' + json.dumps(VARIABLES) + ',\n"programs": [\n' + lines + "]}\n")
    print(len(rows), "programs,", sum(text is None for _, text in rows), "of them refused,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
