"""What clients of llama-server and of the OpenAI API's completions look for: prompts in every form, echoes, probabilities, fields of answers."""

import itertools
import json
import signal
import threading
import unittest

import running_server
from running_server import CHAT, LIMIT, RunningServer, chat, wait_for

PROMPT = "Count from 1 to 10 in French."


def events_of(answer):
    return [line[6:] for line in answer.decode().splitlines() if line.startswith("data: ")]


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, path="/v1/completions", **fields):
        asked = {} if "messages" in fields else {"prompt": PROMPT}
        status, answer = self.server.request("POST", path, {**asked, "temperature": 0, "max_tokens": 6, **fields})
        self.assertEqual(status, 200, answer)
        return answer

    def plain(self, **fields):
        return self.ask("/completion", **fields)

    def stream(self, path, **fields):
        return [json.loads(event) for event in events_of(self.ask(path, stream=True, **fields)) if event != "[DONE]"]

    def tokens(self, text, **fields):
        return self.server.request("POST", "/tokenize", {"content": text, **fields})[1]["tokens"]

    def test_prompts_of_every_form(self):
        alone = self.ask()["choices"][0]["text"]
        ids = self.tokens(PROMPT, add_special=True)
        self.assertEqual(self.ask(prompt=ids)["choices"][0]["text"], alone)
        self.assertEqual(self.ask(prompt=[PROMPT])["choices"][0]["text"], alone)
        begin, end = ids[:4], PROMPT[len(self.server.request("POST", "/detokenize", {"tokens": ids[1:4]})[1]["content"]):]
        self.assertEqual(self.ask(prompt=begin + [end], echo=True)["usage"]["prompt_tokens"], len(begin) + len(self.tokens(end)))
        for prompts in ([PROMPT, ids], [ids, ids], [ids, PROMPT, [PROMPT]]):
            answer = self.ask(prompt=prompts, n=2)
            self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(2 * len(prompts))))
            self.assertEqual({choice["text"] for choice in answer["choices"]}, {alone})
            self.assertEqual(answer["usage"]["prompt_tokens"], len(prompts) * len(ids))
        different = self.ask(prompt=[PROMPT, "What is 3 plus 4?"])["choices"]
        self.assertEqual([choice["text"] for choice in different], [alone, self.ask(prompt="What is 3 plus 4?")["choices"][0]["text"]])
        texts = ["", ""]
        for part in self.stream("/v1/completions", prompt=[PROMPT, "What is 3 plus 4?"]):
            for choice in part["choices"]:
                texts[choice["index"]] += choice["text"]
        self.assertEqual(texts, [choice["text"] for choice in different])
        answers = self.plain(prompt=[PROMPT, ids, "What is 3 plus 4?"])
        self.assertEqual([answer["index"] for answer in answers], [0, 1, 2])
        self.assertEqual([answer["content"] for answer in answers], [alone, alone, different[1]["text"]])
        self.assertEqual(answers[2]["prompt"], "What is 3 plus 4?")
        for wrong in ([], [[]], [[1], []], [[1], 2], [[[1]]], [None], [1.5], ["a"] * 129, {"a": 1}, [10**9]):
            status, answer = self.server.request("POST", "/completion", {"prompt": wrong, "n_predict": 1})
            self.assertEqual(status, 400, wrong)
            self.assertTrue(answer["error"]["message"], wrong)
        self.assertEqual(self.server.request("POST", "/completion", {"prompt": ["a"] * 20, "n": 20})[0], 400)

    def test_an_echo_is_the_prompt(self):
        for prompt in (PROMPT, "<｜User｜>hi<｜Assistant｜>", "a  b\n", "🙂"):
            answer = self.ask(prompt=prompt, echo=True)["choices"][0]["text"]
            self.assertTrue(answer.startswith(prompt), (prompt, answer))
            self.assertEqual(answer, prompt + self.ask(prompt=prompt)["choices"][0]["text"])
        ids = self.tokens("<｜User｜>hi", add_special=True)
        spelled = self.server.request("POST", "/detokenize", {"tokens": ids})[1]["content"]
        self.assertTrue(self.ask(prompt=ids, echo=True)["choices"][0]["text"].startswith(spelled))
        shown = self.plain(prompt="<｜User｜>hi<｜Assistant｜>", skip_special_tokens=False, logit_bias={"<｜User｜>": 1e6}, n_predict=3, max_tokens=3)
        self.assertEqual(shown["content"], "<｜User｜>" * 3)

    def test_an_echo_with_probabilities(self):
        said = self.ask(logprobs=2, max_tokens=4)["choices"][0]
        whole = PROMPT + said["text"]
        for fields in ({}, {"stream": True}, {"prompt": self.tokens(PROMPT, add_special=True)}):
            fields = {"echo": True, "logprobs": 2, "max_tokens": 4, **fields}
            if fields.pop("stream", False):
                parts = [part["choices"][0]["logprobs"] for part in self.stream("/v1/completions", **fields)]
                found = {key: [value for part in parts for value in part[key]] for key in parts[0]}
            else:
                choice = self.ask(**fields)["choices"][0]
                found = choice["logprobs"]
                self.assertEqual("".join(found["tokens"]), choice["text"])
            offset = 0
            for token, position in zip(found["tokens"], found["text_offset"]):
                self.assertEqual(position, offset)
                offset += len(token)
            self.assertEqual(len({len(values) for values in found.values()}), 1)
            self.assertEqual(found["tokens"][-4:], said["logprobs"]["tokens"])
            # The first token of a prompt of tokens follows none.
            first = 1 if isinstance(fields.get("prompt"), list) else 0
            self.assertEqual(found["token_logprobs"][:first], [None] * first)
            for token, value, best in list(zip(found["tokens"], found["token_logprobs"], found["top_logprobs"]))[first:]:
                self.assertLessEqual(value, 0)
                self.assertLessEqual(len(best), 2)
                self.assertLessEqual(value, max(best.values()))
        # What the model says of a text is the same whether it is the prompt or the answer.
        scored = self.ask(prompt=whole, echo=True, logprobs=0, max_tokens=0)["choices"][0]
        self.assertEqual(scored["text"], whole)
        self.assertEqual(scored["finish_reason"], "length")
        for a, b in zip(scored["logprobs"]["token_logprobs"][-4:], said["logprobs"]["token_logprobs"]):
            self.assertAlmostEqual(a, b, delta=0.02)

    def test_a_prompt_is_scored_once_for_all_of_its_answers(self):
        prompt = PROMPT + " seed words of this test " * 60
        tokens = len(self.tokens(prompt))
        fields = {"prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 3, "temperature": 1.5, "seed": 11}
        alone = self.ask(**fields)["choices"][0]
        before = self.server.settled("prompt_tokens_total")
        several = self.ask(**fields, n=6)["choices"]
        computed = self.server.settled("prompt_tokens_total") - before
        # One page is not shared where a prompt ends within it.
        self.assertLess(computed, 2 * tokens + 6 * 64)
        self.assertEqual(several[0], alone)
        for choice in several:
            echoed = len(alone["logprobs"]["tokens"]) - 3
            for key, values in choice["logprobs"].items():
                self.assertEqual(values[:echoed], alone["logprobs"][key][:echoed], key)
            self.assertEqual("".join(choice["logprobs"]["tokens"]), choice["text"])
        texts = [""] * 6
        for part in self.stream("/v1/completions", **fields, n=6):
            for choice in part["choices"]:
                texts[choice["index"]] += choice["text"]
                self.assertTrue(texts[choice["index"]].startswith(prompt))
        self.assertEqual(texts, [choice["text"] for choice in several])

    def test_answers_tell_the_seeds_that_repeat_them(self):
        fields = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "ignore_eos": True}
        answers = self.plain(n=4, seed=7, prompt=[PROMPT, "a"], **fields)
        seeds = [answer["generation_settings"]["seed"] for answer in answers]
        self.assertEqual(seeds, [7, 8, 9, 10] * 2)
        for prompt, answer in zip([PROMPT] * 4 + ["a"] * 4, answers):
            self.assertEqual(self.plain(prompt=prompt, seed=answer["generation_settings"]["seed"], **fields)["content"], answer["content"])
        streamed = {part["index"]: part["generation_settings"]["seed"] for part in self.stream("/completion", n=4, seed=7, **fields) if part["stop"]}
        self.assertEqual(streamed, {0: 7, 1: 8, 2: 9, 3: 10})
        chosen = self.plain(n=3, seed=7, response_fields=["generation_settings/seed"])
        self.assertEqual(chosen, [{"generation_settings/seed": seed} for seed in (7, 8, 9)])
        last = self.plain(n=3, seed=4294967294, response_fields=["generation_settings/seed"])
        self.assertEqual([answer["generation_settings/seed"] for answer in last], [4294967294, 4294967296, 4294967297])
        drawn = self.plain(n=2, **fields)
        self.assertEqual(drawn[1]["generation_settings"]["seed"], drawn[0]["generation_settings"]["seed"] + 1)
        self.assertEqual(self.plain(seed=drawn[0]["generation_settings"]["seed"], **fields)["content"], drawn[0]["content"])
        self.assertEqual(self.server.request("GET", "/props")[1]["default_generation_settings"]["params"]["seed"], 4294967295)
        with RunningServer("--seed", "42") as server:
            def seed(**more):
                return server.request("POST", "/completion", {"prompt": "a", "n_predict": 1, **more})[1]["generation_settings"]["seed"]

            self.assertEqual(server.request("GET", "/props")[1]["default_generation_settings"]["params"]["seed"], 42)
            self.assertEqual((seed(), seed(seed=None), seed(seed=5)), (42, 42, 5))
            for random in (-1, 4294967295):
                self.assertNotEqual({seed(seed=random), seed(seed=random)}, {42})

    def test_nothing_of_a_stop_string_is_told(self):
        whole = self.plain(n_predict=30, max_tokens=30, n_probs=1, return_tokens=True)
        text = whole["content"]
        for begin in range(0, len(text) - 5, 3):
            stop = text[begin:begin + 5]
            kept = text[:text.index(stop)]
            for stream in (False, True):
                fields = {"max_tokens": 30, "stop": [stop], "n_probs": 1, "return_tokens": True}
                parts = self.stream("/completion", **fields) if stream else [self.plain(**fields)]
                self.assertEqual("".join(part["content"] for part in parts), kept)
                tokens = [token for part in parts for token in part["tokens"]]
                spelled = self.server.request("POST", "/detokenize", {"tokens": tokens})[1]["content"]
                self.assertTrue(kept.startswith(spelled), (kept, spelled))
                told = [token["id"] for part in parts for token in part.get("completion_probabilities", [])]
                self.assertEqual(told, tokens)
            answer = self.ask(max_tokens=30, stop=[stop], logprobs=0)["choices"][0]
            self.assertTrue(answer["text"].startswith("".join(answer["logprobs"]["tokens"])))
            status, answer = self.server.request("POST", CHAT, chat(stop=[stop], logprobs=True, temperature=0))
            content = answer["choices"][0]["message"]["content"]
            self.assertTrue(content.startswith("".join(token["token"] for token in answer["choices"][0]["logprobs"]["content"])))

    def test_each_part_has_its_tokens(self):
        parts = self.stream("/completion", n_probs=3, return_tokens=True, timings_per_token=True)
        for part in parts[:-1]:
            self.assertEqual(len(part["tokens"]), 1)
            self.assertEqual([token["id"] for token in part["completion_probabilities"]], part["tokens"])
            self.assertEqual(len(part["completion_probabilities"][0]["top_logprobs"]), 3)
        self.assertEqual([part["timings"]["predicted_n"] for part in parts], [1, 2, 3, 4, 5, 6, 6])
        whole = self.plain(n_probs=3, return_tokens=True)
        self.assertEqual(whole["tokens"], [token for part in parts for token in part["tokens"]])
        self.assertEqual(self.plain()["tokens"], [])
        for part in self.stream(CHAT, messages=chat()["messages"], timings_per_token=True, stream_options={"include_usage": True})[1:-1]:
            self.assertIn("timings", part)
            self.assertIsNone(part["usage"])

    def test_probabilities_after_the_samplers(self):
        answer = self.plain(n_probs=5, post_sampling_probs=True, temperature=1, top_k=3, top_p=1, min_p=0, ignore_eos=True)
        for token in answer["completion_probabilities"]:
            self.assertEqual(len(token["top_probs"]), 3)
            self.assertAlmostEqual(sum(one["prob"] for one in token["top_probs"]), 1, places=5)
            self.assertIn(token["id"], [one["id"] for one in token["top_probs"]])
        self.assertEqual([token["prob"] for token in self.plain(n_probs=1, post_sampling_probs=True)["completion_probabilities"]], [1] * 6)
        self.assertEqual(len(self.plain(n_probs=50)["completion_probabilities"][0]["top_logprobs"]), 50)

    def test_fields_of_an_answer(self):
        answer = self.plain(seed=7, top_k=5, stop=["x"], ignore_eos=True, logit_bias=[["un", -5]])
        settings = answer["generation_settings"]
        self.assertEqual((settings["seed"], settings["top_k"], settings["stop"], settings["n_predict"], settings["ignore_eos"]), (7, 5, ["x"], 6, True))
        self.assertIn({"token": self.tokens("un")[0], "bias": -5}, settings["logit_bias"])
        self.assertFalse(answer["has_new_line"])
        self.assertTrue(self.plain(logit_bias=[["\n", 1e6]])["has_new_line"])
        chosen = self.plain(response_fields=["content", "timings/predicted_n", "generation_settings/seed"], seed=9)
        self.assertEqual(chosen, {"content": chosen["content"], "timings/predicted_n": 6, "generation_settings/seed": 9})
        asked = ["timings", "prompt", "generation_settings/top_k", "generation_settings/stop", "generation_settings",
                 "timings/cache_differs", "index", "completion_probabilities", "tokens", "stop_type", "index"]
        whole = self.plain(seed=9, n_probs=2, return_tokens=True, n=2)
        chosen = self.plain(seed=9, n_probs=2, return_tokens=True, n=2, response_fields=asked)
        for all_of_it, part in zip(whole, chosen):
            self.assertEqual(set(part), {"timings", "prompt", "generation_settings/top_k", "generation_settings/stop", "generation_settings", "index",
                                         "completion_probabilities", "tokens", "stop_type"})
            self.assertEqual(set(part["timings"]), set(all_of_it["timings"]))
            self.assertEqual((part["generation_settings/top_k"], part["generation_settings/stop"]), (40, []))
            for name in ("prompt", "generation_settings", "index", "completion_probabilities", "tokens", "stop_type"):
                self.assertEqual(part[name], all_of_it[name], name)
        self.assertEqual([*self.stream("/completion", response_fields=["stop", "content"])[-1]], ["stop", "content"])
        for name in ("nothing", "generation_settings/nope", "tims"):
            status, answer = self.server.request("POST", "/completion", {"prompt": PROMPT, "n_predict": 1, "response_fields": ["content", name]})
            self.assertEqual((status, answer["error"]["param"]), (400, "response_fields"))
            self.assertIn(f"'{name}'", answer["error"]["message"])
        for path in ("/v1/completions", CHAT):
            fields = {"messages": chat()["messages"]} if path == CHAT else {}
            self.assertTrue(self.ask(path, **fields)["system_fingerprint"])
            self.assertTrue(self.stream(path, **fields)[0]["system_fingerprint"])

    def test_what_the_server_tells_of_itself(self):
        props = self.server.request("GET", "/props")[1]
        self.assertTrue(props["model_path"].endswith(".gguf"))
        self.assertEqual(props["modalities"], {"vision": False, "audio": False})
        params = props["default_generation_settings"]["params"]
        self.assertEqual((params["temperature"], params["top_k"], params["dry_multiplier"], params["samplers"][0]), (0, 40, 0, "penalties"))
        models = self.server.request("GET", "/v1/models")[1]["data"]
        self.assertEqual((models[0]["aliases"], models[0]["tags"]), ([], []))
        status, model = self.server.request("GET", "/v1/models/" + models[0]["id"].replace("-", "%2D"))
        self.assertEqual((status, model), (200, models[0]))
        status, answer = self.server.request("GET", "/v1/models/other%20one")
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        self.assertIn(models[0]["id"], answer["error"]["message"])
        self.assertEqual(self.server.request("GET", "/lora-adapters"), (200, []))
        slots = self.server.request("GET", "/slots")[1]
        self.assertEqual([slot["id"] for slot in slots], list(range(16)))
        # What an earlier test's client left behind ends in its own time.
        wait_for(lambda: not any(slot["is_processing"] for slot in self.server.request("GET", "/slots")[1]), "slots that are free")
        pieces = self.server.request("POST", "/tokenize", {"content": "a🙂", "with_pieces": True})[1]["tokens"]
        spelled = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"]) for p in pieces)
        self.assertEqual(spelled.decode(), "a🙂")
        self.assertTrue(any(isinstance(p["piece"], list) for p in pieces))
        self.assertGreater(self.server.metric("step_sequences"), 0)
        self.assertGreater(self.server.metric("sequence_tokens_max"), 0)

    def test_steps_are_compared_with_the_prediction(self):
        # Short steps, of which some find the processor free on any machine.
        with RunningServer("-t", "1", "-ub", "64") as server:
            self.assertEqual(server.metric("compared_generation_speed_ratio"), 0)
            tokens = itertools.cycle(range(100, 1100))

            def compared():
                server.request("POST", "/completion", {"prompt": [next(tokens)] * 300, "max_tokens": 12, "ignore_eos": True})
                return all(server.metric(f"compared_{kind}_steps_total") > 0 for kind in ("prompt", "generation"))

            wait_for(compared, "no step was compared")
            for kind in ("prompt", "generation"):
                for what in ("seconds_total", "predicted_seconds_total", "speed_ratio"):
                    self.assertGreater(server.metric(f"compared_{kind}_{what}"), 0, (kind, what))

    def test_time_ends_an_answer_at_a_line(self):
        answer = self.plain(max_tokens=200, ignore_eos=True, t_max_predict_ms=1, logit_bias=[["\n", 1e6]])
        self.assertLess(answer["tokens_predicted"], 200)
        self.assertEqual(answer["stop_type"], "limit")
        self.assertEqual(self.plain(max_tokens=40, ignore_eos=True, t_max_predict_ms=1, logit_bias=[["\n", False]])["tokens_predicted"], 40)

    def test_a_prompt_beyond_the_context(self):
        for path, body in (("/completion", {"prompt": "box " * 5000}), ("/v1/completions", {"prompt": ["a", "box " * 5000]}), (CHAT, chat("box " * 5000))):
            status, answer = self.server.request("POST", path, body)
            error = answer["error"]
            self.assertEqual((status, error["type"], error["code"]), (400, "exceed_context_size_error", "context_length_exceeded"))
            self.assertGreater(error["n_prompt_tokens"], error["n_ctx"])
            self.assertEqual(error["n_ctx"], self.server.request("GET", "/props")[1]["default_generation_settings"]["n_ctx"])


    def test_a_request_stays_within_what_the_model_was_made_for(self):
        answer = self.plain(max_tokens=-1, ignore_eos=True)
        self.assertEqual(answer["tokens_evaluated"] + answer["tokens_predicted"], 1024 + 1)
        self.assertEqual(answer["stop_type"], "limit")
        with RunningServer("-c", "2048", "--request-context", "1200") as server:
            self.assertEqual(server.request("GET", "/props")[1]["default_generation_settings"]["n_ctx"], 1200)
            answer = server.request("POST", "/completion", {"prompt": PROMPT, "ignore_eos": True})[1]
            self.assertEqual(answer["tokens_evaluated"] + answer["tokens_predicted"], 1200 + 1)

    def test_a_request_stays_within_the_context(self):
        """Pages beyond -c, one for each further sequence, are for what sequences fill in part."""
        with RunningServer("-c", "512", "--parallel", "16") as server:
            properties = server.request("GET", "/props")[1]
            self.assertEqual((properties["default_generation_settings"]["n_ctx"], properties["total_slots"]), (512, 16))
            self.assertEqual({slot["n_ctx"] for slot in server.request("GET", "/slots")[1]}, {512})
            self.assertEqual(server.request("GET", "/v1/models")[1]["data"][0]["meta"]["n_ctx"], 512)
            answer = server.request("POST", "/completion", {"prompt": PROMPT, "ignore_eos": True})[1]
            self.assertEqual(answer["tokens_evaluated"] + answer["tokens_predicted"], 512 + 1)
            error = server.request("POST", "/completion", {"prompt": "box " * 300})[1]["error"]
            self.assertEqual(error["n_ctx"], 512)
            server.wait_for_line("of the context, 960 tokens are a page of 64 for each further sequence")

    def test_samplers_are_honoured(self):
        base = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 3, "ignore_eos": True, "max_tokens": 40}
        text = self.plain(**base)["content"]
        self.assertEqual(self.plain(**base)["content"], text)
        for more in ({"top_n_sigma": 0.5}, {"xtc_probability": 1, "xtc_threshold": 0.01}, {"mirostat": 1, "mirostat_tau": 1}, {"mirostat": 2, "mirostat_tau": 1},
                     {"dynatemp_range": 1.4}, {"adaptive_target": 0.9}, {"dry_multiplier": 20, "dry_allowed_length": 0, "dry_sequence_breakers": []}):
            answer = self.plain(**{**base, **more})
            self.assertNotEqual(answer["content"], text, more)
            for name, value in more.items():
                self.assertEqual(answer["generation_settings"][name], value)
        for field, value in (("xtc_probability", 2), ("mirostat", 3), ("mirostat", 1.5), ("dry_sequence_breakers", [""]), ("dry_sequence_breakers", "x"),
                             ("adaptive_decay", 1), ("dry_penalty_last_n", -2), ("temperature", "hot"), ("samplers", ["top_k", "top_k"])):
            status, answer = self.server.request("POST", "/completion", {"prompt": "a", field: value})
            self.assertEqual(status, 400, (field, answer))
            self.assertIn(field, answer["error"]["message"])

    def test_defaults_of_front_ends(self):
        """All that SillyTavern and llama-server's page send by themselves is accepted."""
        off = {"temperature": 0.7, "top_p": 0.5, "typical_p": 1, "typical": 1, "min_p": 0, "repetition_penalty": 1.2, "repeat_penalty": 1.2,
               "rep_pen": 1.2, "rep_pen_range": 0, "repetition_penalty_range": 0, "repeat_last_n": 0, "frequency_penalty": 0,
               "presence_penalty": 0, "top_k": 40, "skew": 0, "min_tokens": 0, "add_bos_token": True, "smoothing_factor": 0,
               "smoothing_curve": 1, "dry_allowed_length": 2, "dry_multiplier": 0, "dry_base": 1.75, "dry_sequence_breakers": ["\n", ":"],
               "dry_penalty_last_n": 0, "max_tokens_second": 0, "stopping_strings": ["\nUser:"], "stop": ["\nUser:"],
               "truncation_length": 2048, "ban_eos_token": False, "skip_special_tokens": True, "include_reasoning": True, "top_a": 0,
               "tfs": 1, "mirostat_mode": 0, "mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1, "custom_token_bans": "",
               "banned_strings": [], "api_type": "llamacpp", "api_server": "http://127.0.0.1", "xtc_threshold": 0.1, "xtc_probability": 0,
               "nsigma": 0, "top_n_sigma": 0, "min_keep": 0, "adaptive_target": -0.01, "adaptive_decay": 0.9, "guidance_scale": 1,
               "negative_prompt": "", "num_ctx": 2048, "ignore_eos": False, "rep_pen_slope": 1, "n": 1, "logit_bias": [], "grammar": "",
               "max_new_tokens": 6, "n_predict": 6, "num_predict": 6,
               "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature", "adaptive_p"]}
        self.assertLessEqual(len(self.stream("/completion", **off)), 7)
        self.assertTrue(self.stream(CHAT, messages=chat()["messages"], reasoning_format="auto", dynatemp_range=0, dynatemp_exponent=1,
                                    samplers=["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
                                    typ_p=1, xtc_probability=0, timings_per_token=True, return_progress=True, dry_penalty_last_n=-1))
        self.assertEqual(self.plain(samplers="top_k;temperature")["generation_settings"]["samplers"], ["top_k", "temperature"])
        self.assertEqual(self.plain(samplers="kt")["generation_settings"]["samplers"], ["top_k", "temperature"])


class Repeated(unittest.TestCase):
    """A prompt that is computed again, though it is cached and there is no room for both."""

    SENTENCE = "Once upon a time there was a dog. "

    def post(self, server, path, **fields):
        status, answer = server.request("POST", path, {"temperature": 0, "ignore_eos": True, **fields})
        self.assertEqual(status, 200, answer)
        return answer

    def test_without_the_cache(self):
        with RunningServer("--parallel", "1", "-c", "512") as server:
            answers = [self.post(server, "/completion", prompt=self.SENTENCE * 20, n_predict=5, cache_prompt=False) for _ in range(3)]
            self.assertGreater(answers[0]["tokens_evaluated"], 256)
            for answer in answers:
                self.assertEqual(answer["tokens_predicted"], 5)
                self.assertEqual(answer["content"], answers[0]["content"])

    def test_with_its_scores(self):
        fields = {"prompt": self.SENTENCE * 29, "echo": True, "logprobs": 0, "max_tokens": 5}
        with RunningServer("--parallel", "1", "-c", "512") as server:
            first = self.post(server, "/v1/completions", **fields)
            self.assertEqual(first["usage"]["completion_tokens"], 5)
            self.assertEqual(self.post(server, "/v1/completions", **fields)["choices"], first["choices"])
            parts = [json.loads(event) for event in events_of(self.post(server, "/v1/completions", stream=True, **fields))[:-1]]
            values = [value for part in parts for choice in part["choices"] for value in choice["logprobs"]["token_logprobs"]]
            self.assertEqual(values, first["choices"][0]["logprobs"]["token_logprobs"])

    def test_with_the_scores_of_several_answers(self):
        fields = {"prompt": self.SENTENCE * 20, "echo": True, "logprobs": 0, "max_tokens": 5}
        with RunningServer("--parallel", "2", "-c", "512") as server:
            first = None
            for n in (1, 2, 1, 2, 2, 1):
                answer = self.post(server, "/v1/completions", n=n, **fields)
                self.assertEqual(answer["usage"]["completion_tokens"], 5 * n)
                # The others find what the one that scores has computed.
                self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
                self.assertEqual(answer["timings"]["cache_n"], 0)
                first = first or answer["choices"][0]
                self.assertEqual(answer["choices"][0], first)


class Cut(unittest.TestCase):
    """An answer that the server ends before it is complete says so."""

    def check(self, drain, signals):
        """Of answers that are being made and of others that wait."""
        bodies = [(CHAT, chat(max_tokens=30000, ignore_eos=True, stream=stream, n=n)) for stream in (False, True) for n in (1, 2)]
        bodies += [(path, {"prompt": [PROMPT, "a"], "max_tokens": 30000, "ignore_eos": True, "stream": stream})
                   for stream in (False, True) for path in ("/v1/completions", "/completion")]
        # Far longer than the test, on any machine.
        with RunningServer("-c", "300000", "--request-context", "32000", "--parallel", "6", "--drain-time", str(drain)) as server:
            answers = {}

            def ask(i):
                answers[i] = server.request("POST", *bodies[i])

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(bodies))]
            for thread in threads:
                thread.start()
            server.wait_for_metric("requests_running", lambda value: value == 6)
            server.wait_for_metric("requests_waiting", lambda value: value == 8)
            server.wait_for_metric("generated_tokens_total", lambda value: value > 60)
            server.process.send_signal(signal.SIGTERM)
            if signals == 2:
                server.wait_for_line("are being finished")
                server.process.send_signal(signal.SIGTERM)
            for thread in threads:
                thread.join()
            self.assertEqual(server.process.wait(LIMIT), 0)
        for i, (path, body) in enumerate(bodies):
            status, answer = answers[i]
            if not body["stream"]:
                self.assertEqual((status, answer["error"]["code"]), (503, "stopping"), path)
                continue
            self.assertEqual(status, 200)
            events = events_of(answer)
            self.assertEqual(json.loads(events[-1])["error"]["code"], "stopping", path)
            for event in events[:-1]:
                event = json.loads(event)
                self.assertFalse(event.get("stop"), event)
                for choice in event.get("choices", []):
                    self.assertIsNone(choice["finish_reason"], event)

    def test_by_a_second_signal(self):
        self.check(600, 2)

    def test_by_the_end_of_the_time_to_drain(self):
        self.check(0, 1)


if __name__ == "__main__":
    running_server.main()
