#!/usr/bin/env python3
"""Writes the seeds of structure_fuzzer and its dictionary: make_structure_corpus.py FOLDER DICTIONARY.

The first byte says what a seed is: 0 a schema, 1 a grammar, 2 a pattern, 3 + 4 * N a tool's parameters in the format of number N.
"""
import json
import pathlib
import sys

SCHEMAS = {
    "texts": {"type": "object", "properties": {"a": {"type": "string", "minLength": 1, "maxLength": 8}, "b": {"enum": ["x", "5", None]}, "c": {"type": "string", "pattern": "^[a-z]+-\\d{2}$"},
                                               "d": {"type": "string", "format": "date"}, "e": {"type": "string", "format": "email"}}, "required": ["a"], "additionalProperties": False},
    "numbers": {"type": "object", "properties": {"a": {"type": "integer", "minimum": -7, "maximum": 12345}, "b": {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5}, "c": {"multipleOf": 1}}},
    "unions": {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "b": {"type": ["string", "integer", "array"]}, "c": {"oneOf": [{"const": 1}, {"type": "boolean"}]}}},
    "nested": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"x": {}}, "required": ["x", "y"]}, "minItems": 1, "maxItems": 3},
                                                "b": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}}},
    "references": {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "object", "properties": {"n": {"$ref": "#/$defs/t"}, "m": {"$ref": "#/$defs/u"}}}, "u": {"allOf": [{"type": "null"}]}}},
    "loops": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#"}}, "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
    "refused": {"type": "object", "properties": {"a": {"not": {}}, "b": {"patternProperties": {"^x": {}}}, "c": {"uniqueItems": True}}},
    "constants": {"type": "object", "properties": {"a": {"const": {"k": [1, -2.5e30, None, True, "\"<|\\\"|>"]}}, "b": {"enum": ["</parameter>", "</arg_value>", "\n", "\u00e4\U0001F600"]}}},
    "odd": {"type": [], "properties": {"": False, "a b": True, "<x>": {"minLength": 3, "maxLength": 2}}, "required": [1]},
    "bounds": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1e300, "maximum": -1e300}, "b": {"type": "number", "minimum": 0.1, "maximum": 0.2}, "c": {"type": "integer", "maximum": 9223372036854775807}}},
    "draft4": {"type": "object", "properties": {"a": {"type": "number", "minimum": 1, "exclusiveMinimum": True}, "b": {"type": "array", "items": [{}, {}], "additionalItems": False}}},
}
GRAMMARS = {
    "json": "root ::= object\nobject ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\" ws\nvalue ::= object | string | (\"true\" | \"null\") ws\nstring ::= \"\\\"\" [^\"\\\\\\x00-\\x1f]* \"\\\"\" ws\nws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n",
    "repeats": "root ::= \"a\"{2,3} \"b\"+ \"c\"? [d-f]* . \"\\u00e9\\x41\"{2,}\n",
    "recursive": "root ::= x\nx ::= \"(\" x \")\" | y # remark\ny ::= \"a\" | x y\n",
    "tokens": "root ::= <[5]> <tool_call> !<[3]>\n",
    "broken": "root ::= (\"a\" | [b-a\nx ::= \"\\q\"\n",
    "missing": "root ::= a b c\na ::= \"x\"\n",
}
PATTERNS = {
    "anchors": "^a|b$|^c$", "classes": "[\\w\\s\\d-z^\\]]+[^a-f\\u00e9]{2,5}?", "groups": "(?:a|(b)|(?<n>c))*", "look": "(?=a)(?!b)(?<=c)", "escapes": "\\x41\\u0042\\u{1F600}\\cA\\p{L}\\0\\/\\-", "inner": "a^b$c",
    "repeat": "a{3}{4}{5,}?", "surrogates": "\\ud83d\\ude00\\ud83d",
}
FORMATS = 26  # of calls, some of which have none

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, schema in SCHEMAS.items():
    text = json.dumps(schema).encode()
    (folder / f"schema-{name}").write_bytes(b"\0" + text)
for number, (name, schema) in enumerate(list(SCHEMAS.items()) * 3):
    if number < FORMATS:
        (folder / f"call-{number}-{name}").write_bytes(bytes([3 + 4 * number]) + json.dumps(schema).encode())
for first, kind, seeds in ((1, "grammar", GRAMMARS), (2, "pattern", PATTERNS)):
    for name, text in seeds.items():
        (folder / f"{kind}-{name}").write_bytes(bytes([first]) + text.encode())
words = ["type", "properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "#/$defs/a", "$defs", "enum", "const", "items", "minItems", "maxItems", "minLength", "maxLength", "pattern", "format",
         "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "string", "integer", "number", "boolean", "null", "array", "object", "date-time", "uuid", "root ::= ", "{2,3}", "(?:", "\\\\u00e9", "\\\\x41"]
pathlib.Path(sys.argv[2]).write_text("".join(f'"{word}"\n' for word in words))
