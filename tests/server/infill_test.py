"""Gaps in texts: /infill as llama-server has it, and ollama's /api/generate with a suffix."""

import os
import tempfile
import unittest

import ollama

import running_server
from running_server import RunningServer
from scripted_model import write_model

PREFIX, SUFFIX, MIDDLE, FILE = "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"


class Infill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "scripted.gguf")
        write_model(path, [[MIDDLE, "return ", "eleven"], [PREFIX], [SUFFIX], [FILE]])
        cls.server = RunningServer("-m", path, "--temp", "0").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def ask(self, **fields):
        return self.server.request("POST", "/infill", {"input_prefix": "def f():\n    ", "input_suffix": "\n", **fields})

    def tokens(self, text):
        return self.server.request("POST", "/tokenize", {"content": text, "add_special": True})[1]["tokens"]

    def test_a_gap(self):
        status, answer = self.ask()
        self.assertEqual((status, answer["content"]), (200, "return eleven"), answer)
        self.assertEqual(answer["tokens_evaluated"], len(self.tokens(f"{PREFIX}def f():\n    {SUFFIX}\n{MIDDLE}")))
        begun = self.ask(prompt="x = ", input_extra=[{"filename": "a.py", "text": "import os"}])[1]
        self.assertEqual(begun["content"], "return eleven")
        self.assertEqual(begun["tokens_evaluated"],
                         len(self.tokens(f"{FILE}a.py\nimport os{FILE}filename\n{PREFIX}def f():\n    x = {SUFFIX}\n{MIDDLE}")))
        self.assertEqual(self.ask(n_predict=1)[1]["content"], "return ")

    def test_control_tokens_in_texts_are_text(self):
        plain = self.ask()[1]["tokens_evaluated"]
        self.assertGreater(self.ask(input_prefix="def f():\n    " + MIDDLE)[1]["tokens_evaluated"], plain + 5)

    def test_a_stream(self):
        status, text = self.ask(stream=True)
        self.assertEqual(status, 200)
        self.assertIn(b'"content":"return ', text)

    def test_ollama(self):
        client = ollama.Client(host=f"http://127.0.0.1:{self.server.port}")
        answer = client.generate(model="any", prompt="def f():\n    ", suffix="\n")
        self.assertEqual(answer.response, "return eleven")
        with self.assertRaises(ollama.ResponseError) as raised:
            client.generate(model="any", prompt="a", suffix="b", system="c")
        self.assertEqual(raised.exception.status_code, 400)

    def test_what_is_refused(self):
        for fields, param in (({"input_prefix": 1}, "input_prefix"), ({"input_suffix": None}, "input_suffix"), ({"input_extra": [{"filename": "a"}]}, "input_extra[0].text"),
                              ({"input_extra": [{"text": "a", "nonsense": 1}]}, "input_extra[0].nonsense"), ({"nonsense": 1}, "nonsense")):
            status, answer = self.ask(**fields)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
        self.assertEqual(self.ask(input_prefix="long " * 5000)[1]["error"]["code"], "context_length_exceeded")

    def test_a_vocabulary_without_the_tokens(self):
        path = os.path.join(self.folder.name, "without.gguf")
        write_model(path, [["one", "two"]])
        with RunningServer("-m", path) as server:
            status, answer = server.request("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"})
            self.assertEqual(status, 501)
            self.assertIn("fills no gaps", answer["error"]["message"])
            self.assertEqual(server.headers["X-Should-Retry"], "false")
            self.assertEqual(server.request("POST", "/api/generate", {"prompt": "a", "suffix": "b"})[0], 501)

    def test_the_files_keys(self):
        path = os.path.join(self.folder.name, "keys.gguf")
        names = ["[begin]", "[rest]", "[fill]"]

        def keys(writer, number):
            for key, name in zip(("pre", "suf", "mid"), names):
                writer.add_uint32(f"tokenizer.ggml.fim_{key}_token_id", number[name])
        write_model(path, [["[fill]", "two"], ["[begin]"], ["[rest]"]], keys=keys)
        with RunningServer("-m", path, "--temp", "0") as server:
            status, answer = server.request("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"})
            self.assertEqual((status, answer["content"]), (200, "two"), answer)


if __name__ == "__main__":
    running_server.main()
