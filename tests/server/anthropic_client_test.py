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
        """As Claude Code 2.1 sends it: blocks of system text, marks for caches, beta in the address, options of the API."""
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
