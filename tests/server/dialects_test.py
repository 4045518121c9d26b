"""Every endpoint with every kind of fault, in the form that clients of its API read; and what they are told of the tokens that were used."""

import json
import os
import re
import socket
import tempfile
import unittest

import running_server
from running_server import LIMIT, RunningServer

QUESTION = "Count from 1 to 10 in French."
COUNT = [{"role": "user", "content": QUESTION}]
GENERATED = 20  # tokens of the answer
BODY_MIB = 1

# Path, API of its errors, a request, the field that it needs; whether it generates.
ENDPOINTS = (
    ("/v1/chat/completions", "openai", {"messages": COUNT}, "messages", True),
    ("/v1/completions", "openai", {"prompt": QUESTION}, "prompt", True),
    ("/v1/responses", "openai", {"input": QUESTION}, "input", True),
    ("/v1/embeddings", "openai", {"input": QUESTION}, "input", False),
    ("/v1/messages", "anthropic", {"messages": COUNT, "max_tokens": 60}, "messages", True),
    ("/v1/messages/count_tokens", "anthropic", {"messages": COUNT}, "messages", False),
    ("/api/chat", "ollama", {"messages": COUNT, "stream": False}, "messages", True),
    ("/api/generate", "ollama", {"prompt": QUESTION, "stream": False}, "prompt", True),
    ("/api/embed", "ollama", {"input": QUESTION}, "input", False),
    ("/api/embeddings", "ollama", {"prompt": QUESTION}, "prompt", False),
    ("/completion", "openai", {"prompt": QUESTION}, "prompt", True),
    ("/embedding", "openai", {"content": QUESTION}, "content", False),
    ("/tokenize", "openai", {"content": QUESTION}, "content", False),
    ("/detokenize", "openai", {"tokens": [5]}, "tokens", False),
    ("/apply-template", "openai", {"messages": COUNT}, "messages", False),
)
# Without their field these ask whether the model is loaded.
ASK_FOR_THE_MODEL = ("/api/chat", "/api/generate")
NOT_BY_CONTEXT = ("/v1/messages/count_tokens", "/tokenize", "/detokenize", "/apply-template")
TYPES = {
    "openai": {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 405: "invalid_request_error",
               413: "invalid_request_error", 415: "invalid_request_error", 429: "rate_limit_error", 501: "not_supported_error"},
    "anthropic": {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 405: "invalid_request_error",
                  413: "request_too_large", 415: "invalid_request_error", 429: "rate_limit_error"},
}


class Dialects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        keys = os.path.join(cls.folder.name, "keys")
        with open(keys, "w") as file:
            file.write("whole\n" + "".join(f"limited{i} requests-per-minute=1\n" for i in range(len(ENDPOINTS))))
        cls.server = RunningServer("--temp", "0", "--embeddings", "--api-key-file", keys, "--body-limit", str(BODY_MIB)).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def ask(self, path, body, key="whole", method="POST", **headers):
        return self.server.request(method, path, body, {"Authorization": f"Bearer {key}", **headers} if key else headers)

    def message(self, dialect, status, answer, kind=None):
        """Of an error that has to have the form of the API."""
        self.assertIsInstance(answer, dict)
        if dialect == "ollama":
            self.assertEqual(list(answer), ["error"])
            self.assertIsInstance(answer["error"], str)
            return answer["error"]
        error = answer["error"]
        self.assertEqual(error["type"], kind or TYPES[dialect][status])
        if dialect == "anthropic":
            self.assertEqual((set(answer), answer["type"], set(error)), ({"type", "error"}, "error", {"type", "message"}))
        else:
            self.assertEqual(set(answer), {"error"})
            self.assertLessEqual({"message", "type", "param", "code"}, set(error))
        return error["message"]

    def each(self, made, but=()):
        """Sends what is made of every endpoint but some, and gives the message of the error that it has to get: (status, part of its message, field)."""
        for path, dialect, body, needed, generates in ENDPOINTS:
            if path in but:
                continue
            with self.subTest(path):
                changed, expected, part, field = made(path, body, needed)
                status, answer = self.ask(path, changed)
                self.assertEqual(status, expected, answer)
                self.assertIn(part, self.message(dialect, status, answer))
                if dialect == "openai":
                    self.assertEqual(answer["error"]["param"], field)

    def test_all_endpoints_that_take_json_are_here(self):
        status, text = self.server.request("GET", "/openapi.yaml")
        self.assertEqual(status, 200)
        listed, path = set(), None
        for line in text.decode().splitlines():
            if line.startswith("  /"):
                path = line.strip().rstrip(":")
            if line.strip() == "post:":
                listed.add(path)
        self.assertEqual(listed - {path for path, *_ in ENDPOINTS}, {"/infill", "/api/show", "/slots/{id}", "/v1/chat/completions/control"})

    def test_a_field_that_is_not_known(self):
        self.each(lambda path, body, needed: ({**body, "nonsense": 1}, 400, "nonsense", "nonsense"))

    def test_a_value_of_the_wrong_kind(self):
        self.each(lambda path, body, needed: ({**body, needed: True}, 400, needed, needed))

    def test_a_field_that_is_missing(self):
        self.each(lambda path, body, needed: ({name: value for name, value in body.items() if name != needed}, 400, needed, needed), but=ASK_FOR_THE_MODEL)

    def test_a_body_that_is_no_object(self):
        for text in ("{", "[]", "", '{"a": 1, "a": 2}', b"\xff"):
            self.each(lambda path, body, needed: (text, 400, "body", None))

    def test_a_body_of_another_type(self):
        for path, dialect, body, *_ in ENDPOINTS:
            with self.subTest(path):
                status, answer = self.server.request("POST", path, json.dumps(body), {"Authorization": "Bearer whole", "Content-Type": "text/html"})
                self.assertEqual(status, 415)
                self.message(dialect, status, answer)

    def test_a_body_that_is_too_large(self):
        for path, dialect, *_ in ENDPOINTS:
            with self.subTest(path):
                answer = self.server.raw(b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer whole\r\nContent-Type: application/json\r\n"
                                         b"Content-Length: %d\r\n\r\n" % (path.encode(), (BODY_MIB << 20) + 1))
                self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
                self.message(dialect, 413, json.loads(answer.split(b"\r\n\r\n", 1)[1]))

    def test_a_prompt_that_is_too_long(self):
        text = "long " * 20000
        for path, dialect, body, needed, _ in ENDPOINTS:
            with self.subTest(path):
                status, answer = self.ask(path, {**body, needed: [5] * 20000 if needed == "tokens" else [{"role": "user", "content": text}] if needed == "messages" else text})
                if path in NOT_BY_CONTEXT:
                    self.assertEqual(status, 200, answer)
                    continue
                self.assertEqual(status, 400, answer)
                message = self.message(dialect, status, answer, "exceed_context_size_error" if dialect == "openai" else None)
                self.assertIn("exceeds the available context size", message)
                if dialect == "openai":
                    self.assertEqual(answer["error"]["code"], "context_length_exceeded")
                    self.assertGreater(answer["error"]["n_prompt_tokens"], answer["error"]["n_ctx"])
                elif dialect == "anthropic":
                    self.assertRegex(message, r"^prompt is too long: \d+ tokens > \d+ maximum")

    def test_any_model_is_the_one(self):
        for path, _, body, *_ in ENDPOINTS:
            with self.subTest(path):
                status, answer = self.ask(path, {**body, "model": "gpt-other"})
                self.assertEqual(status, 200, answer)

    def test_a_key_that_is_not_valid(self):
        for path, dialect, body, *_ in ENDPOINTS:
            for key in (None, "other"):
                with self.subTest(path, key=key):
                    status, answer = self.ask(path, body, key)
                    self.assertEqual(status, 401)
                    self.assertIn("key", self.message(dialect, status, answer))
                    self.assertEqual(self.server.headers["WWW-Authenticate"], "Bearer")

    def test_a_client_that_has_used_its_share(self):
        for i, (path, dialect, body, *_) in enumerate(ENDPOINTS):
            with self.subTest(path):
                self.assertEqual(self.ask(path, body, f"limited{i}")[0], 200)
                status, answer = self.ask(path, body, f"limited{i}")
                self.assertEqual(status, 429)
                self.assertIn("minute", self.message(dialect, status, answer))
                self.assertGreater(int(self.server.headers["Retry-After"]), 0)

    def test_other_methods_and_paths(self):
        for path, dialect, *_ in ENDPOINTS:
            with self.subTest(path):
                status, answer = self.ask(path, None, method="GET")
                self.assertEqual((status, self.server.headers["Allow"]), (405, "POST"))
                self.message(dialect, status, answer)
        for path, dialect in (("/v1/messages/batches", "anthropic"), ("/api/nothing", "ollama"), ("/v1/nothing", "openai"), ("/nothing", "openai")):
            with self.subTest(path):
                status, answer = self.ask(path, {})
                self.assertEqual(status, 404)
                self.assertIn(path, self.message(dialect, status, answer))

    def test_a_client_that_goes_ends_its_work(self):
        self.server = self.enterContext(RunningServer("--api-key", "whole", *running_server.LONG_ANSWERS))
        for path, _, body, _, generates in ENDPOINTS:
            if not generates:
                continue
            # All tokens are as likely as the one that ends the answer.
            fields = {"temperature": 1000, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 1}
            if path.startswith("/api/"):
                fields = {"options": {**fields, "num_predict": -1}}
            else:
                fields["max_output_tokens" if path == "/v1/responses" else "max_tokens"] = 50000
            text = json.dumps({**body, "stream": True, **fields}).encode()
            with self.subTest(path):
                before = self.server_metric("requests_cancelled_total")
                with socket.create_connection(("127.0.0.1", self.server.port), timeout=LIMIT) as connection:
                    connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer whole\r\nContent-Type: application/json\r\n"
                                       b"Content-Length: %d\r\n\r\n%s" % (path.encode(), len(text), text))
                    self.assertTrue(connection.recv(200).startswith(b"HTTP/1.1 200 "))
                running_server.wait_for(lambda: self.server_metric("requests_cancelled_total") == before + 1, "its work goes on")

    def server_metric(self, name):
        text = self.ask("/metrics", None, method="GET")[1].decode()
        return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"tessera_{name} ")))

    def test_metrics_under_names_that_gateways_read(self):
        """vLLM's: each once, with its type and the label model_name, and the numbers of Tessera's own."""
        self.ask("/v1/chat/completions", {"messages": COUNT})
        running_server.wait_for(lambda: self.server_metric("requests_running") == 0, "an answer is under way")
        text = self.ask("/metrics", None, method="GET")[1].decode()
        found = dict(re.findall(r'^vllm:(\w+)\{model_name="demo[^"]*"[^}]*\} (\S+)$', text, re.M))
        types = dict(re.findall(r"^# TYPE vllm:(\w+) (\w+)$", text, re.M))
        self.assertEqual(set(found), set(types))
        self.assertEqual(len(re.findall("^# TYPE vllm:", text, re.M)), len(types))
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "gpu_cache_usage_perc", "cache_config_info"):
            self.assertEqual(types[name], "gauge")
        for name, own in (("num_requests_running", "requests_running"), ("num_requests_waiting", "requests_waiting"), ("kv_cache_usage_perc", "cache_usage_ratio"),
                          ("generation_tokens_total", "generated_tokens_total"), ("prefix_cache_hits_total", "reused_tokens_total")):
            self.assertEqual(float(found[name]), self.server_metric(own), name)
        self.assertGreaterEqual(float(found["prefix_cache_queries_total"]), float(found["prefix_cache_hits_total"]))
        self.assertRegex(text, r'vllm:cache_config_info\{model_name="[^"]+",block_size="64",num_gpu_blocks="[1-9]\d*"\} 1\n')

    def parts(self, text):
        """The objects of a stream, whichever way they are framed."""
        lines = [line.removeprefix("data: ") for line in text.decode().splitlines()]
        return [json.loads(line) for line in lines if line.startswith("{")]

    # Tokens of the prompt, of them cached, of the answer, from a response or from a stream's parts.
    @staticmethod
    def of_chat(usage):
        return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"], usage["completion_tokens"], usage["total_tokens"]

    def test_usage_is_the_same_everywhere(self):
        expected = None

        def same(path, stream, prompt, cached, generated, total=None):
            nonlocal expected
            expected = expected or prompt
            with self.subTest(path, stream=stream):
                self.assertEqual((prompt, generated), (expected, GENERATED))
                self.assertEqual(total or prompt + generated, prompt + generated)
                # All but the last token, which has to be computed.
                self.assertIn(cached, (prompt - 1, None))

        chat, responses, messages, ollama = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"
        self.assertEqual(self.ask(chat, {"messages": COUNT})[0], 200)
        same(chat, False, *self.of_chat(self.ask(chat, {"messages": COUNT})[1]["usage"]))
        streamed = self.parts(self.ask(chat, {"messages": COUNT, "stream": True, "stream_options": {"include_usage": True}})[1])
        same(chat, True, *self.of_chat(streamed[-1]["usage"]))

        def of_responses(usage):
            return usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"], usage["output_tokens"], usage["total_tokens"]
        same(responses, False, *of_responses(self.ask(responses, {"input": QUESTION})[1]["usage"]))
        streamed = self.parts(self.ask(responses, {"input": QUESTION, "stream": True})[1])
        same(responses, True, *of_responses(streamed[-1]["response"]["usage"]))

        def of_messages(usage):
            cached = usage["cache_read_input_tokens"]
            return usage["input_tokens"] + cached + usage["cache_creation_input_tokens"], cached, usage["output_tokens"]
        body = {"messages": COUNT, "max_tokens": 60}
        same(messages, False, *of_messages(self.ask(messages, body)[1]["usage"]))
        streamed = self.parts(self.ask(messages, {**body, "stream": True})[1])
        same(messages, True, *of_messages(next(part["usage"] for part in streamed if part["type"] == "message_delta")))
        self.assertEqual(self.ask("/v1/messages/count_tokens", {"messages": COUNT})[1]["input_tokens"], expected)

        def of_ollama(answer):
            return answer["prompt_eval_count"], None, answer["eval_count"]
        for path, body in ((ollama, {"messages": COUNT}), ("/api/generate", {"prompt": QUESTION})):
            same(path, False, *of_ollama(self.ask(path, {**body, "stream": False})[1]))
            same(path, True, *of_ollama(self.parts(self.ask(path, body)[1])[-1]))

        prompt = self.ask("/apply-template", {"messages": COUNT})[1]["prompt"]
        answer = self.ask("/v1/completions", {"prompt": prompt, "max_tokens": 60})[1]
        same("/v1/completions", False, *self.of_chat(answer["usage"]))
        streamed = self.parts(self.ask("/v1/completions", {"prompt": prompt, "max_tokens": 60, "stream": True, "stream_options": {"include_usage": True}})[1])
        same("/v1/completions", True, *self.of_chat(streamed[-1]["usage"]))
        for stream in (False, True):
            answer = self.ask("/completion", {"prompt": prompt, "n_predict": 60, "stream": stream})[1]
            answer = self.parts(answer)[-1] if stream else answer
            same("/completion", stream, answer["tokens_evaluated"], answer["timings"]["cache_n"], answer["tokens_predicted"])

    def test_prompts_as_llama_server_takes_them(self):
        def text(prompt):
            status, answer = self.ask("/completion", {"prompt": prompt, "n_predict": 5})
            self.assertEqual(status, 200, answer)
            return [part["content"] for part in answer] if isinstance(answer, list) else answer["content"]
        plain = text(QUESTION)
        self.assertEqual(text({"prompt_string": QUESTION}), plain)
        self.assertEqual(text([{"prompt_string": QUESTION}, QUESTION]), [plain, plain])
        for prompt, where in (({"prompt_string": 5}, "prompt.prompt_string"), ({}, "prompt.prompt_string"),
                              ({"prompt_string": "a", "multimodal_data": ["b"]}, "prompt.multimodal_data")):
            status, answer = self.ask("/completion", {"prompt": prompt})
            self.assertEqual((status, answer["error"]["param"]), (400, where))
        tokens = [token for part in self.parts(self.ask("/completion", {"prompt": QUESTION, "n_predict": 5, "stream": True})[1]) for token in part["tokens"]]
        self.assertEqual(self.ask("/detokenize", {"tokens": tokens})[1]["content"], plain)

    def test_reasoning_is_counted(self):
        """In both of OpenAI's APIs, also where there is none."""
        usage = self.ask("/v1/chat/completions", {"messages": COUNT})[1]["usage"]
        self.assertEqual(usage["completion_tokens_details"], {"reasoning_tokens": 0})
        usage = self.ask("/v1/responses", {"input": QUESTION})[1]["usage"]
        self.assertEqual(usage["output_tokens_details"], {"reasoning_tokens": 0})


if __name__ == "__main__":
    running_server.main()
