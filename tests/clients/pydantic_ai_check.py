import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from checks import ANSWER, QUESTION, SUNNY, WEATHER, equal, feature, main


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


main("pydantic-ai-slim")
