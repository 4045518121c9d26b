#!/usr/bin/env python3
"""Measures what the clients of a server feel, in turn with llama-server where it has the same.

    bench/server/figures.py [ROW ...] --ours build/release/bin [--peer llama-server] [--model FILE] [--rounds 3]

Rows (default: all):
    clients    sum of tokens/s at 1, 4, 16 and 64 clients, and of the engine with as many prompts without HTTP
    prefix     time to the first token of a prompt of 2,000 tokens of which 1,900 are cached, against cold
    gap        longest gap of a running stream while a prompt of 4,000 tokens is computed, and how long that takes alone
    prompt     a prompt's time beside 4 streams, against alone
    cancel     from the end of a connection in the middle of a prompt until the server is idle, beside a micro-batch
    threads    processor time of the threads of I/O and requests for each token, at 1 and 64 streams
    health     99th percentile of /health during prompts
    fair       95th percentile of the time to the first token of a light client beside a flood from another key
    memory     anonymous memory and swap after --requests requests of which 30 % are given up
    start      until the server listens; first token of the model, against `tessera run`
    forms      sum of tokens/s of sampled answers at each number of clients, free, held to JSON schemas, and to a grammar (--grammar FILE: to that one)
    drafts     the same of one text that is to be repeated, with each of --drafts and without drafts

Results are printed as a line of JSON for each row. Both servers run on this machine, one at a time; the clients take some of its time.
"""

import argparse
import asyncio
import json
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

from streams import Server, Stream, get, stream

# Nested, so that a state of it has many that it may return to. Texts of these forms seldom end before so many tokens are generated.
STATEMENTS = r"""root ::= statement+ "."
statement ::= name " = " sum ";\n" | "if (" sum ") {\n" statement+ "}\n" | name "(" (sum ("," " " sum)*)? ");\n"
sum ::= product ((" + " | " - ") product)*
product ::= value ((" * " | " / ") value)*
value ::= name | [0-9]+ | "-" value | name "(" sum ")" | "(" sum ")"
name ::= [a-zA-Z_] [a-zA-Z_0-9]*
"""
OBJECT = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
          "required": ["name", "age", "tags"], "additionalProperties": False}
FORMS = {"free": {}, "strings": {"json_schema": {"type": "array", "items": {"type": "string", "minLength": 200}, "minItems": 1000}},
         "objects": {"json_schema": {"type": "array", "items": OBJECT, "minItems": 1000}}, "grammar": {"grammar": STATEMENTS}}


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


class Figures:
    def __init__(self, options):
        self.o = options
        self.random = random.Random(1)
        self.model = ["-m", options.model] if options.model else []

    def words(self, count):
        """Ordinary tokens, other ones each time."""
        return [self.random.randrange(300, 480) for _ in range(count)]

    def ours(self, *flags, **how):
        return Server(self.o.ours / "tessera-server", *self.model, "-t", self.o.threads, *flags, **how)

    def sides(self, *flags):
        """Name and a maker of a server of each side."""
        yield "tessera", lambda: self.ours(*flags)
        if self.o.peer:
            file = self.o.model or self.o.ours.resolve().parents[2] / "models/demo-tessera-10m.gguf"
            yield "peer", lambda: Server(self.o.peer, "-m", file, "-t", self.o.threads, *self.o.peer_flags.split(), *flags)

    async def in_turn(self, measure, *flags):
        """Medians over rounds of what measure(server) gives, a number, for each side."""
        found = {}
        for _ in range(self.o.rounds):
            for name, make in self.sides(*flags):
                async with make() as server:
                    await stream(server.port, {"prompt": self.words(20), "n_predict": 8})
                    found.setdefault(name, []).append(await measure(server))
        result = {name: statistics.median(values) for name, values in found.items()} | {"rounds": found}
        if self.o.peer:
            result["ratio"] = result["tessera"] / result["peer"]
        return result

    async def clients(self):
        result = {}
        answer = self.o.answer
        for count in self.o.clients:
            async def measure(server):
                async def client():
                    return [await stream(server.port, {"prompt": self.words(32), "n_predict": answer}) for _ in range(self.o.each)]
                begin = time.monotonic()
                streams = [s for several in await asyncio.gather(*(client() for _ in range(count))) for s in several]
                seconds = time.monotonic() - begin
                wrong = [s for s in streams if s.status != 200 or s.tokens != answer]
                if wrong:
                    raise RuntimeError(f"{len(wrong)} of {len(streams)} requests did not get {answer} tokens: {wrong[0]}")
                return len(streams) * answer / seconds
            room = count * (32 + answer + 64)
            result[str(count)] = await self.in_turn(measure, "-c", room, "-np", count)
            engine = statistics.median(self.engine(count, room) for _ in range(self.o.rounds))
            result[str(count)] |= {"engine": engine, "of_engine": result[str(count)]["tessera"] / engine}
        return result

    async def rate(self, server, count, body):
        """Tokens a second of so many clients, of what all of them got."""
        begin = time.monotonic()
        streams = await asyncio.gather(*(stream(server.port, {"n_predict": self.o.answer, **body()}) for _ in range(count)))
        if any(s.status != 200 for s in streams):
            raise RuntimeError(f"status {[s.status for s in streams if s.status != 200][0]}")
        return sum(s.tokens for s in streams) / (time.monotonic() - begin)

    async def forms(self):
        forms = FORMS if not self.o.grammar else FORMS | {"grammar": {"grammar": self.o.grammar.read_text()}}
        # Sampled, as random weights' likeliest tokens soon repeat one, and rows of one token share experts. Where a text of the form ends, so does the
        # answer.
        sampled = {"temperature": 1, "top_k": 40, "top_p": 1, "min_p": 0}
        forms = {name: {**sampled, **form, "ignore_eos": not form} for name, form in forms.items()}
        result = {}
        for count in self.o.clients:
            for side, make in self.sides("-c", count * (64 + self.o.answer + 64), "-np", count):
                rates = {name: [] for name in forms}
                async with make() as server:
                    for name, form in forms.items():  # what is compiled once, and code and memory that are cold
                        await self.rate(server, 1, lambda: {"prompt": self.words(32), **form, "n_predict": 8})
                    for _ in range(self.o.rounds):
                        for name, form in forms.items():
                            rates[name].append(await self.rate(server, count, lambda: {"prompt": self.words(32), **form}))
                medians = {name: statistics.median(values) for name, values in rates.items()}
                of_free = {name: value / medians["free"] for name, value in medians.items() if name != "free"}
                result.setdefault(str(count), {})[side] = {"tokens_per_second": medians, "of_free": of_free, "rounds": rates}
        return result

    async def drafts(self):
        """A prompt that repeats a text of 64 tokens, as an edit of a file does; the answer of random weights repeats as it likes."""
        result = {}
        for count in self.o.clients:
            for side, _ in self.sides():
                rates = {}
                for _ in range(self.o.rounds):
                    for flags in ["", *(self.o.drafts if side == "tessera" else self.o.peer_drafts)]:
                        room = ["-c", count * (256 + self.o.answer + 64), "-np", count]
                        async with dict(self.sides(*room, *flags.split()))[side]() as server:
                            await self.rate(server, 1, lambda: {"prompt": self.words(32), "n_predict": 8})
                            rates.setdefault(flags or "none", []).append(await self.rate(server, count, lambda: {"prompt": self.words(64) * 3}))
                medians = {flags: statistics.median(values) for flags, values in rates.items()}
                result.setdefault(str(count), {})[side] = {"tokens_per_second": medians, "rounds": rates}
        return result

    def engine(self, count, room):
        """The same by `tessera run` with all prompts at once, from what it says of its own time."""
        prompts = [" ".join(self.random.choice(("red", "green", "blue", "key", "box")) for _ in range(24)) for _ in range(count * self.o.each if count > 1 else 1)]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(prompts))
            file.flush()
            command = [self.o.ours / "tessera", "run", *self.model, "-t", str(self.o.threads), "-f", file.name, "-np", str(count), "-c", str(room),
                       "-ub", str(192 + count), "-n", str(self.o.answer), "--ignore-eos", "--temp", "0", "-rtr", "on"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = sum(float(s) for s in re.findall(r"^(?:prompt|generation): [\d,]+ tokens in ([\d.]+) s", done.stderr, re.M))
        return len(prompts) * self.o.answer / seconds

    async def prefix(self):
        async def measure(server):
            cold, shared = [], []
            for _ in range(3):
                prompt = self.words(2000)
                cold.append((await stream(server.port, {"prompt": prompt, "n_predict": 2})).first)
                shared.append((await stream(server.port, {"prompt": prompt[:1900] + self.words(100), "n_predict": 2})).first)
            return statistics.median(shared) / statistics.median(cold)
        return await self.in_turn(measure, "-c", 8192, "-np", 1)

    async def gap(self):
        entering = []

        async def measure(server):
            seen = Stream()
            running = asyncio.create_task(stream(server.port, {"prompt": self.words(32), "n_predict": 4000}, result=seen))
            while len(seen.times) < 20:
                await asyncio.sleep(0.01)
            begin = time.monotonic()
            entering.append((await stream(server.port, {"prompt": self.words(self.o.entering), "n_predict": 1})).first)
            while not running.done() and seen.times[-1] < begin + entering[-1]:
                await asyncio.sleep(0.01)
            running.cancel()
            return max(b - a for a, b in zip(seen.times, seen.times[1:]) if b > begin)
        return await self.in_turn(measure, "-c", 2 * 6144, "-np", 2) | {"entering": entering}

    async def prompt(self):
        async def alone_and_beside(server):
            alone = (await stream(server.port, {"prompt": self.words(self.o.prompt), "n_predict": 1})).first
            running = [asyncio.create_task(stream(server.port, {"prompt": self.words(32), "n_predict": 2000}, give_up=4 * alone + 2))
                       for _ in range(4)]
            await asyncio.sleep(min(1, alone / 2))
            beside = (await stream(server.port, {"prompt": self.words(self.o.prompt), "n_predict": 1})).first
            await asyncio.gather(*running)
            return beside / alone
        return await self.in_turn(alone_and_beside, "-c", 5 * 4096, "-np", 5)

    async def cancel(self):
        async with self.ours("-c", 8192, "--metrics") as server:
            async def value(name):
                return float(re.search(rf"^tessera_{name} (\S+)$", (await get(server.port, "/metrics"))[1], re.M).group(1))
            length = 4000
            whole = (await stream(server.port, {"prompt": self.words(length), "n_predict": 1})).first
            step = whole / (length / 192)
            times = []
            for _ in range(self.o.rounds * 3):
                await stream(server.port, {"prompt": self.words(length), "n_predict": 1}, give_up=whole * self.random.uniform(0.2, 0.8))
                begin = time.monotonic()
                while await value("requests_running") > 0:
                    await asyncio.sleep(0.0005)
                times.append(time.monotonic() - begin)
            return {"seconds": {"median": statistics.median(times), "largest": max(times)}, "step_of_192_rows": step}

    async def threads(self):
        result = {}
        for count in (1, 64):
            async with self.ours("-c", count * 384, "-np", count) as server:
                before = server.other_thread_seconds()
                streams = await asyncio.gather(*(stream(server.port, {"prompt": self.words(32), "n_predict": 256}) for _ in range(count)))
                result[str(count)] = (server.other_thread_seconds() - before) / sum(s.tokens for s in streams) * 1e6
        return {"microseconds_per_token": result}

    async def health(self):
        async def measure(server):
            times = []
            prompt = asyncio.create_task(stream(server.port, {"prompt": self.words(4000), "n_predict": 64}))
            while not prompt.done():
                begin = time.monotonic()
                await get(server.port, "/health")
                times.append(time.monotonic() - begin)
                await asyncio.sleep(0.005)
            return percentile(times, 0.99)
        return await self.in_turn(measure, "-c", 8192, "-np", 2)

    async def fair(self):
        """Of two clients each has half of the machine as its fair share, so that its first token takes twice as long as alone."""
        async def light(port):
            times = []
            for _ in range(40):
                times.append((await stream(port, {"prompt": self.words(100), "n_predict": 8}, key="light")).first)
                await asyncio.sleep(self.random.uniform(0, 0.1))
            return percentile(times, 0.95)

        async with self.ours("-c", 8192, "-np", 8, "--api-key", "light,flood") as server:
            async def flood():
                while True:
                    await stream(server.port, {"prompt": self.words(200), "n_predict": 64}, key="flood")
            alone = await light(server.port)
            others = [asyncio.create_task(flood()) for _ in range(64)]
            await asyncio.sleep(2)
            beside = await light(server.port)
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        return {"alone": alone, "beside_a_flood_of_64": beside, "of_fair_share": beside / (2 * alone)}

    async def memory(self):
        async with self.ours("-c", 4096, "-np", 16, "--metrics") as server:
            shared, left, points = self.words(50), self.o.requests, []

            async def client():
                nonlocal left
                while left > 0:
                    left -= 1
                    give_up = self.random.uniform(0, 0.3) if self.random.random() < 0.3 else None
                    body = {"prompt": shared + self.words(self.random.randint(5, 200)), "n_predict": self.random.randint(4, 48)}
                    await stream(server.port, body, give_up=give_up)
                    done = self.o.requests - left
                    if done % max(1, self.o.requests // 20) == 0 and (not points or points[-1][0] < done):
                        points.append([done, server.anonymous_mib()])
            await asyncio.gather(*(client() for _ in range(16)))
            return {"requests_and_mib": points, "growth_after_a_tenth_mib": points[-1][1] - points[1][1]}

    async def start(self):
        listening, first, run = [], [], []
        prompt = "Count from 1 to 10 in French."
        for _ in range(self.o.rounds):
            begin = time.monotonic()
            async with self.ours(notified=True) as server:
                listening.append(server.listening)
                await stream(server.port, {"prompt": prompt, "n_predict": 1})
                first.append(time.monotonic() - begin)
            begin = time.monotonic()
            process = subprocess.Popen([self.o.ours / "tessera", "run", *self.model, "-t", str(self.o.threads), "-p", prompt, "-n", "1"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            process.stdout.read(1)
            run.append(time.monotonic() - begin)
            process.communicate()
        return {"listening": statistics.median(listening), "first_token": statistics.median(first), "run": statistics.median(run),
                "ratio": statistics.median(first) / statistics.median(run)}


ROWS = ("clients", "prefix", "gap", "prompt", "cancel", "threads", "health", "fair", "memory", "start", "forms", "drafts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--ours", type=pathlib.Path, required=True, help="folder of tessera and tessera-server")
    parser.add_argument("--peer", help="program llama-server")
    parser.add_argument("--peer-flags", default="", help="more flags of it, in one word")
    parser.add_argument("--model", help="default: the bundled one")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=lambda s: [int(n) for n in s.split(",")], default=[1, 4, 16, 64])
    parser.add_argument("--answer", type=int, default=64, help="tokens of each answer (clients)")
    parser.add_argument("--each", type=int, default=2, help="requests of each client (clients)")
    parser.add_argument("--prompt", type=int, default=2000, help="tokens (prompt)")
    parser.add_argument("--entering", type=int, default=4000, help="tokens (gap)")
    parser.add_argument("--requests", type=int, default=10000, help="(memory)")
    parser.add_argument("--grammar", type=pathlib.Path, help="file in GBNF (forms)")
    parser.add_argument("--drafts", nargs="+", default=["--spec-type ngram"], help="flags of a server with drafts, in one word each (drafts)")
    parser.add_argument("--peer-drafts", nargs="+", default=["--spec-type ngram-simple"], help="those of the peer's")
    options = parser.parse_args()
    unknown = set(options.rows) - set(ROWS)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}: {', '.join(ROWS)}")
    figures = Figures(options)
    for row in options.rows or ROWS:
        print(json.dumps({row: rounded(asyncio.run(getattr(figures, row)()))}), flush=True)


if __name__ == "__main__":
    main()
