"""generators_test.py PROGRAM WALK MODEL: schemas as pydantic, zod, OpenAPI and schemars write them: accepted, and answers keep to them."""

import functools
import json
import pathlib
import subprocess
import sys
import unittest

import anthropic
import jsonschema
import ollama
import openai
import pydantic_types
import running_server
import types_through
from running_server import RunningServer

WALK, MODEL = sys.argv[2:4]
del sys.argv[2:4]
GENERATORS = pathlib.Path(__file__).resolve().parent / "generators"
FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER


def schemas():
    for name, kind, word in pydantic_types.cases():
        yield name, pydantic_types.model(kind).model_json_schema(), word


class Pydantic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer(*types_through.SERVER)
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        if cls.server.request("POST", "/v1/completions", {"prompt": "a", "regex": "a"})[0] == 501:
            raise unittest.SkipTest("llguidance is not installed")
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none", max_retries=0)

    def ask(self, **fields):
        """The answer and what of its schemas is not enforced."""
        raw = self.client.chat.completions.with_raw_response.create(model="any", messages=[{"role": "user", "content": "Give me JSON."}], seed=1, **fields)
        return raw.parse().choices[0], raw.headers.get("x-tessera-unenforced")

    def refused(self, word, **fields):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.ask(max_tokens=2, **fields)
        self.assertIn(word, str(caught.exception))

    def check(self, name, schema, word, text, finish):
        if finish != "length":
            without = json.loads(json.dumps(schema).replace(f'"{word}"', '"$comment"')) if word else schema
            jsonschema.Draft202012Validator(without, format_checker=FORMATS).validate(json.loads(text))
            if not word and name not in pydantic_types.LOOSE:
                pydantic_types.model(pydantic_types.TYPES[name]).model_validate_json(text)
            return 1
        return 0

    def test_response_format(self):
        whole = 0
        for name, schema, word in schemas():
            with self.subTest(name):
                form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
                allowed = {"unenforced": "allow"} if word else {}
                if word:
                    self.refused(word, response_format=form)
                choice, left_out = self.ask(response_format=form, max_tokens=60, extra_body=allowed)
                self.assertEqual(bool(word), word is not None and word in (left_out or ""), left_out)
                whole += self.check(name, schema, word, choice.message.content, choice.finish_reason)
        self.assertGreater(whole, len(pydantic_types.TYPES) // 2)

    def test_tools(self):
        whole = 0
        for name, schema, word in schemas():
            with self.subTest(name):
                tool = lambda **more: [{"type": "function", "function": {"name": "f", "parameters": schema, **more}}]
                _, left_out = self.ask(tools=tool(), max_tokens=2)
                self.assertEqual(bool(word), word is not None and word in (left_out or ""), left_out)
                choice, left_out = self.ask(tools=tool(), tool_choice="required", max_tokens=120)
                self.assertEqual(bool(word), word is not None and word in (left_out or ""), left_out)
                for call in choice.message.tool_calls or ():
                    whole += self.check(name, schema, word, call.function.arguments, choice.finish_reason)
                if word:
                    self.refused(word, tools=tool(strict=True))
                _, left_out = self.ask(tools=tool(strict=True), max_tokens=2, extra_body={"unenforced": "allow"})
                self.assertEqual(bool(word), word is not None and word in (left_out or ""), left_out)
        self.assertGreater(whole, len(pydantic_types.TYPES) // 3)

    def test_as_clients_write_them(self):
        tokens, messages = 60, [{"role": "user", "content": types_through.QUESTION}]

        @functools.cache
        def client(kind, url):
            made = kind(base_url=url, api_key="none", max_retries=0)
            self.addCleanup(made.close)
            return made

        def openai_at(url):
            return client(openai.OpenAI, url + "/v1")

        ways = {
            "openai: chat.completions.parse": lambda url, kind, model: openai_at(url).chat.completions.parse(
                model="any", messages=messages, response_format=model, max_completion_tokens=tokens),
            "openai: responses.parse": lambda url, kind, model: openai_at(url).responses.parse(
                model="any", input=types_through.QUESTION, text_format=model, max_output_tokens=tokens),
            "openai: pydantic_function_tool": lambda url, kind, model: openai_at(url).chat.completions.create(
                model="any", messages=messages, tools=[openai.pydantic_function_tool(model)], tool_choice="required", max_completion_tokens=tokens + 40),
            "anthropic: messages.parse": lambda url, kind, model: client(anthropic.Anthropic, url).messages.parse(
                model="any", messages=messages, output_format=model, max_tokens=tokens),
            "ollama: format": lambda url, kind, model: ollama.Client(url).chat(
                model="any", messages=messages, format=model.model_json_schema(), options={"num_predict": tokens}),
        }
        counts = types_through.send_types(f"http://127.0.0.1:{self.server.port}", ways)
        self.assertGreater(counts["valid"], len(ways) * len(pydantic_types.TYPES) // 2)


class Files(unittest.TestCase):
    def test_answers_keep_to_the_schemas(self):
        walk = subprocess.Popen([WALK, MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(walk.communicate)

        def ask(**fields):
            walk.stdin.write(json.dumps(fields) + "\n")
            walk.stdin.flush()
            return json.loads(walk.stdout.readline())

        for file in sorted(GENERATORS.glob("*.json")):
            for name, case in json.loads(file.read_text()).items():
                with self.subTest(file=file.name, case=name):
                    words = case.get("unenforced", [])
                    answer = ask(schema=case["schema"], walks=3, seed=1, allow=True)
                    if "missing" in answer:
                        self.skipTest(answer["missing"])
                    self.assertEqual(answer.get("unenforced"), words, answer)
                    # A pattern next to its format is enough of a schema to be accepted.
                    hard = [word for word in words if not word.endswith("/pattern")]
                    strict = ask(schema=case["schema"], walks=0, seed=1)
                    self.assertEqual("refused" in strict, bool(hard), strict)
                    if hard:
                        self.assertIn(hard[0], strict["refused"])
                    validator = jsonschema.validators.validator_for(case["schema"], jsonschema.Draft202012Validator)(case["schema"], format_checker=FORMATS)
                    for text in answer["texts"]:
                        if isinstance(text, str) and not hard:
                            validator.validate(json.loads(text))


if __name__ == "__main__":
    running_server.main()
