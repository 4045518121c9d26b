"""Drafts of the model's own layer that predicts further tokens (--mtp): the same answers in fewer steps."""

import concurrent.futures
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import running_server
from running_server import RunningServer

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Tokens behind those that stand for bytes; each text goes on with the next number.
PROMPTS = [list(range(first, first + count)) for first, count in ((300, 5), (700, 40), (1100, 90), (1500, 9))]
SCHEMA = {"type": "object", "properties": {"name": {"enum": ["the tenth", "others"]}, "n": {"type": "integer", "maximum": 99}},
          "required": ["name", "n"], "additionalProperties": False}


class PredictionDrafts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        file = os.path.join(folder.name, "model.gguf")
        # Of so many layers that one costs little beside them.
        for words in (["make_gguf.py", "--preset", "tiny-v3", "--layers", "12", "--experts", "8", "--nextn", "1", "--type", "q8_0", "-o", file],
                      ["make_predictable.py", file]):
            subprocess.run([sys.executable, os.path.join(ROOT, "testing", words[0]), *words[1:]], check=True, capture_output=True)
        flags = ("-m", file, "--temp", "0", "-c", "4096")
        cls.server = cls.enterClassContext(RunningServer(*flags, "--mtp", "--draft-max", "6"))
        cls.without = cls.enterClassContext(RunningServer(*flags))

    def ask(self, prompt, server=None, **fields):
        fields = {"prompt": prompt, "n_predict": 24, "cache_prompt": False, **fields}
        status, answer = (server or self.server).request("POST", "/completion", fields)
        self.assertEqual(status, 200, answer)
        return answer["content"], answer["timings"]

    def counts(self):
        return [self.server.settled(f"{name}_tokens_total") for name in ("drafted", "accepted")]

    def test_answers_are_the_same(self):
        for way in ({}, {"temperature": 0.8, "seed": 7}, {"json_schema": SCHEMA}):
            before = self.counts()
            wanted = [self.ask(prompt, self.without, **way) for prompt in PROMPTS]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda prompt: self.ask(prompt, **way), PROMPTS * 2))
            for (text, _), (alone, timings) in zip(found, wanted * 2):
                self.assertTrue(text, way)
                self.assertEqual(text, alone, way)
                self.assertNotIn("draft_n", timings)
            told = [sum(timings.get(name, 0) for _, timings in found) for name in ("draft_n", "draft_n_accepted")]
            self.assertEqual([now - then for now, then in zip(self.counts(), before)], told, way)
            self.assertLessEqual(told[1], told[0], way)

    def test_drafts_are_accepted(self):
        """How many are made depends on how long steps take. Those that are made are right."""
        wanted = self.ask(PROMPTS[0], self.without, n_predict=200)[0]
        drafted = tries = 0
        while drafted == 0:
            self.assertLess(tries, 50)
            text, timings = self.ask(PROMPTS[0], n_predict=200)
            self.assertEqual(text, wanted)
            drafted, tries = timings.get("draft_n", 0), tries + 1
        self.assertEqual(timings["draft_n_accepted"], drafted)

    def test_a_request_may_do_without(self):
        before = self.counts()
        for prompt in PROMPTS:
            self.assertNotIn("draft_n", self.ask(prompt, **{"speculative.n_max": 0})[1])
        self.assertEqual(self.counts(), before)

    def test_what_is_told(self):
        self.assertEqual(self.server.request("GET", "/props")[1]["speculative"], {"n_max": 6})
        self.assertEqual(self.without.request("GET", "/props")[1]["speculative"], {"n_max": 0})

    def test_a_file_without_the_layer_is_refused(self):
        bundled = glob.glob(os.path.join(ROOT, "models", "demo-*.gguf"))[0]
        run = subprocess.run([running_server.PROGRAM, "--port", "0", "-m", bundled, "--mtp"], capture_output=True, text=True, timeout=running_server.LIMIT)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("the file has no layer that predicts further tokens: there are no tensors blk.N.nextn.*", run.stderr)


if __name__ == "__main__":
    running_server.main()
