"""Requests of front ends, with all fields that these send: none is refused, and those that matter are honoured.

SillyTavern: createTextGenGenerationData of public/scripts/textgen-settings.js, of the kind llama.cpp, with the settings that it begins with.
Open WebUI: utils/payload.py and the requests for titles and tags of utils/task.py, for OpenAI's API and ollama's.
"""

import json
import unittest

import running_server
from running_server import CHAT, RunningServer

QUESTION = "Count from 1 to 10 in French."
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"

SILLY_TAVERN = {
    "prompt": QUESTION, "model": "", "max_new_tokens": 60, "max_tokens": 60, "logprobs": None, "temperature": 0, "top_p": 1, "typical_p": 1, "typical": 1,
    "min_p": 0, "repetition_penalty": 1, "frequency_penalty": 0, "presence_penalty": 0, "top_k": 0, "skew": 0, "min_tokens": 0, "add_bos_token": True,
    "smoothing_factor": 0, "smoothing_curve": 1, "dry_allowed_length": 2, "dry_multiplier": 0, "dry_base": 1.75,
    "dry_sequence_breakers": ["\n", ":", "\"", "*"], "dry_penalty_last_n": 0, "max_tokens_second": 0,
    "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature", "adaptive_p"],
    "stopping_strings": ["\nUser:"], "stop": ["\nUser:"], "truncation_length": 8192, "ban_eos_token": False, "skip_special_tokens": True,
    "include_reasoning": True, "top_a": 0, "tfs": 1, "mirostat_mode": 0, "mirostat_tau": 5, "mirostat_eta": 0.1, "custom_token_bans": "", "banned_strings": [],
    "api_type": "llamacpp", "api_server": "http://127.0.0.1:8080", "xtc_threshold": 0.1, "xtc_probability": 0, "nsigma": 0, "top_n_sigma": 0, "min_keep": 0,
    "adaptive_target": -0.01, "adaptive_decay": 0.9, "rep_pen": 1, "rep_pen_range": 0, "repetition_penalty_range": 0, "guidance_scale": 1, "negative_prompt": "",
    "repeat_penalty": 1, "repeat_last_n": 0, "n_predict": 60, "num_predict": 60, "num_ctx": 8192, "mirostat": 0, "ignore_eos": False, "rep_pen_slope": 1,
    "n": 1, "logit_bias": [], "grammar": "", "cache_prompt": True, "stream": False,
}
OPEN_WEBUI_OPTIONS = {
    "temperature": 0.0, "top_p": 0.9, "seed": 0, "mirostat": 0, "mirostat_eta": 0.1, "mirostat_tau": 5.0, "num_ctx": 2048, "num_batch": 512, "num_keep": 24,
    "num_predict": 60, "repeat_last_n": 64, "top_k": 40, "min_p": 0.0, "typical_p": 1.0, "repeat_penalty": 1.1, "presence_penalty": 0.0,
    "frequency_penalty": 0.0, "stop": ["\nUser:"], "numa": False, "num_gpu": 1, "main_gpu": 0, "low_vram": False, "vocab_only": False, "use_mmap": True,
    "use_mlock": False, "num_thread": 2, "tfs_z": 1,
}


class FrontEnds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--temp", "0").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, path, body):
        status, answer = self.server.request("POST", path, body)
        self.assertEqual(status, 200, answer)
        return answer

    def test_silly_tavern(self):
        prompt = self.ask("/apply-template", {"messages": [{"role": "user", "content": QUESTION}]})["prompt"]
        self.assertEqual(self.ask("/completion", {**SILLY_TAVERN, "prompt": prompt})["content"].strip(), ANSWER)
        stream = self.ask("/completion", {**SILLY_TAVERN, "stream": True, "n_probs": 10, "seed": 5, "sampler_seed": 5})
        self.assertIn(b'"stop":true', stream)

    def test_silly_tavern_with_a_grammar(self):
        grammar = 'root ::= "yes" | "no"'
        status, answer = self.server.request("POST", "/completion", {**SILLY_TAVERN, "grammar": grammar, "grammar_string": grammar})
        if status == 501:
            self.skipTest(answer["error"]["message"])
        self.assertEqual(status, 200, answer)
        self.assertIn(answer["content"], ("yes", "no"))
        status, answer = self.server.request("POST", "/completion", {**SILLY_TAVERN, "grammar": grammar, "grammar_string": 'root ::= "a"'})
        self.assertEqual((status, answer["error"]["param"]), (400, "grammar_string"))

    def test_silly_tavern_names_what_it_cannot_have(self):
        for field, value in (("smoothing_factor", 0.5), ("top_a", 0.2), ("skew", 1), ("banned_strings", ["a"]), ("guidance_scale", 1.5), ("add_bos_token", False)):
            status, answer = self.server.request("POST", "/completion", {**SILLY_TAVERN, field: value})
            self.assertEqual((status, answer["error"]["param"]), (400, field))

    def test_silly_tavern_asks_what_is_there(self):
        self.assertIn("default_generation_settings", self.server.request("GET", "/props")[1])
        self.assertEqual(self.server.request("GET", "/v1/models")[0], 200)
        self.assertEqual(self.server.request("POST", "/tokenize", {"content": QUESTION})[0], 200)

    def test_open_webui(self):
        body = {"model": "any", "stream": True, "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": QUESTION}],
                "temperature": 0.0, "top_p": 0.9, "min_p": 0.0, "max_tokens": 60, "frequency_penalty": 0.0, "presence_penalty": 0.0, "seed": 0,
                "stop": ["\nUser:"], "logit_bias": {}, "response_format": {"type": "text"}}
        text = "".join(json.loads(line[6:])["choices"][0]["delta"].get("content") or "" for line in self.ask(CHAT, body).decode().splitlines()
                       if line.startswith("data: {") and json.loads(line[6:])["choices"])
        self.assertEqual(text, ANSWER)
        title = {"model": "any", "messages": [{"role": "user", "content": "### Task:\nGenerate a title."}], "stream": False, "max_completion_tokens": 20}
        self.assertEqual(self.ask(CHAT, title)["object"], "chat.completion")

    def test_open_webui_by_ollama(self):
        for path in ("/api/tags", "/api/version", "/api/ps"):
            self.assertEqual(self.server.request("GET", path)[0], 200)
        body = {"model": "any", "messages": [{"role": "user", "content": QUESTION}], "stream": False, "options": OPEN_WEBUI_OPTIONS, "keep_alive": "5m"}
        self.assertEqual(self.ask("/api/chat", {**body, "options": {**OPEN_WEBUI_OPTIONS, "repeat_penalty": 1.0}})["message"]["content"], ANSWER)
        lines = self.ask("/api/chat", {**body, "stream": True}).decode().splitlines()
        self.assertTrue(json.loads(lines[-1])["done"])


class WithoutPage(unittest.TestCase):
    def test_the_root_answers(self):
        for flags in ((), ("--no-webui",)):
            with RunningServer(*flags) as server:
                self.assertEqual(server.request("HEAD", "/")[0], 200, flags)
                self.assertEqual(server.request("GET", "/")[0], 200, flags)


if __name__ == "__main__":
    running_server.main()
