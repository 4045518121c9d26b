import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network
import litellm
from pydantic import BaseModel

from checks import ANSWER, QUESTION, SUNNY, WEATHER, equal, feature, main

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city",
                                         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


class Verdict(BaseModel, extra="forbid"):
    right: bool


def ask(url, text, model="openai/any", **fields):
    base = {"openai/any": url + "/v1", "anthropic/any": url, "ollama_chat/any": url}[model]
    messages = fields.pop("messages", None) or [{"role": "user", "content": text}]
    return litellm.completion(model=model, api_base=base, api_key="none", messages=messages, max_retries=0, **fields)


@feature("chat")
def chat(servers):
    for model in ("openai/any", "anthropic/any", "ollama_chat/any"):
        equal(ask(servers.bundled, QUESTION, model).choices[0].message.content, ANSWER)


@feature("stream")
def stream(servers):
    parts = list(ask(servers.bundled, QUESTION, stream=True, stream_options={"include_usage": True}))
    equal("".join(part.choices[0].delta.content or "" for part in parts if part.choices), ANSWER)


@feature("tools")
def tools(servers):
    for model in ("openai/any", "anthropic/any"):
        message = ask(servers.calls, WEATHER, model, tools=[TOOL]).choices[0].message
        [call] = message.tool_calls
        equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Paris"}))
        messages = [{"role": "user", "content": WEATHER}, message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        equal(ask(servers.calls, None, model, messages=messages, tools=[TOOL]).choices[0].message.content, SUNNY)


@feature("log probabilities, several answers")
def probabilities(servers):
    answer = ask(servers.bundled, QUESTION, max_tokens=3, logprobs=True, top_logprobs=2, n=2, temperature=0)
    equal([(len(choice.logprobs.content), len(choice.logprobs.content[0].top_logprobs)) for choice in answer.choices], [(3, 2), (3, 2)])


@feature("errors")
def errors(servers):
    for kind, fields in ((litellm.exceptions.ContextWindowExceededError, {"text": "long " * 5000}), (litellm.exceptions.BadRequestError, {"text": QUESTION, "top_p": 7})):
        try:
            ask(servers.bundled, **fields)
        except kind:
            continue
        raise AssertionError(f"no {kind.__name__}")


@feature("structured output")
def structured(servers):
    answer = ask(servers.bundled, QUESTION, response_format=Verdict)
    Verdict.model_validate_json(answer.choices[0].message.content)


main("litellm")
