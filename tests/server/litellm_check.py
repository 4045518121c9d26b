"""litellm as a client: chat, streams, log probabilities, tools, errors. By hand, since litellm takes 350 MB:

    python3 -m venv /tmp/litellm && /tmp/litellm/bin/pip install litellm mcp
    /tmp/litellm/bin/python tests/server/litellm_check.py build/release/bin/tessera-server
"""

import os
import unittest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network
import litellm

import running_server
from running_server import RunningServer

QUESTION = [{"role": "user", "content": "Count from 1 to 10 in French."}]
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Of a city",
                                           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


class Litellm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--chat-template", "deepseek-v3.1", "--api-key", "alpha").__enter__()
        cls.plain = RunningServer().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.plain.__exit__()

    def ask(self, server, key="alpha", **fields):
        return litellm.completion(model="openai/any", api_base=f"http://127.0.0.1:{server.port}/v1", api_key=key, max_retries=0, **fields)

    def test_chat_and_stream(self):
        answer = self.ask(self.plain, messages=QUESTION, temperature=0)
        self.assertEqual(answer.choices[0].message.content, ANSWER)
        self.assertEqual(answer.usage.completion_tokens, 20)
        parts = list(self.ask(self.plain, messages=QUESTION, temperature=0, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(p.choices[0].delta.content or "" for p in parts if p.choices), ANSWER)
        self.assertEqual(parts[-1].usage.completion_tokens, 20)

    def test_log_probabilities_and_several_answers(self):
        answer = self.ask(self.plain, messages=QUESTION, max_tokens=3, logprobs=True, top_logprobs=2, n=2, temperature=0)
        self.assertEqual(len(answer.choices), 2)
        self.assertEqual(len(answer.choices[0].logprobs.content), 3)
        self.assertEqual(len(answer.choices[0].logprobs.content[0].top_logprobs), 2)

    def test_tools(self):
        history = [{"role": "user", "content": "Rain?"},
                   {"role": "assistant", "content": None, "tool_calls": [
                       {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Bonn\"}"}}]},
                   {"role": "tool", "tool_call_id": "a", "content": "sunny"}]
        answer = self.ask(self.server, messages=history, tools=TOOLS, tool_choice="auto", max_tokens=3)
        self.assertEqual(answer.usage.completion_tokens, 3)
        with self.assertRaises(litellm.exceptions.APIError):
            self.ask(self.server, messages=history, tools=TOOLS, tool_choice="sometimes")

    def test_errors(self):
        with self.assertRaises(litellm.exceptions.AuthenticationError):
            self.ask(self.server, key="beta", messages=QUESTION)
        with self.assertRaises(litellm.exceptions.ContextWindowExceededError):
            self.ask(self.plain, messages=[{"role": "user", "content": "long " * 5000}])
        with self.assertRaises(litellm.exceptions.BadRequestError):
            self.ask(self.plain, messages=QUESTION, top_p=7)


if __name__ == "__main__":
    running_server.main()
