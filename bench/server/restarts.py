#!/usr/bin/env python3
"""How long a prompt takes that was cached before a restart: restarts.py PROGRAM MODEL [--tokens N] [--runs N] [-- FLAGS OF THE SERVER].

Each run takes prompts of its own: one that is not cached, in a server that has computed another before; the same again, from
memory; and the same after a restart, from files."""

import argparse
import os
import random
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/server"))
import running_server
from running_server import RunningServer


def ask(server, seed, tokens):
    """Seconds to the first token, and how many tokens of the prompt were cached."""
    generator = random.Random(seed)
    prompt = [generator.randrange(1000, 2000) for _ in range(tokens)]
    start = time.monotonic()
    status, answer = server.request("POST", "/completion", {"prompt": prompt, "n_predict": 1, "temperature": 0})
    assert status == 200, answer
    return time.monotonic() - start, answer["timings"]["cache_n"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("flags", nargs="*")
    given = parser.parse_args()
    running_server.PROGRAM = os.path.abspath(given.program)
    with tempfile.TemporaryDirectory() as folder:
        flags = ["-m", given.model, "-c", str(4 * given.tokens), "-np", "2", "--cache-dir", folder, *given.flags]
        for run in range(given.runs):
            with RunningServer(*flags) as server:
                ask(server, 1000 + run, given.tokens)
                cold, _ = ask(server, run, given.tokens)
                memory, _ = ask(server, run, given.tokens)
            with RunningServer(*flags) as server:
                restored, cached = ask(server, run, given.tokens)
                read = server.metric("kept_read_bytes_total")
            print(f"cold {cold:.3f} s; again {memory:.3f} s; after a restart {restored:.3f} s, {restored / cold:.4f} of cold, {cached} tokens of {read / 1e6:.1f} MB",
                  flush=True)


main()
