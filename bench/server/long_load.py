#!/usr/bin/env python3
"""Loads a server for a long time with requests of all kinds, and draws memory, latency and pages of the cache against time.

    bench/server/long_load.py --server build/release/bin/tessera-server --seconds 3600 --plot hour.svg [-- FLAGS]

Requests arrive at random times (--rate each second on average, whatever the server has finished), from three keys: short and long prompts, of which
two thirds begin alike, short and long answers; 30 % are given up, a tenth is not valid, and some clients stop reading for seconds. /health is asked all
the time. --plot needs matplotlib, which the tests do not install; --points FILE keeps what is drawn as JSON.
"""

import argparse
import asyncio
import collections
import json
import random
import re
import time

from streams import Server, get, stream

KEYS = ("red", "green", "blue")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


class Load:
    def __init__(self, options):
        self.o = options
        self.random = random.Random(options.seed)
        self.shared = [self.tokens(n) for n in (60, 300, 700)]
        self.ends = collections.Counter()
        self.first, self.gaps, self.health = [], [], []  # since the last point
        self.points = []

    def tokens(self, count):
        return [self.random.randrange(300, 480) for _ in range(count)]

    def prompt(self):
        start = self.random.choice(self.shared) if self.random.random() < 0.67 else []
        return start + self.tokens(int(self.random.lognormvariate(4, 1)) % 900 + 1)

    async def request(self, port):
        r = self.random
        body = {"prompt": self.prompt(), "n_predict": int(r.lognormvariate(3.3, 1)) % 400 + 1}
        if r.random() < 0.1:
            body |= r.choice([{"n_predict": "many"}, {"prompt": []}, {"temperature": 1e999}, {"prompt": self.tokens(5000)}, {"stop": [""] * 5000}])
        give_up = r.expovariate(4) if r.random() < 0.3 else None
        try:
            result = await stream(port, body, key=r.choice(KEYS), give_up=give_up, pause=2 if r.random() < 0.02 else 0)
        except OSError as error:
            self.ends[type(error).__name__] += 1
            return
        self.ends["given up" if result.given_up else str(result.status)] += 1
        if result.times:
            self.first.append(result.first)
            self.gaps += result.gaps

    async def ask_health(self, port):
        while True:
            begin = time.monotonic()
            await get(port, "/health")
            self.health.append(time.monotonic() - begin)
            await asyncio.sleep(0.1)

    async def watch(self, server, begin):
        while True:
            await asyncio.sleep(self.o.interval)
            text = (await get(server.port, "/metrics", KEYS[0]))[1]
            metrics = {name: float(value) for name, value in re.findall(r"^tessera_(\w+) ([-+.\deE]+)$", text, re.M)}
            self.points.append({"seconds": time.monotonic() - begin, "anonymous_mib": server.anonymous_mib(), "metrics": metrics, "ends": dict(self.ends),
                                "first_p50": percentile(self.first, 0.5), "first_p95": percentile(self.first, 0.95),
                                "gap_p99": percentile(self.gaps, 0.99), "gap_largest": max(self.gaps, default=None),
                                "health_p99": percentile(self.health, 0.99)})
            self.first, self.gaps, self.health = [], [], []

    async def run(self):
        async with Server(self.o.server, "--api-key", ",".join(KEYS), "--metrics", *self.o.flags) as server:
            begin = time.monotonic()
            others = [asyncio.create_task(self.watch(server, begin)), asyncio.create_task(self.ask_health(server.port))]
            under_way = set()
            while time.monotonic() - begin < self.o.seconds:
                await asyncio.sleep(self.random.expovariate(self.o.rate))
                if server.process.poll() is not None:
                    raise RuntimeError(f"the server has ended with status {server.process.returncode}")
                task = asyncio.create_task(self.request(server.port))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            await asyncio.gather(*under_way)
            await asyncio.sleep(self.o.interval)
            for other in others:
                other.cancel()
        self.points[-1]["status"] = server.process.returncode


def draw(points, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    minutes = [p["seconds"] / 60 for p in points]
    figure, axes = plt.subplots(4, 1, figsize=(8, 9), sharex=True)

    def line(axis, label, value, scale=1):
        axis.plot(minutes, [None if value(p) is None else value(p) * scale for p in points], label=label, linewidth=0.8)

    line(axes[0], "anonymous memory, MiB", lambda p: p["anonymous_mib"])
    axes[0].set_ylim(bottom=0)
    line(axes[1], "first token, median, ms", lambda p: p["first_p50"], 1e3)
    line(axes[1], "first token, 95 %, ms", lambda p: p["first_p95"], 1e3)
    line(axes[1], "between tokens, 99 %, ms", lambda p: p["gap_p99"], 1e3)
    line(axes[1], "/health, 99 %, ms", lambda p: p["health_p99"], 1e3)
    axes[1].set_yscale("log")
    line(axes[2], "pages in use", lambda p: p["metrics"].get("cache_pages", 0) - p["metrics"].get("cache_free_pages", 0))
    line(axes[2], "of them prefixes", lambda p: p["metrics"].get("cache_prefix_pages"))
    line(axes[3], "requests running", lambda p: p["metrics"].get("requests_running"))
    line(axes[3], "requests waiting", lambda p: p["metrics"].get("requests_waiting"))
    axes[3].set_xlabel("minutes")
    for axis in axes:
        axis.legend(loc="upper left", fontsize=7)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=4)
    parser.add_argument("--interval", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot")
    parser.add_argument("--points")
    parser.add_argument("flags", nargs="*", help="of the server, after --")
    options = parser.parse_args()
    load = Load(options)
    try:
        asyncio.run(load.run())
    finally:
        if options.points:
            with open(options.points, "w") as file:
                json.dump(load.points, file)
    if options.plot:
        draw(load.points, options.plot)
    first, last = load.points[min(6, len(load.points) - 1)], load.points[-1]
    print(json.dumps({"ends": last["ends"], "anonymous_mib": [first["anonymous_mib"], last["anonymous_mib"]], "metrics": last["metrics"],
                      "status": last["status"]}))


if __name__ == "__main__":
    main()
