"""Drafts: the same answers in fewer steps, as timings, metrics and requests have them."""

import concurrent.futures
import glob
import os
import unittest

import running_server
from running_server import RunningServer

CHAT = "/v1/chat/completions"


class Drafts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--spec-type", "ngram", "--temp", "0", "--draft-max", "8").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, text, **fields):
        fields = {"messages": [{"role": "user", "content": text}], "max_tokens": 48, "cache_prompt": False, **fields}
        status, answer = self.server.request("POST", CHAT, fields)
        self.assertEqual(status, 200, answer)
        return answer["choices"][0]["message"]["content"], answer["timings"]

    def test_answers_are_the_same(self):
        texts = ["Repeat: box key box key box key box key box key.", "Count from 1 to 10 in German.",
                 "Say hello 9 times.", "Count from 1 to 12 in French."]
        ways = [{}, {"temperature": 0.8, "seed": 7}, {"stream": False, "repeat_penalty": 1.2}, {"choice": ["box box box key", "key"]}]
        before = self.server.settled("drafted_tokens_total")
        drafted = accepted = 0
        for way in ways:
            alone = [self.ask(text, **way, **{"speculative.n_max": 0}) for text in texts]
            for _, timings in alone:
                self.assertNotIn("draft_n", timings)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda text: self.ask(text, **way), texts * 2))
            for (text, timings), (wanted, _) in zip(found, alone * 2):
                self.assertEqual(text, wanted, way)
                drafted += timings.get("draft_n", 0)
                accepted += timings.get("draft_n_accepted", 0)
        self.assertGreater(drafted, 0)
        self.assertLessEqual(accepted, drafted)
        self.assertEqual(self.server.settled("drafted_tokens_total") - before, drafted)
        self.assertGreaterEqual(self.server.metric("accepted_tokens_total"), accepted)

    def test_what_is_told(self):
        self.assertEqual(self.server.request("GET", "/props")[1]["speculative"], {"n_max": 8})
        self.assertTrue(self.server.request("GET", "/slots")[1][0]["speculative"])

    def test_bad_fields(self):
        for value in (-1, "many", 1.5):
            status, answer = self.server.request("POST", CHAT, {"messages": [{"role": "user", "content": "hi"}],
                                                                "speculative.n_max": value})
            self.assertEqual(status, 400, value)
            self.assertIn("speculative.n_max", answer["error"]["message"])


# Whether any is made depends on how long steps take.
class ModelDrafts(unittest.TestCase):
    def test_answers_are_the_same(self):
        model = glob.glob(os.path.join(os.path.dirname(__file__), "..", "..", "models", "demo-*.gguf"))[0]
        with RunningServer("-md", model, "--temp", "0", "--draft-max", "4") as server:
            texts = ["Count from 1 to 10 in German.", "Say hello 9 times.", "What is 3 plus 4?"]
            ask = lambda text, **fields: server.request("POST", CHAT, {
                "messages": [{"role": "user", "content": text}], "max_tokens": 40, "cache_prompt": False, **fields})[1]
            alone = [ask(text, **{"speculative.n_max": 0}) for text in texts]
            self.assertEqual(server.request("GET", "/props")[1]["speculative"], {"n_max": 4})
            for _ in range(3):
                with concurrent.futures.ThreadPoolExecutor(3) as pool:
                    found = list(pool.map(ask, texts))
                for answer, wanted in zip(found, alone):
                    self.assertEqual(answer["choices"], wanted["choices"])


if __name__ == "__main__":
    running_server.main()
