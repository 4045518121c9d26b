"""calls_test.py WALK MODEL [N]: calls of every format that the reader knows. N texts (2) of random tokens that the masks of each schema
allow are read back as calls of tools that exist, with arguments that are valid, as jsonschema has it."""

import itertools
import json
import subprocess
import sys
import unittest

import jsonschema

WALK, MODEL = sys.argv[1:3]
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 2

# Objects that no format of calls writes but as JSON.
JSON_FORMATS = {"hermes", "llama3", "deepseek-v3", "deepseek-v3.1", "kimi", "functionary", "mistral", "mistral-named", "granite", "nemotron", "apriel", "command-r", "gigachat",
                "firefunction", "actions", "channels", "apertus", "gigachat-3.1", "functionary-3.2", "minimax-m1", "solar"}


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT, SHORT = {"type": "string"}, {"type": "string", "maxLength": 6}
SCHEMAS = {
    "texts": schema(["a"], a={"type": "string", "minLength": 1, "maxLength": 8}, b={"type": "string", "enum": ["red", "redder", "5", "true", ""]}, c={"type": "string", "pattern": "^[a-z]{2}-[0-9]+$"},
                    d={"type": "string", "format": "date"}, e={"type": "string", "format": "uuid"}),
    "numbers": schema(["a", "c"], a={"type": "integer", "minimum": -7, "maximum": 123}, b={"type": "number", "exclusiveMinimum": 0, "maximum": 2}, c={"type": "integer"}, d={"type": "number"},
                      e={"type": "integer", "exclusiveMinimum": 995, "maximum": 1005}, f={"type": "number", "minimum": -1.5, "maximum": 0.5}),
    "words": schema(["b"], a={"type": "boolean"}, b={"type": "null"}, c={"enum": [True, None, 3, 2.5]}, d={"const": False}),
    "maybe": schema(["a", "b"], a={"anyOf": [SHORT, {"type": "null"}]}, b={"type": ["string", "boolean"], "maxLength": 5}, c={"anyOf": [SHORT, {"type": "integer"}, {"type": "null"}]},
                    d={"anyOf": [{"type": "array", "items": SHORT, "maxItems": 2}, SHORT, {"type": "boolean"}]}, e={"enum": ["x y", "z", None]}, f={"oneOf": [{"type": "number"}, {"const": "all"}]}),
    "nested": schema(["a"], a={"type": "object", "properties": {"x": SHORT, "y": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}}, "required": ["y"], "additionalProperties": False},
                     b={"type": "array", "items": {"type": "object", "properties": {"n": {"type": "boolean"}, "m": {"type": "null"}}, "required": ["m"]}, "maxItems": 2},
                     c={"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}, d={"enum": [[1, "x"], {"k": [None, True]}]}),
    "references": {**schema(["a"], a={"$ref": "#/$defs/tree"}, b={"anyOf": [{"$ref": "#/$defs/name"}, {"type": "null"}]}),
                   "$defs": {"name": {"type": "string", "enum": ["one", "two"]}, "tree": {"type": "object", "properties": {"name": {"$ref": "#/$defs/name"}, "next": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 1}},
                                                                                        "required": ["name"], "additionalProperties": False}}},
    "none": schema(),
    "any": schema([], a={}, b={"type": "object"}),
}
REFUSED = {
    "allOf": schema(a={"allOf": [{"type": "integer"}, {"minimum": 3}]}), "patternProperties": schema(a={"type": "object", "patternProperties": {"^a": {"type": "integer"}}}),
    "multipleOf": schema(a={"type": "number", "multipleOf": 0.5}), "duration": schema(a={"type": "string", "format": "duration"}), "not": schema(a={"not": {"type": "string"}}),
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}, "anyOf": {**schema(a=TEXT), "anyOf": [{"required": ["a"]}]}, "ipv6": schema(a={"type": "string", "format": "ipv6"}),
    "required": {"type": "object", "properties": {"a": TEXT}, "required": ["b"]}, "$ref": {**schema(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "prefixItems": schema(a={"type": "array", "prefixItems": [TEXT]}), "properties/a b": schema(**{"a b": TEXT}),
}


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([WALK, MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answer = cls.ask(syntaxes=True)
        if "missing" in answer:
            raise unittest.SkipTest(answer["missing"])
        cls.syntaxes = answer["syntaxes"]

    @classmethod
    def tearDownClass(cls):
        cls.process.stdin.close()
        cls.process.wait()
        cls.process.stdout.close()

    @classmethod
    def ask(cls, **fields):
        try:
            cls.process.stdin.write(json.dumps(fields) + "\n")
            cls.process.stdin.flush()
        except BrokenPipeError:
            pass
        return json.loads(cls.process.stdout.readline())

    def walk(self, syntax, tools, **fields):
        answer = self.ask(syntax=syntax, tools=tools, walks=COUNT + fields.pop("more", 0), **{"seed": 7, **fields})
        self.assertNotIn("refused", answer, (syntax, fields))
        return answer["texts"]

    def check(self, schemas, read, why):
        for name, arguments in read["calls"]:
            self.assertIn(name, schemas, why)
            try:
                value = json.loads(arguments)
            except ValueError:
                self.fail((why, arguments, read))
            try:
                jsonschema.validate(value, schemas[name], format_checker=jsonschema.FormatChecker())
            except jsonschema.ValidationError as error:
                self.fail((why, arguments, error.message, read["text"]))

    def test_every_format_holds_every_schema(self):
        self.assertGreaterEqual(len(self.syntaxes), 35)
        for syntax in self.syntaxes:
            for special in (False, True):
                done = 0
                for name, one in list(SCHEMAS.items())[special * (COUNT < 8)::1 + (COUNT < 8)]:
                    for read in self.walk(syntax, [{"name": "f_" + name, "parameters": one}, {"name": "f_" + name + "2", "parameters": one}], several=True, special=special):
                        why = (syntax, name, special)
                        self.assertNotIn("error", read, why)
                        if not read["ended"]:
                            continue
                        done += 1
                        self.assertGreaterEqual(len(read["calls"]), 1, (why, read))
                        self.assertEqual(read["content"].strip(), "", (why, read))
                        self.check({"f_" + name: one, "f_" + name + "2": one}, read, why)
                self.assertGreater(done, 0, (syntax, special))

    def test_one_call_is_one(self):
        for syntax in self.syntaxes:
            for read in self.walk(syntax, [{"name": "f", "parameters": schema(["a"], a={"type": "boolean"})}], several=False):
                if read["ended"]:
                    self.assertEqual(len(read["calls"]), 1, (syntax, read))

    def test_free_text_before_calls_that_are_held(self):
        one = schema(["a"], a={"enum": [1, 2]}, b={"type": "boolean"})
        for syntax in self.syntaxes:
            for special in (False, True):
                calls = contents = 0
                for read in self.walk(syntax, [{"name": "f", "parameters": one}, {"name": "g", "parameters": schema(x=TEXT), "held": False}], several=True, any=True, special=special, calling=True, more=8):
                    self.assertNotIn("error", read, syntax)
                    self.check({"f": one, "g": {"type": "object"}}, {**read, "calls": [c for c in read["calls"] if read["ended"]]}, (syntax, special))
                    calls += len(read["calls"])
                    contents += read["content"] != ""
                self.assertGreater(calls, 0, (syntax, special))
                self.assertGreater(contents, 0, (syntax, special))

    def test_calls_or_an_answer_of_a_form(self):
        one, form = schema(["a"], a={"enum": [1, 2]}), schema(["sun"], sun={"type": "boolean"}, name=SHORT)
        for syntax in self.syntaxes:
            for special in (False, True):
                calls = contents = 0
                asked = {"several": True, "any": True, "otherwise": form, "special": special, "more": 6}
                for seed, calling in itertools.product(range(7, 17), (False, True)):
                    if calls and contents:
                        break
                    for read in self.walk(syntax, [{"name": "f", "parameters": one}], calling=calling, seed=seed, **asked):
                        self.assertNotIn("error", read, syntax)
                        if not read["ended"]:
                            continue
                        self.check({"f": one}, read, (syntax, special))
                        calls += len(read["calls"]) > 0
                        if not read["calls"]:
                            contents += 1
                            jsonschema.validate(json.loads(read["content"]), form)
                        else:
                            self.assertEqual(read["content"].strip(), "", (syntax, special, read))
                self.assertGreater(calls, 0, (syntax, special))
                self.assertGreater(contents, 0, (syntax, special))

    def test_what_cannot_be_held_is_refused_by_name(self):
        for syntax in self.syntaxes:
            if syntax in JSON_FORMATS:
                continue
            for word, one in REFUSED.items():
                answer = self.ask(syntax=syntax, tools=[{"name": "f", "parameters": one}], walks=1, seed=1)
                self.assertIn("refused", answer, (syntax, word))
                self.assertIn(word, answer["refused"])
                self.assertIn("the tool 'f'", answer["refused"])

    def test_what_cannot_be_held_is_reported_where_that_is_allowed(self):
        """The other parameter is held to its schema in every format."""
        for syntax in self.syntaxes:
            for word, given in REFUSED.items():
                one = {**given, "properties": {**given.get("properties", {}), "kept": {"enum": ["one", "two"]}}, "required": ["kept"]}
                answer = self.ask(syntax=syntax, tools=[{"name": "f", "parameters": one, "allow": True}], walks=1, seed=1)
                self.assertNotIn("refused", answer, (syntax, word))
                for place in answer["unenforced"]:
                    self.assertRegex(place, "^f(/|$)", (syntax, word))
                if syntax not in JSON_FORMATS and word not in ("$ref", "required", "additionalProperties"):
                    self.assertGreater(len(answer["unenforced"]), 0, (syntax, word))
                for read in answer["texts"]:
                    for _, arguments in read["calls"] if read["ended"] and word != "$ref" else ():
                        self.assertIn(json.loads(arguments)["kept"], ("one", "two"), (syntax, word, read))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
