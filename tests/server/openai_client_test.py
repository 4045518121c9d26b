"""The openai client against tessera-server: what an application that was written for another server finds."""

import concurrent.futures
import json
import unittest

import openai

import running_server
from running_server import LONG_ANSWERS, RunningServer

QUESTION = [{"role": "user", "content": "Count from 1 to 10 in French."}]
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer().__enter__()
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()

    def ask(self, **fields):
        return self.client.chat.completions.create(model="any", messages=fields.pop("messages", QUESTION), **fields)

    def test_models(self):
        names = [model.id for model in self.client.models.list()]
        self.assertEqual(len(names), 1)
        self.assertTrue(names[0].startswith("demo-"))
        self.assertEqual(self.client.models.retrieve(names[0]).id, names[0])
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("other")

    def test_chat(self):
        answer = self.ask()
        self.assertEqual(answer.choices[0].message.content, ANSWER)
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.usage.completion_tokens, 20)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 20)

    def test_stream_is_the_same_text(self):
        parts = list(self.ask(stream=True, stream_options={"include_usage": True}))
        text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
        self.assertEqual(text, ANSWER)
        self.assertEqual(parts[0].choices[0].delta.role, "assistant")
        self.assertEqual([p.choices[0].finish_reason for p in parts if p.choices][-1], "stop")
        self.assertEqual(parts[-1].usage.completion_tokens, 20)
        self.assertEqual(len({part.id for part in parts}), 1)

    def test_limits_and_stop_strings(self):
        answer = self.ask(max_tokens=4)
        self.assertEqual(answer.choices[0].message.content, "un, deux,")
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(self.ask(max_completion_tokens=1).choices[0].message.content, "un")
        answer = self.ask(stop=["quatre", "never"])
        self.assertEqual(answer.choices[0].message.content, "un, deux, trois, ")
        self.assertEqual(answer.choices[0].finish_reason, "stop")

    def test_log_probabilities(self):
        answer = self.ask(max_tokens=3, logprobs=True, top_logprobs=2)
        tokens = answer.choices[0].logprobs.content
        self.assertEqual("".join(token.token for token in tokens), answer.choices[0].message.content)
        for token in tokens:
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertLessEqual(token.logprob, 0)
            self.assertEqual(bytes(token.bytes).decode(), token.token)
        streamed = [part for part in self.ask(max_tokens=3, logprobs=True, stream=True) if part.choices]
        found = [t.token for part in streamed if part.choices[0].logprobs for t in part.choices[0].logprobs.content]
        self.assertEqual(found, [token.token for token in tokens])

    def test_several_answers(self):
        answer = self.ask(n=3, temperature=1.5, seed=5, max_tokens=12)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        again = self.ask(n=3, temperature=1.5, seed=5, max_tokens=12)
        self.assertEqual([c.message.content for c in answer.choices], [c.message.content for c in again.choices])

    def test_bias_forbids_tokens(self):
        tokens = self.server.request("POST", "/tokenize", {"content": "un"})[1]["tokens"]
        self.assertFalse(self.ask(logit_bias={str(tokens[0]): -100}).choices[0].message.content.startswith("un"))

    def test_an_answer_is_continued(self):
        question = [{"role": "user", "content": "Count from 1 to 10 in French."}]
        whole = self.ask(messages=question).choices[0].message.content
        begun = whole[:whole.index(",") + 1]
        messages = question + [{"role": "assistant", "content": begun}]
        more = {"continue_final_message": True, "add_generation_prompt": False}
        self.assertEqual(begun + self.ask(messages=messages, extra_body=more).choices[0].message.content, whole)
        self.assertEqual(begun + self.ask(messages=messages).choices[0].message.content, whole, "the default")

        def prompt(asked, **fields):
            return self.server.request("POST", "/apply-template", {"messages": asked, **fields})[1]["prompt"]

        self.assertTrue(prompt(messages, **more).endswith(begun))
        self.assertTrue(prompt(messages).endswith(begun))
        closed = prompt(messages, add_generation_prompt=False)
        self.assertGreater(len(closed), len(prompt(messages)))
        for fields in ({"add_generation_prompt": True}, {"continue_final_message": False}):
            answered = prompt(messages, **fields)
            self.assertTrue(answered.startswith(closed) and answered != closed)
        for wrong in ({"continue_final_message": True, "add_generation_prompt": True}, {"continue_final_message": 1}):
            with self.assertRaises(openai.BadRequestError):
                self.ask(messages=messages, extra_body=wrong)
        with self.assertRaises(openai.BadRequestError) as raised:
            self.ask(messages=question, extra_body=more)
        self.assertIn("assistant", str(raised.exception))

    def test_completions(self):
        answer = self.client.completions.create(model="any", prompt="one two three", max_tokens=5, logprobs=2, echo=False)
        self.assertEqual(answer.usage.completion_tokens, 5)
        self.assertEqual("".join(answer.choices[0].logprobs.tokens), answer.choices[0].text)
        streamed = self.client.completions.create(model="any", prompt="one two three", max_tokens=5, stream=True)
        self.assertEqual("".join(part.choices[0].text for part in streamed), answer.choices[0].text)
        ids = self.server.request("POST", "/tokenize", {"content": "one two three", "add_special": True})[1]["tokens"]
        again = self.client.completions.create(model="any", prompt=ids, max_tokens=5)
        self.assertEqual(again.choices[0].text, answer.choices[0].text)

    def test_the_word_that_stopped_a_completion(self):
        for stream in (False, True):
            def ask(**fields):
                status, answer = self.server.request("POST", "/completion", {"prompt": "one two three", "n_predict": 8, "temperature": 0, "stream": stream, **fields})
                self.assertEqual(status, 200)
                events = [json.loads(line[6:]) for line in answer.decode().splitlines() if line.startswith("data: ")] if stream else [answer]
                return "".join(event["content"] for event in events), events[-1]

            text, last = ask()
            self.assertEqual(last["stopping_word"], "")
            word = text[-3:]
            _, last = ask(stop=["not there", word])
            self.assertEqual((last["stop_type"], last["stopping_word"]), ("word", word))

    def test_a_prompt_that_is_too_long(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.ask(messages=[{"role": "user", "content": "box " * 5000}])
        self.assertEqual(raised.exception.code, "context_length_exceeded")
        self.assertIn("tokens", str(raised.exception))

    def test_what_is_not_offered_is_said(self):
        with self.assertRaises(openai.APIStatusError) as raised:
            self.client.embeddings.create(model="any", input="hi")
        self.assertEqual((raised.exception.status_code, raised.exception.body["code"]), (501, "not_supported"))
        self.assertEqual(raised.exception.response.headers["x-should-retry"], "false")
        # A client as most are made tries again where it is told nothing.
        with openai.OpenAI(base_url=str(self.client.base_url), api_key="none") as client:
            self.assertGreater(client.max_retries, 0)
            for ask in (lambda: client.embeddings.create(model="any", input="hi"),
                        lambda: client.post("/rerank", body={"query": "a", "documents": ["b"]}, cast_to=object),
                        lambda: client.chat.completions.create(model="any", messages=QUESTION, response_format={"type": "json_lines"}),
                        lambda: client.chat.completions.create(model="any", messages=QUESTION, extra_body={"no_such_field": 1})):
                before = self.server.metric("http_requests_total")
                with self.assertRaises(openai.APIStatusError):
                    ask()
                # That of the metric itself is the second.
                self.assertEqual(self.server.metric("http_requests_total") - before, 2)
        for field, value in (("json_schema", {"not": {}}), ("guided_grammar", "root ::= x"), ("regex", "(?=a)b"),
                             ("no_such_field", 1), ("smoothing_factor", 0.5)):
            with self.assertRaises(openai.APIStatusError) as raised:
                self.ask(extra_body={field: value})
            self.assertEqual((raised.exception.status_code, raised.exception.param), (400, field))
        self.assertEqual(self.ask(extra_body={"top_n_sigma": -1, "t_max_predict_ms": -1, "json_schema": None}).choices[0].message.content, ANSWER)
        for fields in ({"response_format": {"type": "json_lines"}}, {"tool_choice": "required"}, {"modalities": ["audio"]},
                       {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}):
            with self.assertRaises(openai.APIStatusError) as raised:
                self.ask(**fields)
            self.assertEqual(raised.exception.status_code, 400, fields)
            self.assertTrue(raised.exception.body["message"])

    def test_hints(self):
        """Wishes that have no effect are accepted, and a header names them; of a stream, too."""
        hints = {"verbosity": "low", "store": True}
        raw = self.client.chat.completions.with_raw_response.create(model="any", messages=QUESTION, **hints)
        self.assertEqual(raw.parse().choices[0].message.content, ANSWER)
        self.assertEqual(set(raw.headers["x-tessera-no-effect"].split(", ")), {"verbosity", "store"})
        raw = self.client.chat.completions.with_raw_response.create(model="any", messages=QUESTION, max_tokens=1, stream=True, stream_options={"include_obfuscation": True})
        self.assertEqual(raw.headers["x-tessera-no-effect"], "stream_options.include_obfuscation")
        self.assertEqual(len([part for part in raw.parse() if part.choices and part.choices[0].delta.content]), 1)
        plain = self.client.chat.completions.with_raw_response.create(model="any", messages=QUESTION, max_tokens=1, verbosity="medium", store=False)
        self.assertNotIn("x-tessera-no-effect", plain.headers)
        for wrong in ({"verbosity": "loud"}, {"store": "yes"}, {"stream": True, "stream_options": {"include_obfuscation": 1}}):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask(**wrong)
            self.assertIn(raised.exception.param, ("verbosity", "store", "stream_options.include_obfuscation"))

    def test_fields_of_routers(self):
        """vllm-router and sglang-router write each request anew, with fields of their own at their defaults."""
        both = {"no_stop_trim": False, "ignore_eos": False, "skip_special_tokens": True, "return_hidden_states": False}
        chat = {**both, "logprobs": False, "continue_final_message": False, "separate_reasoning": True, "stream_reasoning": True, "include_reasoning": True}
        more = {"lora_path": None, "session_params": None, "bootstrap_host": None, "kv_transfer_params": {}, "data_parallel_rank": -1, "return_routed_experts": False}
        self.assertEqual(self.ask(extra_body={**chat, **more}).choices[0].message.content, ANSWER)
        self.assertEqual(self.client.completions.create(model="any", prompt="one two", max_tokens=2, echo=False, extra_body=both).usage.completion_tokens, 2)
        for field, value in (("no_stop_trim", True), ("return_hidden_states", True), ("stream_reasoning", False), ("kv_transfer_params", {"do_remote_decode": True})):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask(extra_body={field: value})
            self.assertEqual(raised.exception.param, field)

    def test_a_body_that_is_not_json(self):
        for body, said, where in ((b'{"prompt":"cut \\ud83d"}', "half of a surrogate pair", "(line 1, column 16, byte 15)"),
                                  (b'{"prompt":"a long enough beginning here"\n "max_tokens":1}', "expected ',' or '}'", "(line 2, column 2, byte 42)"),
                                  (b'{"prompt":"a","max_tokens":1', "the end of the text", "(line 1, column 29, byte 28)"),
                                  ('{"prompt":"\u00e9"'.encode() + b"\xff}", "expected ',' or '}'", "(line 1, column 14, byte 14)"),
                                  (b'{"prompt":"a","temperature":1e400}', "1e400", "byte 28)")):
            status, answer = self.server.request("POST", "/v1/completions", body)
            self.assertEqual(status, 400)
            self.assertIn(said, answer["error"]["message"])
            self.assertIn(where, answer["error"]["message"])

    def test_properties(self):
        status, properties = self.server.request("GET", "/props")
        self.assertEqual(status, 200)
        self.assertEqual(properties["default_generation_settings"]["n_ctx"], 1024)
        # Clients of llama-server look for what the template does in its text.
        self.assertIn("messages", properties["chat_template"])
        for name in ("bos_token", "eos_token"):
            self.assertEqual(len(self.server.request("POST", "/tokenize", {"content": properties[name], "parse_special": True})[1]["tokens"]), 1)

    def test_tools_need_a_template_that_has_them(self):
        tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
        with self.assertRaises(openai.BadRequestError) as raised:
            self.ask(tools=tools)
        self.assertIn("--chat-template", str(raised.exception))
        # The model is not told of them, so nothing is missing.
        self.assertEqual(self.ask(tools=tools, tool_choice="none").choices[0].message.content, ANSWER)
        for wrong in ([3], [{"type": "function"}], [{"type": "retrieval", "function": {"name": "x"}}],
                      [{"type": "function", "function": {"name": ""}}]):
            with self.assertRaises(openai.APIStatusError):
                self.ask(tools=wrong)

    def test_parts_of_text(self):
        parts = [{"type": "text", "text": "Count from 1 to "}, {"type": "text", "text": "10 in French."}]
        self.assertEqual(self.ask(messages=[{"role": "user", "content": parts}]).choices[0].message.content, ANSWER)

    def test_control_tokens_of_a_user_are_text(self):
        spelled = self.ask(messages=[{"role": "user", "content": "hi<｜end▁of▁sentence｜>"}], max_tokens=1).usage.prompt_tokens
        plain = self.ask(messages=[{"role": "user", "content": "hi"}], max_tokens=1).usage.prompt_tokens
        self.assertGreater(spelled, plain + 1)

    def test_sixteen_at_once_get_what_each_gets_alone(self):
        questions = [f"What is {i} plus {i + 1}?" for i in range(16)]

        def answer(question):
            return self.ask(messages=[{"role": "user", "content": question}], max_tokens=12,
                            extra_body={"cache_prompt": False}).choices[0].message.content

        alone = [answer(question) for question in questions]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for _ in range(3):
                self.assertEqual(list(pool.map(answer, questions)), alone)

    def test_a_client_that_goes_is_cancelled(self):
        with RunningServer(*LONG_ANSWERS) as server, openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0) as client:
            stream = client.chat.completions.create(model="any", messages=[{"role": "user", "content": "hi"}], stream=True, max_tokens=50000,
                                                    extra_body={"ignore_eos": True})
            next(iter(stream))
            stream.close()
            server.wait_for_metric("requests_cancelled_total", lambda value: value == 1)
            server.wait_for_metric("requests_running", lambda value: value == 0)

    def test_a_second_question_reuses_the_first(self):
        messages = [{"role": "user", "content": "Repeat: " + "box " * 100}]
        first = self.ask(messages=messages, max_tokens=4)
        messages += [{"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "hi"}]
        again = self.ask(messages=messages, max_tokens=4)
        self.assertGreater(again.usage.prompt_tokens_details.cached_tokens, first.usage.prompt_tokens - 2)

    def test_progress_of_a_prompt(self):
        stream = self.ask(messages=[{"role": "user", "content": "progress " * 150}], stream=True, max_tokens=2,
                          extra_body={"return_progress": True})
        shown = [part.model_extra["prompt_progress"] for part in stream if "prompt_progress" in part.model_extra]
        self.assertGreater(len(shown), 1)
        for field in ("processed", "time_ms"):
            self.assertEqual(sorted(p[field] for p in shown), [p[field] for p in shown])
        self.assertEqual({(p["total"], p["cache"]) for p in shown}, {(shown[0]["total"], shown[0]["cache"])})
        self.assertEqual(shown[-1]["processed"], shown[-1]["total"])
        again = self.ask(messages=[{"role": "user", "content": "progress " * 150}], stream=True, max_tokens=1,
                         extra_body={"return_progress": True})
        shown_again = [part.model_extra["prompt_progress"] for part in again if "prompt_progress" in part.model_extra]
        self.assertEqual(shown_again[-1]["cache"], shown[-1]["total"] - 1)


if __name__ == "__main__":
    running_server.main()
