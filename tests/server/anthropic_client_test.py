"""Anthropic's own client against /v1/messages, and requests as Claude Code sends them."""

import json
import unittest

import anthropic

import running_server
from running_server import RunningServer
from scripted_server import ScriptedServer

QUESTION = {"role": "user", "content": "How is the weather in Paris?"}
TOOL = {"name": "get_weather", "description": "Weather of a city",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
COUNT = {"role": "user", "content": "Count from 1 to 10 in French."}
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"


def client_of(server, key="none"):
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key=key, max_retries=0)


class Scripted(ScriptedServer):
    client_of = staticmethod(client_of)

    def ask(self, messages, **more):
        return self.client.messages.create(model="any", max_tokens=100, messages=messages, tools=[TOOL], **more)

    def test_a_call_and_the_answer_to_its_result(self):
        message = self.ask([QUESTION])
        self.assertEqual(message.stop_reason, "tool_use")
        text, call = message.content
        self.assertEqual((text.type, text.text), ("text", "Let me look."))
        self.assertEqual((call.type, call.name, call.input), ("tool_use", "get_weather", {"city": "Paris"}))
        # The blocks go back as the client has them.
        answer = self.ask([QUESTION, {"role": "assistant", "content": message.content},
                           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id,
                                                         "content": [{"type": "text", "text": "sunny"}]}]}])
        self.assertEqual((answer.stop_reason, [block.text for block in answer.content]), ("end_turn", ["It is sunny."]))

    def test_the_tool_runner(self):
        """It asks for a thread first, and goes on without one where the refusal has the details that it knows."""
        asked = []

        @anthropic.beta_tool
        def get_weather(city: str) -> str:
            """Weather of a city

            Args:
                city: The city
            """
            asked.append(city)
            return "sunny"
        before = self.server.metric("http_requests_total")
        last = self.client.beta.messages.tool_runner(model="any", max_tokens=100, messages=[QUESTION], tools=[get_weather]).until_done()
        self.assertEqual((asked, [block.text for block in last.content]), (["Paris"], ["It is sunny."]))
        # One with the thread, two without it, and this metric's.
        self.assertEqual(self.server.metric("http_requests_total") - before, 4)
        for thread in ({"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}):
            with self.assertRaises(anthropic.BadRequestError) as raised:
                self.client.beta.messages.create(model="any", max_tokens=1, messages=[QUESTION], thread=thread)
            details = raised.exception.body["error"]["details"]
            self.assertEqual((details["error_code"], type(details["unsupported"])), ("thread_unsupported_request", list))
            self.assertEqual(raised.exception.error_code, "thread_unsupported_request")

    def test_thinking_in_a_stream(self):
        kinds = []
        with self.client.messages.stream(model="any", max_tokens=100, messages=[QUESTION], tools=[TOOL],
                                         thinking={"type": "enabled", "budget_tokens": 1024}) as stream:
            for event in stream:
                kinds.append(event.type)
            final = stream.get_final_message()
        self.assertEqual(kinds[0], "message_start")
        self.assertEqual(kinds[-1], "message_stop")
        thinking, text, call = final.content
        self.assertEqual((thinking.thinking, text.text, call.input), ("Hm, weather.", "Let me look.", {"city": "Paris"}))
        self.assertEqual(final.stop_reason, "tool_use")
        self.assertGreater(final.usage.output_tokens, 10)
        self.assertEqual(final.usage.input_tokens + final.usage.cache_read_input_tokens,
                         self.client.messages.count_tokens(model="any", messages=[QUESTION], tools=[TOOL],
                                                           thinking={"type": "enabled", "budget_tokens": 1024}).input_tokens)

    def test_a_claude_code_request(self):
        """As Claude Code 2.1.37 sent it: blocks of system text, marks for caches, beta in the address, options of the API."""
        def body(number):
            return {"model": "claude-sonnet-4-5", "max_tokens": 32000, "stream": True, "metadata": {"user_id": "user_1_account__session_2"},
                    "system": [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch={number};"},
                               {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
                               {"type": "text", "text": "Be brief. " * 40, "cache_control": {"type": "ephemeral"}}],
                    "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nnothing\n</system-reminder>"},
                                                              {"type": "text", "text": "How is the weather?", "cache_control": {"type": "ephemeral"}}]}],
                    "tools": [{**TOOL, "cache_control": {"type": "ephemeral"}}], "thinking": {"type": "adaptive"},
                    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
                    "output_config": {"effort": "medium"}}
        used = []
        for number in ("fa690", "0d131"):
            status, text = self.server.request("POST", "/v1/messages?beta=true", body(number),
                                               {"anthropic-version": "2023-06-01", "anthropic-beta": "claude-code-20250219"})
            self.assertEqual(status, 200, text)
            events = [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]
            [last] = [event for event in events if event["type"] == "message_delta"]
            self.assertEqual(last["delta"]["stop_reason"], "tool_use")
            used.append(last["usage"])
        # What changes with every request is no part of the prompt.
        self.assertLess(used[1]["input_tokens"], 3, used)
        self.assertGreater(used[1]["cache_read_input_tokens"], 100, used)

    def test_a_claude_code_conversation(self):
        """As Claude Code 2.1.332 sends it, recorded with shorter texts: a message of the system's behind the question, tools that are
        found later, reasoning that is sent back as its signature, results with marks for caches."""
        def tool(name, **more):
            return {"name": name, "description": f"{name} of a coding agent", "input_schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                "properties": {"query": {"type": "string"}, "max_results": {"default": 5, "type": "number"}}, "required": ["query"],
                "additionalProperties": False}, **more}
        mark = {"cache_control": {"type": "ephemeral"}}
        body = {"model": "any", "max_tokens": 32000, "stream": True, "thinking": {"type": "adaptive", "display": "omitted"},
                "metadata": {"user_id": json.dumps({"device_id": "0", "account_uuid": "", "session_id": "0"})},
                "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.ab3; cc_entrypoint=sdk-cli;"},
                           {"type": "text", "text": "You are an agent.", **mark}, {"type": "text", "text": "Be brief. " * 40, **mark}],
                "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\n# gitStatus\n</system-reminder>"},
                                                          {"type": "text", "text": "How is the weather?"}]},
                             {"role": "system", "content": [{"type": "text", "text": "# Environment\nDeferred: WebFetch", **mark}]}],
                "tools": [TOOL, tool("ToolSearch"), tool("DeferredToolPlaceholder", defer_loading=True), tool("Write")],
                "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "output_config": {"effort": "high"}}
        beta = ("claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
                "mid-conversation-tool-changes-2026-07-01,advanced-tool-use-2025-11-20,effort-2025-11-24")

        def blocks():
            status, text = self.server.request("POST", "/v1/messages?beta=true", body, {"anthropic-version": "2023-06-01", "anthropic-beta": beta})
            self.assertEqual(status, 200, text)
            made = {}
            for event in [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]:
                if event["type"] == "content_block_start":
                    made[event["index"]] = {**event["content_block"], "json": ""}
                elif event["type"] == "content_block_delta":
                    block, delta = made[event["index"]], event["delta"]
                    key = {"input_json_delta": "json"}.get(delta["type"], delta["type"].removesuffix("_delta"))
                    block[key] += delta["partial_json" if key == "json" else key]
                elif event["type"] == "message_delta":
                    self.usage = event["usage"]
            return list(made.values())

        thinking, text, call = blocks()
        self.assertEqual((thinking["thinking"], thinking["signature"]), ("", "tessera-reasoning:Hm, weather."))
        self.assertEqual((text["text"], call["json"]), ("Let me look.", '{"city": "Paris"}'))
        first = self.usage["input_tokens"] + self.usage["cache_read_input_tokens"]
        body["messages"] += [
            {"role": "assistant", "content": [{k: v for k, v in thinking.items() if k != "json"}, {"type": "text", "text": text["text"]},
                                              {"type": "tool_use", "id": call["id"], "name": call["name"], "input": json.loads(call["json"])}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "is_error": False, **mark,
                                          "content": [{"type": "tool_reference", "tool_name": "WebFetch"}]}]}]
        body["tools"].insert(3, tool("WebFetch", defer_loading=True))
        body["thinking"]["display"] = "updates"
        [answer] = blocks()
        self.assertEqual(answer["text"], "It is sunny.")
        # All tools but the one that was found stand before it, and stay cached.
        self.assertGreater(self.usage["cache_read_input_tokens"], first / 2, self.usage)

    def test_tools_that_messages_change(self):
        def tokens(messages, tools):
            return self.client.beta.messages.count_tokens(model="any", messages=[QUESTION, *messages], tools=tools).input_tokens

        def change(kind, **tool):
            return {"role": "system", "content": [{"type": kind, "tool": tool}]}
        late = {**TOOL, "name": "get_time", "defer_loading": True}
        both = [TOOL, {**TOOL, "name": "get_time"}]
        added = change("tool_addition", type="tool_reference", name="get_time")
        self.assertEqual(tokens([], [TOOL, late]), tokens([], [TOOL]))
        self.assertEqual(tokens([added], [TOOL, late]), tokens([], both))
        self.assertEqual(tokens([change("tool_addition", type="tool_definition", definition=both[1])], [TOOL]), tokens([], both))
        self.assertEqual(tokens([change("tool_removal", type="tool_reference", name="get_time")], both), tokens([], [TOOL]))
        for messages, part in (([change("tool_addition", type="tool_reference", name="nobody")], "messages[1].content[0].tool: tools have no 'nobody'"),
                               ([change("tool_removal", type="tool_definition", definition=TOOL)], "messages[1].content[0].tool.type"),
                               ([change("tool_addition", type="tool_definition")], "messages[1].content[0].tool.definition")):
            with self.assertRaises(anthropic.BadRequestError) as raised:
                tokens(messages, [TOOL])
            self.assertIn(part, raised.exception.body["error"]["message"])
        with self.assertRaises(anthropic.BadRequestError) as raised:
            self.ask([QUESTION], extra_body={"thinking": {"type": "adaptive", "display": "some"}})
        self.assertIn("thinking.display", raised.exception.body["error"]["message"])

    def test_fields_of_later_clients(self):
        """As anthropic 2.14 knows them."""
        body = {"max_tokens": 20, "messages": [QUESTION, {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "get_weather", "input": {}, "caller": {"type": "direct"}, "toolset_name": "t"}]},
                                               {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "sunny", "toolset_name": "t"}]}],
                "tools": [TOOL], "diagnostics": {"previous_message_id": None}, "fallbacks": [{"model": "other"}], "user_profile_id": "p", "output_config": {"task_budget": None}}
        status, answer = self.server.request("POST", "/v1/messages", body)
        self.assertEqual((status, answer["content"][0]["text"]), (200, "It is sunny."), answer)
        status, answer = self.server.request("POST", "/v1/messages", {**body, "output_config": {"task_budget": {"type": "tokens", "total": 20000}}})
        self.assertEqual(status, 400)
        self.assertIn("max_tokens", answer["error"]["message"])

    def test_images_of_tools(self):
        """As Claude Code sends an image that it has read: were it refused, so would be all that follows."""
        def used(*parts):
            body = [QUESTION, {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "get_weather", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": list(parts)}]}]
            return self.client.messages.count_tokens(model="any", messages=body, tools=[TOOL]).input_tokens
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
        text = {"type": "text", "text": "a"}
        self.assertEqual(used(text, image), used(text, {"type": "text", "text": "[image, which cannot be shown: text alone is read here]"}))
        document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}, "title": "t", "context": "c"}
        self.assertEqual(used(document), used({"type": "text", "text": "t\nc\nabc"}))
        self.assertEqual(used({**image, "type": "document", "title": "t"}), used({"type": "text", "text": "[document, which cannot be shown: text alone is read here]"}))
        mixed = {"type": "document", "source": {"type": "content", "content": [text, image]}}
        self.assertEqual(used(mixed), used(text, {"type": "text", "text": "[image, which cannot be shown: text alone is read here]"}))
        with self.assertRaises(anthropic.BadRequestError) as raised:
            used({**image, "nonsense": 1})
        self.assertIn("messages[2].content[0].content[0].nonsense", str(raised.exception))

    def test_documents_that_are_texts(self):
        def used(*blocks):
            return self.client.messages.count_tokens(model="any", messages=[{"role": "user", "content": [*blocks, {"type": "text", "text": "What?"}]}]).input_tokens
        document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}, "title": "t", "citations": {"enabled": False}}
        result = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "abc"}]}
        self.assertEqual(used(document), used({"type": "text", "text": "t\nabc"}))
        self.assertEqual(used({**document, "source": {"type": "content", "content": [{"type": "text", "text": "abc"}]}}), used(document))
        self.assertEqual(used(result), used({"type": "text", "text": "t\ns\nabc"}))
        for block, part in (({**document, "source": {"type": "base64", "media_type": "application/pdf", "data": ""}}, "source of type text"),
                            ({**document, "citations": {"enabled": True}}, "citations.enabled"), ({**document, "source": {"type": "text"}}, "source.data"),
                            ({**result, "content": [{"type": "image"}]}, "content[0].content[0].type")):
            with self.assertRaises(anthropic.BadRequestError) as raised:
                used(block)
            self.assertIn(part, raised.exception.body["error"]["message"])
        # Images are left out of results alone, and of the system no document is read.
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
        mixed = {"type": "document", "source": {"type": "content", "content": [image]}}
        for role, block, part in (("user", mixed, "content[0].source.content[0].source"), ("system", mixed, "messages[1].content[0]: ")):
            with self.assertRaises(anthropic.BadRequestError) as raised:
                self.client.messages.count_tokens(model="any", messages=[QUESTION, {"role": role, "content": [block]}])
            self.assertIn(part, raised.exception.body["error"]["message"])

    def test_what_is_not_offered(self):
        for more, part in (({"tool_choice": {"type": "tool", "name": "nobody"}}, "nobody"),
                           ({"extra_body": {"mcp_servers": [{"type": "url"}]}}, "mcp_servers"),
                           ({"extra_body": {"nonsense": 1}}, "nonsense")):
            with self.assertRaises(anthropic.BadRequestError) as raised:
                self.ask([QUESTION], **more)
            self.assertEqual(raised.exception.body["error"]["type"], "invalid_request_error")
            self.assertIn(part, raised.exception.body["error"]["message"])
        for block in ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}, {"type": "document"}):
            with self.assertRaises(anthropic.BadRequestError) as raised:
                self.ask([{"role": "user", "content": [block]}])
            self.assertIn("messages[0].content[0]", str(raised.exception))
        status, answer = self.server.request("POST", "/v1/messages", {"max_tokens": 5, "messages": [QUESTION],
                                                                      "tools": [{"type": "web_search_20250305", "name": "web_search"}]})
        self.assertEqual(status, 400)
        self.assertIn("web_search_20250305", answer["error"]["message"])

    def test_an_answer_that_is_cut_in_a_call(self):
        message = self.client.messages.create(model="any", max_tokens=7, messages=[QUESTION], tools=[TOOL])
        self.assertEqual(message.stop_reason, "max_tokens")


class Bundled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--temp", "0", "--api-key", "alpha").__enter__()
        cls.client = client_of(cls.server, "alpha")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()

    def test_text_and_stream(self):
        message = self.client.messages.create(model="any", max_tokens=50, messages=[COUNT])
        self.assertEqual((message.content[0].text, message.stop_reason, message.usage.output_tokens), (ANSWER, "end_turn", 20))
        with self.client.messages.stream(model="any", max_tokens=50, messages=[COUNT]) as stream:
            self.assertEqual("".join(stream.text_stream), ANSWER)

    def test_why_an_answer_ends(self):
        message = self.client.messages.create(model="any", max_tokens=50, messages=[COUNT], stop_sequences=["trois"])
        self.assertEqual((message.content[0].text, message.stop_reason, message.stop_sequence), ("un, deux, ", "stop_sequence", "trois"))
        message = self.client.messages.create(model="any", max_tokens=3, messages=[COUNT])
        self.assertEqual((message.stop_reason, message.stop_sequence), ("max_tokens", None))

    def test_an_answer_that_was_begun(self):
        message = self.client.messages.create(model="any", max_tokens=50, messages=[COUNT, {"role": "assistant", "content": "un, deux,"}])
        self.assertTrue(message.content[0].text.endswith("neuf, dix"), message.content)

    def test_errors(self):
        with self.assertRaises(anthropic.AuthenticationError) as raised:
            client_of(self.server, "beta").messages.create(model="any", max_tokens=5, messages=[COUNT])
        self.assertEqual(raised.exception.body["error"]["type"], "authentication_error")
        with self.assertRaises(anthropic.BadRequestError) as raised:
            self.client.messages.create(model="any", max_tokens=5, messages=[{"role": "user", "content": "long " * 5000}])
        self.assertIn("prompt is too long: ", raised.exception.body["error"]["message"])
        with self.assertRaises(anthropic.BadRequestError) as raised:
            self.client.messages.create(model="any", max_tokens=5, messages=[COUNT], thinking={"type": "enabled", "budget_tokens": 1024})
        self.assertIn("thinking", raised.exception.body["error"]["message"])


if __name__ == "__main__":
    running_server.main()
