#!/usr/bin/env python3
"""Records what llama.cpp makes of SmolLM2-135M-Instruct (q4_1), for tests/server/test_real_model.py.

    record_smollm2.py MODEL OUTPUT      with PyPI's xllamacpp installed

Of some texts the tokens; of 2,000 tokens that are sampled after a prompt each one's log probability."""
import json
import sys
import urllib.request

import xllamacpp

TEXTS = ["Hello, world!", " leading and  double  spaces", "line\nbreaks\r\n\ttabs", "1234567890 3.14 1,000", "caf\u00e9 na\u00efve \u00fcber", "\u65e5\u672c\u8a9e\u306e\u6587",
         "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467", "def f(x):\n    return x ** 2  # don't", "<|im_start|>user\nHi<|im_end|>\n", "", "\u0915\u094d\u0937 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "IT'S we'll I've"]
PROMPT = "The history of the steam engine begins long before the first railway. "
COUNT = 2000


def main():
    model, output = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)

    def ask(path, **body):
        request = urllib.request.Request(server.listening_address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=3600) as response:
            return json.load(response)

    tokens = [ask("/tokenize", content=text, add_special=False, parse_special=True)["tokens"] for text in TEXTS]
    prompt = ask("/tokenize", content=PROMPT, add_special=True)["tokens"]
    answer = ask("/completion", prompt=prompt, n_predict=COUNT, n_probs=1, temperature=0.8, top_k=0, top_p=1.0, min_p=0.0, seed=7, ignore_eos=True, cache_prompt=False)
    steps = [[one["id"], round(one["logprob"], 4)] for one in answer["completion_probabilities"]]
    assert len(steps) == COUNT, len(steps)
    with open(output, "w", encoding="utf-8") as file:
        json.dump({"source": "llama.cpp by xllamacpp " + "2026.10.11549", "texts": TEXTS, "tokens": tokens, "prompt": prompt, "steps": steps}, file, separators=(",", ":"), ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
