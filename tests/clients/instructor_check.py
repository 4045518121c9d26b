import typing

import instructor
import openai
from pydantic import BaseModel

from checks import ANSWER, QUESTION, equal, feature, main
import types_through


class Verdict(BaseModel, extra="forbid"):
    right: bool


def plain(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)


def ask(client, **fields):
    return client.chat.completions.create(model="any", messages=[{"role": "user", "content": QUESTION}], max_retries=0, max_tokens=300, **fields)


@feature("chat")
def chat(servers):
    answer = instructor.from_openai(plain(servers.bundled)).chat.completions.create(model="any", response_model=None, messages=[{"role": "user", "content": QUESTION}])
    equal(answer.choices[0].message.content, ANSWER)


@feature("stream")
def stream(servers):
    client = instructor.from_openai(plain(servers.bundled), mode=instructor.Mode.JSON_SCHEMA)
    parts = list(client.chat.completions.create_partial(model="any", messages=[{"role": "user", "content": QUESTION}], response_model=Verdict, max_retries=0))
    equal(type(parts[-1].right), bool)


@feature("tools")
def tools(servers):
    for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT):
        equal(type(ask(instructor.from_openai(plain(servers.calls), mode=mode), response_model=Verdict).right), bool)


@feature("structured output")
def structured(servers):
    client = instructor.from_openai(plain(servers.bundled), mode=instructor.Mode.JSON_SCHEMA)
    equal(type(ask(client, response_model=Verdict).right), bool)


@feature("types")
def types(servers):
    def send(mode):
        def by(url, kind, model):
            client = instructor.from_openai(plain(url), mode=mode)
            messages = [{"role": "user", "content": types_through.QUESTION}]
            wanted = typing.Iterable[model] if mode == instructor.Mode.PARALLEL_TOOLS else model
            client.chat.completions.create(model="any", messages=messages, response_model=wanted, max_retries=0, max_tokens=types_through.TOKENS)
        return by

    modes = ("JSON_SCHEMA", "TOOLS", "TOOLS_STRICT", "PARALLEL_TOOLS", "RESPONSES_TOOLS")
    types_through.send_types(servers.schemas, {mode: send(instructor.Mode[mode]) for mode in modes})


main("instructor")
