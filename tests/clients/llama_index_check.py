from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

from checks import ANSWER, QUESTION, WEATHER, equal, feature, main


class Verdict(BaseModel, extra="forbid"):
    """Whether it is right"""
    right: bool


def get_weather(city: str) -> str:
    """Weather of a city"""
    return "sunny"


def model_of(url):
    return OpenAILike(model="any", api_base=url + "/v1", api_key="none", is_chat_model=True, is_function_calling_model=True, max_retries=0, should_use_structured_outputs=True)


@feature("chat")
def chat(servers):
    equal(model_of(servers.bundled).chat([ChatMessage(role="user", content=QUESTION)]).message.content, ANSWER)


@feature("stream")
def stream(servers):
    equal("".join(part.delta or "" for part in model_of(servers.bundled).stream_chat([ChatMessage(role="user", content=QUESTION)])), ANSWER)


@feature("tools")
def tools(servers):
    model = model_of(servers.calls)
    answer = model.chat_with_tools([FunctionTool.from_defaults(get_weather)], user_msg=WEATHER)
    [call] = model.get_tool_calls_from_response(answer)
    equal((call.tool_name, call.tool_kwargs), ("get_weather", {"city": "Paris"}))


@feature("structured output")
def structured(servers):
    answer = model_of(servers.bundled).as_structured_llm(Verdict).chat([ChatMessage(role="user", content=QUESTION)])
    equal(type(answer.raw.right), bool)


main("llama-index-core")
