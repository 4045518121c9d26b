"""Embeddings through the openai and ollama clients and as llama-server has them, by a model whose hidden states are known."""

import base64
import json
import os
import struct
import tempfile
import unittest

import gguf
import numpy
import ollama
import openai

import running_server
from running_server import RunningServer
from scripted_model import WIDTH, write_model

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "goldens")
COUNT = "Count from 1 to 10 in French."
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"


def unit(vector):
    return vector / numpy.linalg.norm(vector)


class Known(unittest.TestCase):
    """A token's state is an axis of its own (scripted_model.py)."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "scripted.gguf")
        write_model(cls.path, [["one", "two"]])
        cls.server = RunningServer("-m", cls.path, "--embeddings").__enter__()
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()
        cls.folder.cleanup()

    def embedding(self, **fields):
        status, answer = self.server.request("POST", "/embedding", fields)
        self.assertEqual(status, 200, answer)
        return numpy.array(answer[0]["embedding"][0], numpy.float32)

    @staticmethod
    def counts(tokens):
        vector = numpy.zeros(WIDTH)
        for token in tokens:
            vector[token] += 1
        return vector

    def test_pooling(self):
        tokens = [70, 71, 72, 71, 71, 90]
        numpy.testing.assert_allclose(self.embedding(content=tokens, pooling="mean"), unit(self.counts(tokens)), atol=1e-6)
        numpy.testing.assert_allclose(self.embedding(content=tokens, pooling="last"), self.counts([90]), atol=1e-6)
        numpy.testing.assert_allclose(self.embedding(content=tokens), self.counts([90]), atol=1e-6)
        # Of several steps.
        many = [60 + i % 37 for i in range(700)]
        numpy.testing.assert_allclose(self.embedding(content=many, pooling="mean"), unit(self.counts(many)), atol=1e-6)

    def test_norms(self):
        tokens = [70, 71, 71]
        states = self.counts(tokens) / 3 * numpy.sqrt(WIDTH)
        for norm, expected in ((-1, states), (2, unit(states)), (1, states / states.sum()), (3, states / (states ** 3).sum() ** (1 / 3)),
                               (0, states / states.max() * 32760)):
            numpy.testing.assert_allclose(self.embedding(content=tokens, pooling="mean", embd_normalize=norm), expected, rtol=1e-3, atol=1e-6)

    def test_inputs_and_usage(self):
        one = self.client.embeddings.create(model="any", input="abc", encoding_format="float")
        tokens = self.server.request("POST", "/tokenize", {"content": "abc", "add_special": True})[1]["tokens"]
        self.assertEqual((one.usage.prompt_tokens, one.usage.total_tokens), (len(tokens), len(tokens)))
        self.assertAlmostEqual(sum(x * x for x in one.data[0].embedding), 1, places=5)
        self.assertEqual(self.client.embeddings.create(model="any", input=tokens, encoding_format="float").data[0].embedding, one.data[0].embedding)
        several = self.client.embeddings.create(model="any", input=["abc", "abd", "abc"])  # base64, as this client asks
        self.assertEqual([entry.index for entry in several.data], [0, 1, 2])
        self.assertEqual(several.data[0].embedding, several.data[2].embedding)
        self.assertNotEqual(several.data[0].embedding, several.data[1].embedding)
        lists = self.client.embeddings.create(model="any", input=[[70, 71], [72]])
        self.assertEqual([int(numpy.argmax(entry.embedding)) for entry in lists.data], [71, 72])
        self.assertEqual(lists.usage.prompt_tokens, 3)
        status, answer = self.server.request("POST", "/v1/embeddings", {"input": [[71]], "encoding_format": "base64"})
        vector = struct.unpack(f"<{WIDTH}f", base64.b64decode(answer["data"][0]["embedding"]))
        self.assertEqual((status, len(vector), vector.index(max(vector))), (200, WIDTH, 71))
        batch = self.client.embeddings.create(model="any", input=[[60 + i % 50] for i in range(300)])
        self.assertEqual([int(numpy.argmax(entry.embedding)) for entry in batch.data], [60 + i % 50 for i in range(300)])

    def test_ollama(self):
        client = ollama.Client(host=f"http://127.0.0.1:{self.server.port}")
        answer = client.embed(model="any", input=["abc", "abd"])
        self.assertEqual([len(vector) for vector in answer.embeddings], [WIDTH, WIDTH])
        self.assertGreater(answer.prompt_eval_count, 5)
        old = client.embeddings(model="any", prompt="abc")
        self.assertEqual(list(old.embedding), list(answer.embeddings[0]))

    def test_dimensions(self):
        """The first values, normalised again."""
        def vectors(**fields):
            return [entry.embedding for entry in self.client.embeddings.create(model="any", input=texts, **fields).data]
        texts, mean = ["abc", "The quick brown fox"], {"extra_body": {"pooling": "mean"}}
        whole, cut = vectors(**mean), vectors(dimensions=105, **mean)
        for long, short in zip(whole, cut):
            numpy.testing.assert_allclose(short, unit(numpy.array(long[:105])), atol=1e-6)
        self.assertEqual(vectors(dimensions=WIDTH, **mean), whole)
        numpy.testing.assert_allclose(self.embedding(content=[97, 98, 99], pooling="mean", dimensions=98, embd_normalize=-1), (self.counts([97]) / 3 * numpy.sqrt(WIDTH))[:98], rtol=1e-3)
        client = ollama.Client(host=f"http://127.0.0.1:{self.server.port}")
        for short in (client.embed(model="any", input=texts, dimensions=200).embeddings, vectors(dimensions=200)):
            self.assertEqual([(len(vector), max(vector)) for vector in short], [(200, 1), (200, 1)])

    def test_what_is_refused(self):
        for fields, part in (({"dimensions": 0}, "dimensions"), ({"dimensions": WIDTH + 1}, str(WIDTH)), ({"encoding_format": "int8"}, "encoding_format"), ({"extra_body": {"pooling": "cls"}}, "pooling"),
                             ({"extra_body": {"nonsense": 1}}, "nonsense"), ({"input": []}, "input"), ({"input": [[]]}, "input"), ({"input": [[70], [100000]]}, "input"),
                             ({"input": ["a"] * 2049}, "2048"), ({"input": "long " * 5000}, "context")):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.client.embeddings.create(**{"model": "any", "input": "a", **fields})
            self.assertIn(part, str(raised.exception))
        for path in ("/v1/rerank", "/rerank"):
            status, answer = self.server.request("POST", path, {"query": "a", "documents": ["b"]})
            self.assertEqual(status, 501)
            self.assertIn("ranker", answer["error"]["message"])

    def test_the_files_pooling(self):
        """llama.cpp's numbers: 1 is mean, 2 of the first token, 3 of the last."""
        for number, expected in ((1, unit(self.counts([70, 71]))), (2, None), (3, self.counts([71]))):
            path = os.path.join(self.folder.name, f"pooled-{number}.gguf")
            write_model(path, [["one", "two"]], keys=lambda writer, _: writer.add_pooling_type(gguf.PoolingType(number)))
            with RunningServer("-m", path, "--embeddings") as server:
                status, answer = server.request("POST", "/embedding", {"content": [70, 71]})
                if expected is None:
                    self.assertEqual(status, 400)
                    self.assertIn("--pooling", answer["error"]["message"])
                else:
                    numpy.testing.assert_allclose(answer[0]["embedding"][0], expected, atol=1e-6)
        with RunningServer("-m", path, "--embeddings", "--pooling", "mean") as server:
            numpy.testing.assert_allclose(server.request("POST", "/embedding", {"content": [70, 71]})[1][0]["embedding"][0], unit(self.counts([70, 71])), atol=1e-6)


class Golden(unittest.TestCase):
    """Hidden states of small models as transformers computes them (tests/goldens), in float32."""

    def check(self, name):
        golden = {tensor.name: tensor.data for tensor in gguf.GGUFReader(os.path.join(GOLDENS, f"{name}.short.golden.gguf")).tensors}
        tokens = [int(token) for token in golden["tokens"]]
        model = os.path.join(os.path.dirname(running_server.PROGRAM), "..", "goldens", f"{name}.gguf")
        with RunningServer("-m", model, "--embeddings", "-ctk", "f32", "-ctv", "f32") as server:
            def states(count, pooling):
                status, answer = server.request("POST", "/embedding", {"content": tokens[:count], "pooling": pooling, "embd_normalize": -1})
                self.assertEqual(status, 200, answer)
                return numpy.array(answer[0]["embedding"][0])

            # The last of them is behind the final norm.
            for position, state in zip(golden["hidden_positions"], golden["hidden"][:, -1]):
                count = int(position) + 1
                atol = 3e-5 * numpy.abs(state).max()
                numpy.testing.assert_allclose(states(count, "last"), state, rtol=0, atol=atol)
                # What one more token adds to the sum.
                before = (count - 1) * states(count - 1, "mean") if count > 1 else 0
                numpy.testing.assert_allclose(count * states(count, "mean") - before, state, rtol=0, atol=atol)
                status, answer = server.request("POST", "/v1/embeddings", {"input": tokens[:count], "encoding_format": "float", "pooling": "last"})
                numpy.testing.assert_allclose(answer["data"][0]["embedding"], unit(state), rtol=0, atol=3e-5)

    def test_grouped_queries(self):
        self.check("llama-gqa")

    def test_latent_attention_and_experts(self):
        self.check("v3-groups")


class Bundled(unittest.TestCase):
    """Attention of a real model: what its last state is for each beginning of a text, together, is the mean."""

    def test_a_mean_and_company(self):
        with RunningServer("--embeddings", "--temp", "0", "-ub", "64") as server:
            tokens = server.request("POST", "/tokenize", {"content": "The capital of France is Paris, and that of Italy is Rome.", "add_special": True})[1]["tokens"]
            states = [answer["embedding"][0] for answer in server.request("POST", "/embedding", {"content": [tokens[:i + 1] for i in range(len(tokens))], "embd_normalize": -1})[1]]
            mean = {"content": tokens, "embd_normalize": -1, "pooling": "mean"}
            found = server.request("POST", "/embedding", mean)[1][0]["embedding"][0]
            numpy.testing.assert_allclose(found, numpy.mean(states, axis=0), rtol=1e-3, atol=1e-3 * numpy.abs(states).max())
            # Answers beside embeddings are what they are alone, and embeddings too.
            client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
            stream = client.chat.completions.create(model="any", messages=[{"role": "user", "content": COUNT}], stream=True)
            text = ""
            for part in stream:
                text += part.choices[0].delta.content or ""
                again = server.request("POST", "/embedding", mean)[1][0]["embedding"][0]
                numpy.testing.assert_allclose(again, found, rtol=1e-3, atol=1e-3)
            self.assertEqual(text, ANSWER)
            client.close()

    def test_it_is_off_unless_asked_for(self):
        with RunningServer() as server:
            for path, body in (("/v1/embeddings", {"input": "a"}), ("/embedding", {"content": "a"}), ("/api/embed", {"input": "a"})):
                status, answer = server.request("POST", path, body)
                self.assertEqual(status, 501, answer)
                self.assertIn("--embeddings", json.dumps(answer))
                self.assertEqual(server.headers.get("X-Should-Retry"), "false")


if __name__ == "__main__":
    running_server.main()
