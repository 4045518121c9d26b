"""Forms of an answer that would take time or memory without end, as fields of a request."""

HOSTILE_FORMS = [
    {"regex": "((a{1000}){1000}){1000}"},
    {"regex": "(" * 5000 + "a" + ")" * 5000},
    {"regex": "(a|b)*a" + "(a|b)" * 30},
    {"json_schema": {"allOf": [{"type": "string", "pattern": f"(a|b)*{'ab'[i % 2]}(a|b){{{i}}}"} for i in range(16)]}},
    {"json_schema": {"$ref": "#"}},
    {"json_schema": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    {"json_schema": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}},
    {"json_schema": {"type": "string", "pattern": "^[^x]{1,5000}a[^y]{1,5000}$"}},
    {"json_schema": {"type": "array", "minItems": 100000, "items": {"type": "null"}}},
    {"json_schema": {"enum": [str(i * 7919) for i in range(50000)]}},
    {"grammar": 'root ::= root root | "a" | ""'},
    {"grammar": 'root ::= x* x* "b"\nx ::= ("a"* "a"*)*'},
    {"grammar": "root ::= " + "(" * 1000 + '"a"' + ")" * 1000},
    {"grammar": "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(30)) + 'r30 ::= "a"\nroot ::= r0'},
]
