#!/usr/bin/env python3
"""Loads a server that speaks the OpenAI API, and says what its clients found.

    bench/server/load.py --url http://127.0.0.1:8080 --clients 16 --requests 1000 --cancel 0.3 --pid $(pidof tessera-server)

Each client sends one request after the other: a chat whose first part is shared by all, then an own part of random length. A share of them
is given up at a random time. Results: tokens a second of all clients, time to the first token, time between tokens, refusals, and with --pid
the processor time of the server's threads that are not of its team, and its anonymous memory over time. One connection a request.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import re
import statistics
import sys
import time
import urllib.parse

WORDS = "one two three four five six seven eight nine ten box key red green blue is the of and count from to in French German".split()


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


class Run:
    def __init__(self, options):
        self.options = options
        url = urllib.parse.urlparse(options.url)
        self.host, self.port, self.prefix = url.hostname, url.port or 80, url.path.rstrip("/")
        self.random = random.Random(options.seed)
        self.shared = " ".join(self.random.choice(WORDS) for _ in range(options.shared))
        self.left = options.requests
        self.first, self.gaps, self.memory = [], [], []
        self.tokens = 0
        self.ends = collections.Counter()

    def body(self):
        o = self.options
        own = " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(*o.own)))
        body = {"model": "any", "messages": [{"role": "user", "content": self.shared + " " + own}], "stream": True, "temperature": 0,
                "max_tokens": self.random.randint(*o.answer)}
        if o.ignore_eos:
            body["ignore_eos"] = True
        return json.dumps(body).encode()

    async def request(self):
        body = self.body()
        reader, writer = await asyncio.open_connection(self.host, self.port)
        key = f"Authorization: Bearer {self.options.key}\r\n" if self.options.key else ""
        writer.write((f"POST {self.prefix}/v1/chat/completions HTTP/1.1\r\nHost: {self.host}\r\nConnection: close\r\n{key}"
                      f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
        start = last = time.monotonic()
        given_up = start + self.random.random() * self.options.patience if self.random.random() < self.options.cancel else None
        try:
            status = (await reader.readline()).split(b" ")[1].decode()
            seen = 0
            while status == "200":
                line = await asyncio.wait_for(reader.readline(), None if given_up is None else max(0.001, given_up - time.monotonic()))
                if not line:
                    break
                if b'"content":"' not in line or b'"content":""' in line:
                    continue
                now = time.monotonic()
                (self.gaps if seen else self.first).append(now - (last if seen else start))
                last = now
                seen += 1
                self.tokens += 1
            self.ends[status] += 1
        except (TimeoutError, asyncio.TimeoutError):
            self.ends["given up"] += 1
        finally:
            writer.close()

    async def client(self):
        while self.left > 0:
            self.left -= 1
            try:
                await self.request()
            except (OSError, IndexError) as error:
                self.ends[type(error).__name__] += 1

    def anonymous(self):
        with open(f"/proc/{self.options.pid}/status") as file:
            text = file.read()
        return sum(int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1)) for name in ("RssAnon", "VmSwap")) / 1024

    def thread_seconds(self):
        """Of the threads with names of their own: those that are not of the team."""
        seconds = collections.Counter()
        for task in os.listdir(f"/proc/{self.options.pid}/task"):
            try:
                with open(f"/proc/{self.options.pid}/task/{task}/stat") as file:
                    text = file.read()
            except OSError:
                continue
            name = text[text.index("(") + 1:text.rindex(")")]
            fields = text[text.rindex(")") + 2:].split()
            seconds[name] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    async def watch(self):
        start = time.monotonic()
        while True:
            self.memory.append((time.monotonic() - start, self.anonymous()))
            await asyncio.sleep(0.5)

    async def all(self):
        watcher = None
        if self.options.pid:
            before = self.thread_seconds()
            watcher = asyncio.create_task(self.watch())
        start = time.monotonic()
        await asyncio.gather(*(self.client() for _ in range(self.options.clients)))
        seconds = time.monotonic() - start
        result = {"clients": self.options.clients, "requests": dict(self.ends), "seconds": round(seconds, 3), "tokens": self.tokens,
                  "tokens_per_second": round(self.tokens / seconds, 2),
                  "first_token_seconds": {"median": round(statistics.median(self.first or [0]), 4), "p95": round(percentile(self.first, 0.95), 4)},
                  "gap_seconds": {"median": round(statistics.median(self.gaps or [0]), 5), "p99": round(percentile(self.gaps, 0.99), 4),
                                  "largest": round(max(self.gaps, default=0), 4)}}
        if watcher:
            watcher.cancel()
            after = self.thread_seconds()
            used = {name: after[name] - before[name] for name in after if name in ("tessera-io", "tessera-worker")}
            result["io_and_workers_us_per_token"] = round(sum(used.values()) / max(self.tokens, 1) * 1e6, 1)
            half = [m for t, m in self.memory if t > self.memory[-1][0] / 2]
            result["anonymous_mib"] = {"start": round(self.memory[0][1], 1), "half": round(half[0], 1), "end": round(self.anonymous(), 1),
                                       "largest": round(max(m for _, m in self.memory), 1)}
        return result


def span(text):
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--key")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--shared", type=int, default=50, help="words that all prompts begin with")
    parser.add_argument("--own", type=span, default=(5, 60), help="words of each prompt's own: N or N-M")
    parser.add_argument("--answer", type=span, default=(16, 64), help="maximum of tokens: N or N-M")
    parser.add_argument("--ignore-eos", action="store_true")
    parser.add_argument("--cancel", type=float, default=0, help="share of requests that are given up")
    parser.add_argument("--patience", type=float, default=0.5, help="seconds until then, at most")
    parser.add_argument("--pid", type=int, help="of the server, on this machine")
    parser.add_argument("--seed", type=int, default=1)
    json.dump(asyncio.run(Run(parser.parse_args()).all()), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
