"""compare_test.py COMPARE.PY: its sweeps run by turns, with programs in the place of both sides that note when they run."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMPARE = sys.argv.pop(1)

# Prints rows like a sweep and feeds between them until it has been stopped and let go on: it fails where nobody stops it. Each
# 5 ms in which it runs it notes its name in the file `log`.
SWEEP = r'''#!{python}
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(__file__).resolve().parent
name = pathlib.Path(__file__).name
plan = json.loads((folder / "plan.json").read_text())
if "--version" in sys.argv:
    sys.exit(print("version: 1"))
(folder / (name + ".pid")).write_text(str(os.getpid()))
log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
let_go = False
def on_continue(*_):
    global let_go
    let_go = True
signal.signal(signal.SIGCONT, on_continue)
def run(until):
    for _ in range(4000):
        if until():
            return
        os.write(log, (name + "\n").encode())
        time.sleep(0.005)
    sys.exit("was not stopped")
stride, context = (int(sys.argv[sys.argv.index(flag) + 1]) for flag in ("--sweep-stride", "-c"))
for depth in range(0, context, 512 * stride):
    end = time.monotonic() + 0.03
    run(lambda: time.monotonic() >= end)
    if plan.get("dies") == [name, depth]:
        sys.exit("no more memory for " + name)
    let_go = False
    print("a line that is no row")
    if plan.get("lacks") != [name, depth]:
        print(json.dumps({{"n_kv": depth, "speed_pp": 100.0, "speed_tg": plan["tokens"][name]}}), flush=True)
        if not plan.get("apart"):
            run(lambda: let_go)
'''

# Notes its run, too; its readings are those of the plan, in turn, the last one again and again.
MEMORY_SPEED = r'''#!{python}
import json, pathlib
folder = pathlib.Path(__file__).resolve().parent
with open(folder / "log", "a") as log:
    log.write("memory\n")
count = (folder / "log").read_text().split().count("memory")
readings = json.loads((folder / "plan.json").read_text())["readings"]
print(f"{{readings[min(count, len(readings)) - 1]}} GB/s with 2 threads")
'''

OURS, PEER = "tessera", "llama-sweep-bench"


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in (OURS, PEER, "llama-cli", "memory_speed"):
            path = self.folder / name
            path.write_text((MEMORY_SPEED if name == "memory_speed" else SWEEP).format(python=sys.executable))
            path.chmod(0o755)
        (self.folder / "model.gguf").write_bytes(b"GGUF")

    def start(self, *flags, **plan):
        plan = {"tokens": {OURS: 30.0, PEER: 20.0}, "readings": [50.0], **plan}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        command = [sys.executable, COMPARE, self.folder / "model.gguf", "--peer", self.folder, "--ours", self.folder, "--threads", "2", "--measure", "speed",
                   "--out", self.folder / "results", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_to_end(self, *flags, **plan):
        self.start(*flags, **plan)
        self.out, self.err = self.process.communicate(timeout=120)
        return self.process.returncode

    def turns(self):
        """Who ran after whom."""
        return [name for name, _ in itertools.groupby((self.folder / "log").read_text().split())]

    def check_gone(self, name):
        pid = int((self.folder / (name + ".pid")).read_text())
        with self.assertRaises(ProcessLookupError, msg=f"{name} is still there"):
            os.kill(pid, 0)

    def runs(self):
        return json.loads((self.folder / "results.json").read_text())["runs"]

    def test_one_side_is_stopped_while_the_other_runs(self):
        self.assertEqual(self.run_to_end("--depths", "0,2048", "--rounds", "2"), 0, self.err)
        one_round = lambda a, b: ["memory"] + [a, "memory", b, "memory"] * 3
        self.assertEqual(self.turns(), one_round(OURS, PEER) + one_round(PEER, OURS)[1:])
        depths = [run["row"] for run in self.runs() if run["side"] == "tessera" and run["row"].startswith("generation")]
        self.assertEqual(depths, [f"generation 128 at {depth}, f16 cache" for depth in (0, 1024, 2048)] * 2)
        self.assertTrue(all(run["memory_gb_s"] == [50.0, 50.0] and run["peak_bytes"] > 0 for run in self.runs()))
        self.assertIn("| generation 128 at 2048, f16 cache, tokens/s | 30.00 | 20.00 | 1.50 | 50, 50 |", self.out)
        self.assertNotIn("generation 128 at 1024", self.out)
        self.assertIn("| f16, 50 to 50 GB/s | 1024 | 2 | 30.00 | 20.00 | 1.50 |", self.out)

    def test_only_pairs_with_equal_memory_count(self):
        # Depth 0 in fast memory, 1,024 while it changes, 2,048 in slow memory.
        self.assertEqual(self.run_to_end("--depths", "0,2048", "--rounds", "1", readings=[58, 57, 59, 58, 37, 36, 38]), 0, self.err)
        bands = [line for line in self.out.splitlines() if "GB/s |" in line and line.startswith("| f16")]
        self.assertEqual(bands, ["| f16, 58 to 58 GB/s | 0 | 1 | 30.00 | 20.00 | 1.50 |", "| f16, 37 to 37 GB/s | 2048 | 1 | 30.00 | 20.00 | 1.50 |"])
        ours = [run["memory_gb_s"] for run in self.runs() if run["side"] == "tessera" and run["row"].startswith("generation")]
        self.assertEqual(ours, [[58, 57], [59, 58], [37, 36]])

    def test_without_memory_speed(self):
        (self.folder / "memory_speed").unlink()
        self.assertEqual(self.run_to_end("--depths", "0,1024", "--rounds", "1"), 0, self.err)
        self.assertIn("lacks memory_speed", self.out)
        self.assertIn("| generation 128 at 0, f16 cache, tokens/s | 30.00 | 20.00 | 1.50 |  |", self.out)

    def test_apart(self):
        for flags in (["--depths", "0,2048", "--apart"], ["--depths", "0,512"]):
            (self.folder / "log").unlink(missing_ok=True)
            self.assertEqual(self.run_to_end(*flags, "--rounds", "1", apart=True), 0, self.err)
            self.assertEqual(self.turns(), ["memory", OURS, "memory", PEER, "memory"])
            self.assertIn("one after the other", self.out)

    def test_a_side_that_dies_ends_both(self):
        for name, other in ((PEER, OURS), (OURS, PEER)):
            self.assertEqual(self.run_to_end("--depths", "0,2048", "--rounds", "1", dies=[name, 1024]), 1)
            self.assertIn("failed with exit code 1:", self.err)
            self.assertIn("no more memory for " + name, self.err)
            self.check_gone(other)

    def test_a_side_without_a_row(self):
        self.assertEqual(self.run_to_end("--depths", "0,2048", "--rounds", "1", lacks=[PEER, 2048]), 1)
        self.assertIn("ik_llama.cpp gave no figures at depth 2048", self.err)

    def test_a_memory_speed_that_fails(self):
        (self.folder / "memory_speed").write_text("#!/bin/sh\necho no memory; exit 3\n")
        self.assertEqual(self.run_to_end("--depths", "0,2048", "--rounds", "1"), 1)
        self.assertIn("memory_speed failed with exit code 3:\nno memory", self.err)

    def test_ending_it_ends_a_stopped_side(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            for name in (OURS, PEER):
                (self.folder / (name + ".pid")).unlink(missing_ok=True)
            self.start("--depths", "0,65536", "--rounds", "1")
            limit = time.monotonic() + 60
            while not (self.folder / (PEER + ".pid")).exists() and time.monotonic() < limit:
                time.sleep(0.01)
            self.process.send_signal(number)
            self.process.communicate(timeout=60)
            self.assertNotEqual(self.process.returncode, 0)
            self.check_gone(OURS)
            self.check_gone(PEER)


if __name__ == "__main__":
    unittest.main()
