import asyncio

import openai
from agents import Agent, AgentOutputSchema, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel

from checks import ANSWER, QUESTION, SUNNY, WEATHER, equal, feature, main
import types_through

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


@feature("types")
def types(servers):
    async def ask(api, url, choice, fields):
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0) as client:
            settings = ModelSettings(max_tokens=types_through.TOKENS, tool_choice=choice)
            agent = Agent(name="Agent", model=api(model="any", openai_client=client), model_settings=settings, **fields)
            await Runner.run(agent, types_through.QUESTION, max_turns=1)

    def run(api, url, choice=None, **fields):
        asyncio.run(ask(api, url, choice, fields))

    def structured(api, strict):
        return lambda url, kind, model: run(api, url, output_type=AgentOutputSchema(model, strict_json_schema=strict))

    def tools(api, choice, strict):
        def by(url, kind, model):
            def put(value):
                """Puts a value"""
            put.__annotations__ = {"value": kind}
            run(api, url, choice, tools=[function_tool(put, strict_mode=strict)])
        return by

    ways = {}
    for name, api in (("chat", OpenAIChatCompletionsModel), ("responses", OpenAIResponsesModel)):
        for strict in (False, True):
            ways[f"{name}: output_type, strict={strict}"] = structured(api, strict)
            for choice in ("auto", "required"):
                ways[f"{name}: tools, {choice}, strict={strict}"] = tools(api, choice, strict)
    types_through.send_types(servers.schemas, ways)


main("openai-agents")
