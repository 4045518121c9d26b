import asyncio

import openai
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel

from checks import ANSWER, QUESTION, SUNNY, WEATHER, equal, feature, main

set_tracing_disabled(True)


class Verdict(BaseModel, extra="forbid"):
    right: bool


@function_tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return "sunny"


def agents(url, **fields):
    """One for each API."""
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        client = openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        yield Agent(name="Agent", model=kind(model="any", openai_client=client), model_settings=ModelSettings(**fields.pop("settings", {})), **fields)


@feature("chat")
def chat(servers):
    for agent in agents(servers.bundled):
        equal(asyncio.run(Runner.run(agent, QUESTION)).final_output, ANSWER)


@feature("stream")
def stream(servers):
    async def text(agent):
        result = Runner.run_streamed(agent, QUESTION)
        return "".join([event.data.delta async for event in result.stream_events()
                        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)])
    for agent in agents(servers.bundled):
        equal(asyncio.run(text(agent)), ANSWER)


@feature("tools")
def tools(servers):
    for agent in agents(servers.calls, tools=[get_weather]):
        equal(asyncio.run(Runner.run(agent, WEATHER)).final_output, SUNNY)


@feature("structured output")
def structured(servers):
    for agent in agents(servers.bundled, output_type=Verdict):
        equal(type(asyncio.run(Runner.run(agent, QUESTION)).final_output.right), bool)


main("openai-agents")
