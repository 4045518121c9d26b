import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, Tool, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from checks import ANSWER, QUESTION, SUNNY, WEATHER, equal, feature, main
import types_through


class Verdict(BaseModel, extra="forbid"):
    right: bool


def get_weather(city: str) -> str:
    """Weather of a city"""
    return "sunny"


def models(url):
    provider = OpenAIProvider(base_url=url + "/v1", api_key="none")
    return [OpenAIChatModel("any", provider=provider), OpenAIResponsesModel("any", provider=provider),
            AnthropicModel("any", provider=AnthropicProvider(base_url=url, api_key="none"))]


@feature("chat")
def chat(servers):
    for model in models(servers.bundled):
        equal(Agent(model).run_sync(QUESTION).output, ANSWER)


@feature("stream")
def stream(servers):
    async def text(model):
        async with Agent(model).run_stream(QUESTION) as result:
            return "".join([part async for part in result.stream_text(delta=True)])
    for model in models(servers.bundled):
        equal(asyncio.run(text(model)), ANSWER)


@feature("tools")
def tools(servers):
    for model in models(servers.calls):
        equal(Agent(model, tools=[get_weather]).run_sync(WEATHER).output, SUNNY)


@feature("structured output")
def structured(servers):
    for model in models(servers.bundled)[:2]:
        equal(type(Agent(model, output_type=NativeOutput(Verdict)).run_sync(QUESTION).output.right), bool)
    for model in models(servers.calls):
        equal(type(Agent(model, output_type=ToolOutput(Verdict)).run_sync(QUESTION).output.right), bool)


@feature("types")
def types(servers):
    def run(api, url, **fields):
        Agent(models(url)[api], retries=0, model_settings={"max_tokens": types_through.TOKENS}, **fields).run_sync(types_through.QUESTION)

    def native(api, strict):
        return lambda url, kind, model: run(api, url, output_type=NativeOutput(model, strict=strict))

    def forced(api, strict):
        return lambda url, kind, model: run(api, url, output_type=ToolOutput(model, strict=strict))

    def tools(api, strict):
        def by(url, kind, model):
            def put(value):
                """Puts a value"""
            put.__annotations__ = {"value": kind}
            run(api, url, tools=[Tool(put, strict=strict)])
        return by

    ways = {}  # The output's tool is required; the client refuses to require others.
    for api, name in enumerate(("chat", "responses", "messages")):
        for strict in (None, True):
            ways[f"{name}: NativeOutput, strict={strict}"] = native(api, strict)
            ways[f"{name}: ToolOutput, strict={strict}"] = forced(api, strict)
            ways[f"{name}: tools, auto, strict={strict}"] = tools(api, strict)
    types_through.send_types(servers.schemas, ways)


main("pydantic-ai-slim")
