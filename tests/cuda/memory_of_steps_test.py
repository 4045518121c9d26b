#!/usr/bin/env python3
"""memory_of_steps_test.py TOOL BUILD MODEL CARD...: on each card alone, the steps of a model take no byte that loading has not taken: neither
memory nor, since drivers load a kernel's code when it is first asked for, code or local memory. And loading takes what is planned, and code."""
import json
import subprocess
import sys

tool, build, model, *cards = sys.argv[1:]
MOST_CODE = 64 << 20
failed = False
for card in cards:
    words = [tool, "--build", build, "--gpu", card, "--", build + "/bin/measure_steps", "--steps", "2", "--rows", "8", "--sequences", "2", "-c", "512", model]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{card}: {done.stderr}")
        failed = True
        continue
    memory = [line for line in map(json.loads, done.stdout.splitlines()) if line["topic"] == "memory"]
    for line in memory:
        used = line["free_opened"] - line["free_loaded"]
        print(f"{card}: planned {line['planned']}, used {used} bytes")
        if not 0 < line["planned"] < used < line["planned"] + MOST_CODE:
            print(f"{card}: expected more than is planned, for code, and at most {MOST_CODE} more")
            failed = True
        grown = [line["free_loaded"] - line[when] for when in ("free_warm", "free_stepped")]
        if any(grown):
            print(f"{card}: {grown[0]} bytes more after the first steps, {grown[1]} after all")
            failed = True
    failed |= len(memory) != 1
sys.exit(failed)
