#!/usr/bin/env python3
"""Measures Tessera beside ik_llama.cpp on one model file, in turn, and prints one table.

    bench/peers/compare.py MODEL.gguf --peer IK_LLAMA/build/bin [--ours build/release/bin] [--threads 2] [--depths 0,4096]
        [--cache f16,q8_0] [--rounds 3] [--measure speed,start,answer,memory] [--apart] [--out results]

speed   tokens/s of a 512-token prompt and of 128 generated tokens after each depth, for each cache type. Both sides take
        random tokens: tessera sweep and llama-sweep-bench. Both are loaded, and each is stopped after a depth until the other has
        done that depth too; there are samples every 1,024 tokens (or as the depths allow) that the table leaves out. With --apart
        one runs after the other. Where the folder of --ours has memory_speed (-DTSR_BENCH=ON), it measures memory before and after
        each turn; a second table then has only pairs during which memory was equally fast: on a shared host it often is not.
start   seconds from the start of the process to the first token after a 16-token prompt, the file being in the page cache.
        A virtual machine that has to ask its host for memory takes ten seconds for that, whoever asks: look at all samples.
answer  the same until the 64th token after that prompt: whatever a side put off until after the first one is in it.
memory  peak resident bytes (the kernel's VmHWM) of a prompt longer than a step at -c 4096 -ub 512, over file plus cache.

Never do two run at once; the sides take turns, and figures are medians over the rounds. A ratio above 1 says that Tessera is
better. --out NAME writes NAME.md and NAME.json, the latter with every command line and every sample. Exit code 1: a run failed.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import turns  # noqa: E402
from turns import finished  # noqa: E402

PROMPT, GENERATE, CONTEXT, STEP, ANSWER = 512, 128, 4096, 512, 64
SAME = 1.1  # readings of the memory's speed of which the highest is at most so many times the lowest
SENTENCE = "The quick brown fox jumps over the lazy dog, and then it sleeps in the sun for a day. "
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def common_flags(args, flags):
    mla = ["-mla", args.mla] if args.mla else []
    return ["-t", str(args.threads), *mla, "-fa", "on", "-ub", str(STEP), *flags]


def gap(depths):
    """Steps from one depth to the next, as far as they have it in common; 0 for depth 0 alone."""
    return math.gcd(*depths) // STEP


def sweep(command, cache, args):
    """The command line of a sweep of either side."""
    steps = gap(args.depths)
    # A sweep measures at multiples of the stride; between those it only feeds the prompt. A side is stopped while it feeds, so two
    # steps at least; and as few as there can be, so that what the sides do at a depth is close in time.
    stride = steps if args.apart else next((n for n in range(2, steps + 1) if steps % n == 0), steps)
    return [*command, "-n", str(GENERATE), "-ctk", cache, "-ctv", cache, "-c", str(max(args.depths) + STEP), "--sweep-stride", str(max(1, stride)),
            "--output-format", "jsonl"]


class Ours:
    title = "tessera"

    def __init__(self, args):
        self.args, self.bin = args, args.ours
        source = pathlib.Path(__file__).resolve().parent
        commit = subprocess.run(["git", "-C", source, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
        self.version = f"{finished([str(self.bin / 'tessera'), '--version']).output.strip()} ({commit or 'commit unknown'})"
        self.common = common_flags(args, args.ours_flags)

    def sweep(self, cache):
        return sweep([str(self.bin / "tessera"), "sweep", "-m", self.args.model, *self.common], cache, self.args)

    def generate(self, prompt_file, tokens=1):
        run = finished([str(self.bin / "tessera"), "run", "-m", self.args.model, *self.common, "-c", str(CONTEXT), "-n", str(tokens), "--ignore-eos",
                        "--raw", "-f", prompt_file], mark=b"prompt: ")
        size, unit = run.find(r"cache ([\d.]+) (\w+)").groups()
        return run, int(run.find(r"prompt: ([\d,]+) token").group(1).replace(",", "")), float(size) * UNITS[unit]

    def count(self, text):
        command = [str(self.bin / "tessera"), "tokenize", "-m", self.args.model, "--ids", "-p", text]
        return len(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.split())


class Peer:
    title = "ik_llama.cpp"

    def __init__(self, args):
        self.args, self.bin = args, args.peer
        self.version = finished([str(self.bin / "llama-sweep-bench"), "--version"]).find(r"version: (.+)").group(1)
        self.common = common_flags(args, args.peer_flags)

    def sweep(self, cache):
        return sweep([str(self.bin / "llama-sweep-bench"), "-m", self.args.model, *self.common, "-b", str(STEP)], cache, self.args)

    def generate(self, prompt_file, tokens=1):
        run = finished([str(self.bin / "llama-cli"), "-m", self.args.model, *self.common, "-c", str(CONTEXT), "-n", str(tokens), "--ignore-eos",
                        "--no-warmup", "-f", prompt_file], mark=b"prompt eval time")
        return run, int(run.find(r"prompt eval time = .*?/ +(\d+) tokens").group(1)), float(run.find(r"KV self size += +([\d.]+) MiB").group(1)) * 2**20


class Table:
    """Samples by row and side, in the order in which rows appear."""

    def __init__(self):
        self.samples, self.pairs, self.runs = {}, {}, []

    def add(self, row, side, value, run, memory=None, listed=True):
        if listed:
            self.samples.setdefault(row, {}).setdefault(side.title, []).append((value, memory))
        self.runs.append({"row": row, "side": side.title, "value": value, "memory_gb_s": memory, "command": run.command, "peak_bytes": run.peak})

    def add_pair(self, cache, depth, values, memory):
        """Generation of both sides at a depth, one right after the other, and all readings of the memory's speed around them."""
        if max(memory) <= SAME * min(memory):
            self.pairs.setdefault((cache, depth), []).append((statistics.mean(memory), *values))

    def median(self, row, side):
        return statistics.median(value for value, _ in self.samples[row][side.title])

    def memory(self, row, *sides):
        samples = [[statistics.mean(memory) for _, memory in self.samples[row][side.title] if memory] for side in sides]
        return ", ".join(f"{statistics.median(speeds):.0f}" for speeds in samples) if all(samples) else ""

    def markdown(self, ours, peer):
        lines = [f"| work | {ours.title} | {peer.title} | ratio | memory, GB/s |", "| --- | --- | --- | --- | --- |"]
        for row, (unit, higher) in self.rows(ours, peer):
            a, b = self.median(row, ours), self.median(row, peer)
            if unit == "over":
                lines.append(f"| {row} | +{100 * (a - 1):.1f} % | +{100 * (b - 1):.1f} % | | |")
            else:
                lines.append(f"| {row}, {unit} | {a:.2f} | {b:.2f} | {a / b if higher else b / a:.2f} | {self.memory(row, ours, peer)} |")
        return "\n".join([*lines, *self.best_of_caches(ours, peer), *self.same_memory(ours, peer)]) + "\n"

    def rows(self, ours, peer):
        for row in self.samples:
            yield row, ("s", False) if row.startswith("start") else ("over", False) if row.startswith("peak") else ("tokens/s", True)

    def best_of_caches(self, ours, peer):
        works = {}
        for row in self.samples:
            if row.endswith(" cache"):
                works.setdefault(row.rsplit(", ", 1)[0], []).append(row)
        for work, rows in works.items():
            if len(rows) > 1:
                a, b = (max(self.median(row, side) for row in rows) for side in (ours, peer))
                yield f"| {work}, best cache of each side, tokens/s | {a:.2f} | {b:.2f} | {a / b:.2f} | |"

    def bands(self):
        """Lowest and highest of readings that lie within SAME of the lowest one."""
        bands = []
        for speed in sorted(memory for pairs in self.pairs.values() for memory, *_ in pairs):
            if bands and speed <= SAME * bands[-1][0]:
                bands[-1][1] = speed
            else:
                bands.append([speed, speed])
        return bands

    def same_memory(self, ours, peer):
        """Lines of pairs during which the memory's speed was the same; of each cache, from the fastest memory to the slowest."""
        if not self.pairs:
            return
        yield f"\nGeneration, tokens/s, of pairs whose memory readings are within {100 * (SAME - 1):.0f} % of each other (medians):\n"
        yield f"| cache, memory | depth | pairs | {ours.title} | {peer.title} | ratio |\n| --- | --- | --- | --- | --- | --- |"
        for cache in dict.fromkeys(cache for cache, _ in self.pairs):
            for low, high in reversed(self.bands()):
                for depth in sorted(depth for other, depth in self.pairs if other == cache):
                    pairs = [(a, b) for memory, a, b in self.pairs[cache, depth] if low <= memory <= high]
                    if pairs:
                        a, b, ratio = (statistics.median(values) for values in zip(*((a, b, a / b) for a, b in pairs)))
                        yield f"| {cache}, {low:.0f} to {high:.0f} GB/s | {depth} | {len(pairs)} | {a:.2f} | {b:.2f} | {ratio:.2f} |"


def measure_speed(table, sides, args, memory_speed):
    for cache in args.cache:
        results = turns.rows_in_turn([side.sweep(cache) for side in sides], memory_speed or (lambda: None), args.apart)
        depths = {}
        for side, (run, rows) in zip(sides, results):
            measured = {row["n_kv"] for row, _ in rows}
            if missing := [depth for depth in args.depths if depth not in measured]:
                sys.exit(f"{side.title} gave no figures at depth {missing[0]}:\n{run.output[-2000:]}")
            for row, memory in rows:
                depth, memory = row["n_kv"], memory if memory_speed else None
                listed = depth in args.depths
                table.add(f"prompt {PROMPT} at {depth}, {cache} cache", side, row["speed_pp"], run, memory, listed)
                table.add(f"generation {GENERATE} at {depth}, {cache} cache", side, row["speed_tg"], run, memory, listed)
                depths.setdefault(depth, {})[side.title] = (row["speed_tg"], memory)
        for depth, pair in depths.items() if memory_speed else ():
            if len(pair) == 2:
                (a, memory_a), (b, memory_b) = pair[Ours.title], pair[Peer.title]
                table.add_pair(cache, depth, (a, b), (*memory_a, *memory_b))


def measure_start(table, sides, prompt_file, tokens):
    for side in sides:
        run, prompt, _ = side.generate(prompt_file, tokens)
        table.add(f"start to {'first token' if tokens == 1 else f'token {tokens}'}, prompt of {prompt}", side, run.marked, run)


def measure_memory(table, sides, args, prompt_file):
    for side in sides:
        run, tokens, cache = side.generate(prompt_file)
        if tokens <= STEP:
            sys.exit(f"{side.title}: expected a prompt of more than {STEP} tokens, found {tokens}")
        table.add(f"peak resident memory at -c {CONTEXT} -ub {STEP}, over file plus cache", side, run.peak / (os.path.getsize(args.model) + cache), run)


def keep_in_page_cache(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(2**24):
            pass


def sixteen_tokens(ours):
    text = next((SENTENCE[:end] for end in range(1, len(SENTENCE)) if ours.count(SENTENCE[:end]) == 16), None)
    return text or sys.exit("no beginning of the sentence has 16 tokens in this vocabulary")


def machine():
    name = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{name.group(1) if name else 'unknown CPU'}, {os.cpu_count()} threads, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"


def parse():
    numbers = lambda text: sorted({int(item) for item in text.split(",")})
    words = lambda text: text.split(",")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--peer", type=pathlib.Path, required=True, help="folder with llama-sweep-bench and, for all but speed, llama-cli")
    parser.add_argument("--ours", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build/release/bin")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--depths", type=numbers, default=[0, 4096], help=f"multiples of {STEP}")
    parser.add_argument("--cache", type=words, default=["f16"])
    parser.add_argument("--mla", default="3", help="'' for models without latent attention")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", type=words, default=["speed", "start", "answer", "memory"])
    parser.add_argument("--peer-flags", type=str.split, default=["-rtr"], help="default: -rtr")
    parser.add_argument("--ours-flags", type=str.split, default=[])
    parser.add_argument("--apart", action="store_true", help="one sweep after the other: for models of which memory holds only one")
    parser.add_argument("--out")
    args = parser.parse_args()
    args.model, args.peer, args.ours = os.path.abspath(args.model), args.peer.resolve(), args.ours.resolve()
    if any(depth % STEP for depth in args.depths):
        parser.error(f"--depths: the peer measures at multiples of {STEP}, found {args.depths}")
    if "speed" in args.measure and not args.apart and gap(args.depths) == 1:
        print(f"--depths: {STEP} tokens apart, nothing is fed between them: one sweep runs after the other (--apart)", file=sys.stderr)
        args.apart = True
    if unknown := set(args.measure) - {"speed", "start", "answer", "memory"}:
        parser.error(f"--measure: expected speed, start, answer or memory, found {', '.join(unknown)}")
    return args


def main():
    # As an exception, so that no stopped process is left behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    args = parse()
    ours, peer = Ours(args), Peer(args)
    memory_speed = turns.memory_probe(args.ours, args.threads)
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        short, long = os.path.join(folder, "short.txt"), os.path.join(folder, "long.txt")
        pathlib.Path(short).write_text(sixteen_tokens(ours) if {"start", "answer"} & set(args.measure) else "")
        pathlib.Path(long).write_text(SENTENCE * 40)
        for round_number in range(args.rounds):
            print(f"round {round_number + 1} of {args.rounds}", file=sys.stderr, flush=True)
            # Who begins takes turns, too: a machine that warms up or slows down favours neither.
            sides = [ours, peer] if round_number % 2 == 0 else [peer, ours]
            keep_in_page_cache(args.model)
            for tokens in [1] * ("start" in args.measure) + [ANSWER] * ("answer" in args.measure):
                measure_start(table, sides, short, tokens)
            if "speed" in args.measure:
                measure_speed(table, sides, args, memory_speed)
            if "memory" in args.measure and round_number == 0:
                measure_memory(table, sides, args, long)
    heading = (f"{os.path.basename(args.model)}, {os.path.getsize(args.model) / 2**30:.2f} GiB; {args.threads} threads, -mla {args.mla}; "
               f"medians of {args.rounds}; {machine()}; {datetime.date.today()}\n\n"
               f"- {' '.join([ours.title, ours.version, *args.ours_flags])}\n- {' '.join([peer.title, peer.version, *args.peer_flags])}\n\n")
    if "speed" in args.measure:
        heading += ("Sweeps one after the other" if args.apart else "Sweeps by turns, a row each")
        heading += "; memory speed: medians of ours, the peer's.\n\n" if memory_speed else f"; no memory speed, for {args.ours} lacks memory_speed.\n\n"
    text = heading + table.markdown(ours, peer)
    print(text)
    if args.out:
        pathlib.Path(args.out + ".md").write_text(text)
        pathlib.Path(args.out + ".json").write_text(json.dumps({"heading": heading, "runs": table.runs}, indent=1))


if __name__ == "__main__":
    main()
