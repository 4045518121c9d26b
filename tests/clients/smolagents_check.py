from pydantic import BaseModel
from smolagents import ChatMessage, OpenAIModel, ToolCallingAgent, tool

from checks import ANSWER, QUESTION, WEATHER, equal, feature, main


@tool
def get_weather(city: str) -> str:
    """Weather of a city

    Args:
        city: The city
    """
    return "sunny"


def model_of(url):
    return OpenAIModel(model_id="any", api_base=url + "/v1", api_key="none")


def question(text):
    return [ChatMessage(role="user", content=[{"type": "text", "text": text}])]


@feature("chat")
def chat(servers):
    equal(model_of(servers.bundled).generate(question(QUESTION)).content, ANSWER)


@feature("stream")
def stream(servers):
    equal("".join(part.content or "" for part in model_of(servers.bundled).generate_stream(question(QUESTION))), ANSWER)


@feature("tools")
def tools(servers):
    message = model_of(servers.calls).generate(question(WEATHER), tools_to_call_from=[get_weather])
    equal(message.tool_calls[0].function.name, "get_weather")
    # A step of the agent itself: the model calls, the tool runs.
    agent = ToolCallingAgent(tools=[get_weather], model=model_of(servers.calls), max_steps=1, verbosity_level=0)
    agent.run(WEATHER)
    equal([call.name for step in agent.memory.steps for call in getattr(step, "tool_calls", None) or []], ["get_weather"])


@feature("structured output")
def structured(servers):
    class Verdict(BaseModel, extra="forbid"):
        right: bool
    schema = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": Verdict.model_json_schema()}}
    Verdict.model_validate_json(model_of(servers.bundled).generate(question(QUESTION), response_format=schema).content)


main("smolagents")
