from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from checks import ANSWER, QUESTION, SUNNY, WEATHER, equal, feature, main
import types_through


class Verdict(BaseModel, extra="forbid"):
    """Whether it is right"""
    right: bool


@tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return "sunny"


def models(url):
    for responses in (False, True):
        yield ChatOpenAI(model="any", base_url=url + "/v1", api_key="none", max_retries=0, use_responses_api=responses)


@feature("chat")
def chat(servers):
    for model in models(servers.bundled):
        equal(model.invoke(QUESTION).text, ANSWER)


@feature("stream")
def stream(servers):
    for model in models(servers.bundled):
        equal("".join(part.text for part in model.stream(QUESTION)), ANSWER)


@feature("tools")
def tools(servers):
    for model in models(servers.calls):
        bound = model.bind_tools([get_weather])
        question = HumanMessage(WEATHER)
        message = bound.invoke([question])
        [call] = message.tool_calls
        equal((call["name"], call["args"]), ("get_weather", {"city": "Paris"}))
        equal(bound.invoke([question, message, ToolMessage("sunny", tool_call_id=call["id"])]).text, SUNNY)


@feature("structured output")
def structured(servers):
    for model in models(servers.bundled):
        equal(type(model.with_structured_output(Verdict, method="json_schema").invoke(QUESTION).right), bool)
    for model in models(servers.calls):
        equal(type(model.with_structured_output(Verdict, method="function_calling").invoke(QUESTION).right), bool)


@feature("types")
def types(servers):
    def chat(url, responses):
        return ChatOpenAI(model="any", base_url=url + "/v1", api_key="none", max_retries=0, use_responses_api=responses, max_tokens=types_through.TOKENS)

    def structured(responses, **fields):
        return lambda url, kind, model: chat(url, responses).with_structured_output(model, include_raw=True, **fields).invoke(types_through.QUESTION)

    def tools(responses, **fields):
        def by(url, kind, model):
            def put(value):
                """Puts a value"""
            put.__annotations__ = {"value": kind}
            chat(url, responses).bind_tools([tool(put)], **fields).invoke(types_through.QUESTION)
        return by

    ways = {}
    for api, responses in (("chat", False), ("responses", True)):
        for strict in (None, True):
            ways[f"{api}: json_schema, strict={strict}"] = structured(responses, method="json_schema", strict=strict)
            ways[f"{api}: function_calling, strict={strict}"] = structured(responses, method="function_calling", strict=strict)
            for choice in ("auto", "required"):
                ways[f"{api}: tools, {choice}, strict={strict}"] = tools(responses, tool_choice=choice, strict=strict)
    types_through.send_types(servers.schemas, ways)


main("langchain-openai")
