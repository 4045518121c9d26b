"""ollama's own client, and what front ends for ollama ask for."""

import contextlib
import json
import unittest

import ollama

import running_server
from running_server import RunningServer
from scripted_server import ScriptedServer
from tool_calls_test import QUESTION, TOOL

COUNT = [{"role": "user", "content": "Count from 1 to 10 in French."}]
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"


class Scripted(ScriptedServer):
    @staticmethod
    def client_of(server):
        return contextlib.nullcontext(ollama.Client(f"http://127.0.0.1:{server.port}"))

    def test_calls_and_thinking(self):
        client = self.client
        self.assertEqual(set(client.show("any").capabilities), {"completion", "tools", "thinking"})
        answer = client.chat("any", [QUESTION], tools=[TOOL], think=True)
        message = answer.message
        self.assertEqual((message.thinking, message.content, answer.done_reason), ("Hm, weather.", "Let me look.", "stop"))
        [call] = message.tool_calls
        self.assertEqual((call.function.name, call.function.arguments), ("get_weather", {"city": "Paris"}))
        thinking, content, calls = "", "", []
        for part in client.chat("any", [QUESTION], tools=[TOOL], think=True, stream=True):
            thinking += part.message.thinking or ""
            content += part.message.content or ""
            calls += part.message.tool_calls or []
        self.assertEqual((thinking, content, len(calls)), ("Hm, weather.", "Let me look.", 1))
        final = client.chat("any", [QUESTION, message, {"role": "tool", "tool_name": "get_weather", "content": "sunny"}], tools=[TOOL])
        self.assertEqual(final.message.content, "It is sunny.")


class Bundled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer().__enter__()
        cls.client = ollama.Client(f"http://127.0.0.1:{cls.server.port}")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def test_chat(self):
        answer = self.client.chat("any", COUNT, options={"temperature": 0, "num_ctx": 4096})
        self.assertEqual((answer.message.content, answer.done, answer.eval_count), (ANSWER, True, 20))
        parts = list(self.client.chat("any", COUNT, options={"temperature": 0}, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), ANSWER)
        self.assertTrue(parts[-1].done)
        self.assertGreater(parts[-1].total_duration, 0)
        self.assertEqual(self.client.chat("any", COUNT, options={"num_predict": 2}).done_reason, "length")

    def test_generate(self):
        answer = self.client.generate("any", COUNT[0]["content"], options={"temperature": 0})
        self.assertEqual(answer.response, ANSWER)
        parts = list(self.client.generate("any", COUNT[0]["content"], options={"temperature": 0}, stream=True))
        self.assertEqual("".join(part.response for part in parts), ANSWER)
        raw = self.client.generate("any", "The", raw=True, options={"temperature": 0, "num_predict": 3})
        whole = self.server.request("POST", "/v1/completions", {"prompt": "The", "temperature": 0, "max_tokens": 3})[1]
        self.assertEqual(raw.response, whole["choices"][0]["text"])

    def test_log_probabilities(self):
        options = {"temperature": 0, "num_predict": 3}
        answer = self.client.chat("any", COUNT, options=options, logprobs=True, top_logprobs=2)
        self.assertEqual("".join(token.token for token in answer.logprobs), answer.message.content)
        for token in answer.logprobs:
            self.assertLessEqual(token.logprob, 0)
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertEqual(token.top_logprobs[0].token, token.token)
        expected = [(token.token, token.logprob) for token in answer.logprobs]
        for parts in (self.client.chat("any", COUNT, options=options, logprobs=True, stream=True),
                      self.client.generate("any", COUNT[0]["content"], options=options, logprobs=True, stream=True)):
            self.assertEqual([(token.token, token.logprob) for part in parts for token in part.logprobs or []], expected)
        self.assertEqual(len(self.client.generate("any", "The", raw=True, options=options, logprobs=True).logprobs), 3)
        self.assertIsNone(self.client.chat("any", COUNT, options=options).logprobs)
        for fields, part in (({"top_logprobs": 2}, "top_logprobs"), ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"), ({"logprobs": 1}, "logprobs")):
            status, answer = self.server.request("POST", "/api/chat", {"messages": COUNT, **fields})
            self.assertEqual(status, 400, answer)
            self.assertIn(part, answer["error"])

    def test_loading(self):
        """Requests without a prompt or messages ask for the model itself."""
        self.assertEqual((self.client.generate("any").done_reason, self.client.generate("any", keep_alive=0).done_reason), ("load", "unload"))
        self.assertEqual(self.client.chat("any", [], keep_alive="10m").done_reason, "load")
        for keep, reason in ((0, "unload"), (0.0, "unload"), ("0", "unload"), ("0s", "unload"), (-1, "load"), ("1h30m", "load")):
            for path, body in (("/api/generate", {"prompt": ""}), ("/api/chat", {"messages": []})):
                status, answer = self.server.request("POST", path, {"model": "any", "keep_alive": keep, **body})
                self.assertEqual((status, answer["done_reason"], answer["done"]), (200, reason, True))
        self.assertEqual(answer["message"], {"role": "assistant", "content": ""})
        for body, part in (({"keep_alive": "soon"}, "keep_alive"), ({"keep_alive": [0]}, "keep_alive"), ({"prompt": 1}, "prompt"), ({"nonsense": 1}, "nonsense")):
            status, answer = self.server.request("POST", "/api/generate", body)
            self.assertEqual(status, 400)
            self.assertIn(part, answer["error"])
        # The model is there.
        self.assertEqual(len(self.client.ps().models), 1)

    def test_what_front_ends_ask(self):
        self.assertEqual(self.server.request("HEAD", "/")[0], 200)
        [listed] = self.client.list().models
        self.assertGreater(listed.size, 0)
        [running] = self.client.ps().models
        self.assertEqual(running.model, listed.model)
        self.assertEqual(self.client.show(listed.model).details.format, "gguf")
        # Codex asks for this one at least.
        self.assertGreaterEqual([int(n) for n in self.server.request("GET", "/api/version")[1]["version"].split(".")], [0, 13, 4])

    def test_what_is_not_offered(self):
        for refused in (lambda: self.client.pull("llama3"), lambda: self.client.push("a"), lambda: self.client.delete("a"),
                        lambda: self.client.copy("a", "b"), lambda: self.client.create("a", from_="b")):
            with self.assertRaises(ollama.ResponseError) as raised:
                refused()
            self.assertEqual(raised.exception.status_code, 501)
            self.assertIn("-m", raised.exception.error)
        for body, part in (({"messages": COUNT, "nonsense": 1}, "nonsense"), ({"messages": COUNT, "options": {"nonsense": 1}}, "options.nonsense"),
                           ({"messages": [{"role": "user", "content": "a", "images": ["b"]}]}, "messages[0].images"),
                           ({"messages": COUNT, "options": {"num_predict": 1.5}}, "options.num_predict"), ({"messages": COUNT, "think": True}, "think")):
            status, answer = self.server.request("POST", "/api/chat", body)
            self.assertEqual(status, 400, answer)
            self.assertIn(part, answer["error"])

    def test_lines(self):
        status, text = self.server.request("POST", "/api/chat", {"messages": COUNT, "options": {"num_predict": 3}})
        self.assertEqual(status, 200)
        self.assertEqual(self.server.headers["Content-Type"], "application/x-ndjson")
        lines = [json.loads(line) for line in text.decode().splitlines()]
        self.assertTrue(all(not line["done"] for line in lines[:-1]) and lines[-1]["done"])


if __name__ == "__main__":
    running_server.main()
