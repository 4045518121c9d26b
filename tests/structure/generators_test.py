"""generators_test.py PROGRAM WALK MODEL: schemas as pydantic, zod, OpenAPI and schemars write them: accepted, and answers keep to them."""

import collections
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import subprocess
import sys
import typing
import unittest
import uuid

import jsonschema
import openai
import pydantic
import running_server
import typing_extensions
from running_server import RunningServer

WALK, MODEL = sys.argv[2:4]
del sys.argv[2:4]
GENERATORS = pathlib.Path(__file__).resolve().parent / "generators"
FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER


class Color(enum.Enum):
    red = "red"
    green = "green"


class Cat(pydantic.BaseModel):
    kind: typing.Literal["cat"]
    n: typing.Annotated[int, pydantic.Field(ge=0, le=9)]


class Dog(pydantic.BaseModel):
    kind: typing.Literal["dog"] = "dog"
    b: bool


class Tree(pydantic.BaseModel):
    v: bool
    kids: typing.Annotated[list["Tree"], pydantic.Field(max_length=1)] = []


class Typed(typing_extensions.TypedDict):
    a: int


@dataclasses.dataclass
class Data:
    x: int


class Named(typing.NamedTuple):
    a: int
    b: bool


Short = typing.Annotated[str, pydantic.StringConstraints(max_length=4)]
# With the keyword that cannot be enforced.
TYPES = {
    "Decimal": decimal.Decimal, "datetime": datetime.datetime, "date": datetime.date, "time": datetime.time, "timedelta": datetime.timedelta, "UUID": uuid.UUID, "Path": pathlib.Path,
    "bytes": bytes, "SecretStr": pydantic.SecretStr, "AnyUrl": pydantic.AnyUrl, "IPv4": ipaddress.IPv4Address, "IPv6": ipaddress.IPv6Address, "set": (set[int], "uniqueItems"),
    "frozenset": (frozenset[Short], "uniqueItems"), "tuple": tuple[int, Short], "tuple of any length": tuple[bool, ...], "dict": dict[str, bool], "dict of int": dict[int, bool],
    "dict of names": (dict[typing.Literal["a", "b"], bool], "propertyNames"), "Enum": Color, "Literal": typing.Literal["a", 1, None], "Optional": typing.Optional[Short], "int or str": int | Short,
    "union by tag": typing.Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], "union": Cat | Dog, "recursive": Tree, "TypedDict": Typed, "dataclass": Data, "NamedTuple": Named,
    "list of models": typing.Annotated[list[Cat], pydantic.Field(max_length=2)], "deque": collections.deque[bool], "positive": pydantic.PositiveInt, "bounded float": typing.Annotated[float, pydantic.Field(gt=0, lt=1)],
    "multiple": typing.Annotated[int, pydantic.Field(multiple_of=5)], "pattern": typing.Annotated[str, pydantic.StringConstraints(pattern=r"^[a-z]{2,4}$")], "Json": pydantic.Json, "Any": typing.Any,
    "int": int, "Base64": pydantic.Base64Bytes, "float": float,
}


def schemas():
    for name, given in TYPES.items():
        kind, word = given if isinstance(given, tuple) else (given, None)
        yield name, pydantic.create_model("M", value=(kind, ...)).model_json_schema(), word


class Pydantic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--chat-template", "qwen2.5")
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
        self.assertGreater(whole, len(TYPES) // 2)

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
        self.assertGreater(whole, len(TYPES) // 3)


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
