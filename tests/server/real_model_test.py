"""SmolLM2-135M-Instruct, which tools/setup --tests fetches: tokens and log probabilities of llama.cpp, a tool call, and a conversation up to the full
context. Recorded by testing/goldens/record_smollm2.py.

    real_model_test.py SERVER MODEL RECORDED"""

import json
import os
import statistics
import sys
import unittest

import running_server
from running_server import CHAT, RunningServer, chat

if not os.path.exists(sys.argv[2]):
    print(f"skipped: there is no {sys.argv[2]}; tools/setup --tests fetches it")
    sys.exit(77)
RECORDED = json.load(open(sys.argv.pop(3)))
MODEL = sys.argv.pop(2)
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Tells the weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}}}


class RealModel(unittest.TestCase):
    def test_tokens_are_those_of_llama_cpp(self):
        with RunningServer("-m", MODEL, "-c", "512") as server:
            for text, tokens in zip(RECORDED["texts"], RECORDED["tokens"]):
                found = server.request("POST", "/tokenize", {"content": text, "add_special": False, "parse_special": True})[1]["tokens"]
                self.assertEqual(found, tokens, repr(text))

    def test_log_probabilities_are_those_of_llama_cpp(self):
        steps = RECORDED["steps"]
        tokens = RECORDED["prompt"] + [step[0] for step in steps]
        with RunningServer("-m", MODEL, "-c", "2560", "--request-context", "2560") as server:
            status, answer = server.request("POST", "/v1/completions", {"prompt": tokens, "echo": True, "logprobs": 1, "max_tokens": 0, "temperature": 0})
        self.assertEqual(status, 200, answer)
        found = answer["choices"][0]["logprobs"]["token_logprobs"][len(RECORDED["prompt"]):]
        self.assertEqual(len(found), len(steps))
        differences = [abs(a - step[1]) for a, step in zip(found, steps)]
        # Both round activations to 8 bits, each in blocks of its own: q4_1 of these weights differs from bf16 by 0.2 on average.
        self.assertLess(statistics.mean(differences), 0.04)
        self.assertLess(statistics.quantiles(differences, n=100)[98], 0.25)
        # What they say of a text as a whole: its mean log probability, which is perplexity's logarithm.
        self.assertAlmostEqual(statistics.mean(found), statistics.mean(step[1] for step in steps), delta=0.01)

    def test_a_tool_is_called(self):
        with RunningServer("-m", MODEL, "-c", "1024", "--chat-template", "qwen2.5") as server:
            status, answer = server.request("POST", CHAT, chat("What is the weather in Bern?", tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, temperature=0, max_tokens=200))
            self.assertEqual(status, 200, answer)
            choice = answer["choices"][0]
            self.assertEqual(choice["finish_reason"], "tool_calls", choice)
            call = choice["message"]["tool_calls"][0]
            self.assertEqual(call["function"]["name"], "weather")
            self.assertEqual(list(json.loads(call["function"]["arguments"])), ["city"])
            # And the conversation goes on with its result.
            messages = [{"role": "user", "content": "What is the weather in Bern?"}, choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "17 degrees, sunny"}]
            status, answer = server.request("POST", CHAT, {"messages": messages, "tools": [WEATHER], "temperature": 0, "max_tokens": 40})
            self.assertEqual(status, 200, answer)

    def test_a_conversation_fills_its_context(self):
        with RunningServer("-m", MODEL, "-c", "768") as server:
            messages, turns = [], 0
            while True:
                messages.append({"role": "user", "content": "Tell me more about rivers, please."})
                status, answer = server.request("POST", CHAT, {"messages": messages, "temperature": 0.7, "seed": turns, "max_tokens": 90})
                if status != 200:
                    break
                turns += 1
                self.assertTrue(answer["choices"][0]["message"]["content"].strip())
                messages.append(answer["choices"][0]["message"])
                self.assertLess(turns, 60)
            self.assertGreater(turns, 4)
            self.assertEqual(status, 400, answer)
            self.assertRegex(answer["error"]["message"], r"the prompt has \d+ tokens and the context holds 768")
            # One that fits is served at once, and again.
            for _ in range(2):
                status, answer = server.request("POST", CHAT, {"messages": messages[:1], "max_tokens": 700, "temperature": 0})
                self.assertEqual(status, 200, answer)


if __name__ == "__main__":
    running_server.main()
