#!/usr/bin/env python3
"""Memory of the server under each flood, with the latency of /health and of another key's short chat beside it; a table in Markdown:

    bench/server/floods.py build/release/bin/tessera-server [--seconds 8]

Floods come from 127.0.1.1 with a key of their own, and are bounded in time, bytes and connections.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import re
import resource
import socket
import sys
import tempfile
import threading
import time

for tests in ("server", "structure"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / tests))
import running_server  # noqa: E402
from hostile_forms import HOSTILE_FORMS  # noqa: E402
from running_server import CHAT, RunningServer, chat  # noqa: E402

MIB = 1 << 20
KEY = b"Authorization: Bearer flood\r\n"


def post(path, body=b"", more=b"", length=None):
    return (b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % path + KEY + more
            + (b"Content-Length: %d\r\n" % (len(body) if length is None else length) if more == b"" else b"") + b"\r\n" + body)


class Flood:
    """Sends from several threads until it is told to stop."""

    def __init__(self, server, seconds):
        self.server = server
        self.end = time.monotonic() + seconds
        self.connections = []
        self.sent = 0

    def connect(self):
        connection = socket.socket()
        connection.settimeout(1)
        connection.bind(("127.0.1.1", 0))
        connection.connect(("127.0.0.1", self.server.port))
        self.connections.append(connection)
        return connection

    def running(self):
        return time.monotonic() < self.end

    def endless(self, head, pattern):
        """`head`, then `pattern` for ever; from the beginning where the server ends it."""
        block = pattern * (65536 // len(pattern) + 1)
        while self.running():
            with contextlib.suppress(OSError):
                connection = self.connect()
                connection.sendall(head)
                while self.running() and self.sent < 1024 * MIB:
                    connection.sendall(block)
                    self.sent += len(block)
            time.sleep(0.01)

    def held(self, data, count):
        """Connections that send `data` and stay."""
        while self.running() and len(self.connections) < count:
            with contextlib.suppress(OSError):
                self.connect().sendall(data)
                self.sent += len(data)
        while self.running():
            time.sleep(0.1)

    def asked(self, *several):
        """One request after another."""
        for data in itertools.takewhile(lambda _: self.running(), itertools.cycle(several)):
            with contextlib.suppress(OSError):
                connection = self.connect()
                connection.settimeout(max(self.end - time.monotonic(), 0.1))
                connection.sendall(data)
                self.sent += len(data)
                connection.recv(65536)

    def close(self):
        for connection in self.connections:
            connection.close()


CHUNKED = b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def answers(**fields):
    return post(CHAT.encode(), json.dumps(chat(max_tokens=1000, stream=True, ignore_eos=True, **fields)).encode())


FLOODS = {
    "none": lambda flood: None,
    "trailers of chunks, endless": lambda flood: flood.endless(CHUNKED + b"0\r\n", b"X-Trailer: yyyyyyyyyyyyyyyyyyyyy\r\n"),
    "an extension of a chunk, endless": lambda flood: flood.endless(CHUNKED + b"1;", b"x" * 4096),
    "1,000 headers that do not end, 60 KB each in 4-byte fields": lambda flood: flood.held(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 15000, 1000),
    "6 bodies of 64 MiB that do not end": lambda flood: flood.held(post(b"/tokenize", b" " * (52 * MIB), length=64 * MIB), 6),
    "62 MiB of one letter, a chat": lambda flood: flood.asked(post(CHAT.encode(), json.dumps(chat("a" * (62 * MIB))).encode())),
    "62 MiB of one letter, /tokenize": lambda flood: flood.asked(post(b"/tokenize", json.dumps({"content": "a" * (62 * MIB)}).encode())),
    "60 MiB of empty lists in JSON": lambda flood: flood.asked(post(b"/v1/completions", b'{"prompt":[' + b"[]," * (20 * MIB) + b"0]}")),
    "3 chats with `n: 128`": lambda flood: flood.held(answers(n=128), 3),
    "forms of an answer without end": lambda flood: flood.asked(*[post(CHAT.encode(), json.dumps(chat(max_tokens=20, **form)).encode()) for form in HOSTILE_FORMS]),
    "1,500 connections that are silent": lambda flood: flood.held(b"", 1500),
    "1,500 connections with bodies that stop": lambda flood: flood.held(post(b"/tokenize", b"{", length=5000), 1500),
    "1,500 connections whose answers wait": lambda flood: flood.held(answers(), 1500),
}


def family(pid):
    """The process and all below it."""
    children = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
                children.setdefault(int(parent), []).append(int(folder.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def resident(server):
    """MiB of memory that is the server's own, or that of processes of it."""
    kib = 0
    for pid in family(server.process.pid):
        with contextlib.suppress(OSError):
            found = re.search(r"^RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
            kib += int(found.group(1)) if found else 0
    return kib / 1024


class Asking:
    """Asks again and again from 127.0.0.1, and keeps how long answers took."""

    def __init__(self, flood, ask):
        self.times, self.failed = [], 0
        self.thread = threading.Thread(target=self.run, args=(flood, ask))
        self.thread.start()

    def run(self, flood, ask):
        while flood.running():
            begin = time.monotonic()
            try:
                ok = ask() == 200
            except OSError:
                ok = False
            self.times.append(time.monotonic() - begin)
            self.failed += not ok
            time.sleep(0.05)

    def text(self):
        self.thread.join()
        times = sorted(self.times)
        return f"{times[len(times) // 2] * 1000:.0f} / {times[-1] * 1000:.0f} | {self.failed} of {len(times)}"


def measure(name, flood_with, seconds, keys):
    with RunningServer("--api-key-file", keys, "-c", "16384") as server:
        key = {"Authorization": "Bearer other"}
        server.request("POST", CHAT, chat(max_tokens=1), key)
        before = resident(server)
        flood = Flood(server, seconds)
        threads = [threading.Thread(target=flood_with, args=(flood,))]
        threads[0].start()
        health = Asking(flood, lambda: server.request("GET", "/health")[0])
        other = Asking(flood, lambda: server.request("POST", CHAT, chat(max_tokens=1), key)[0])
        peak = before
        while flood.running():
            peak = max(peak, resident(server))
            time.sleep(0.02)
        for thread in threads:
            thread.join()
        row = f"| {name} | {flood.sent / MIB:.0f} | {peak - before:.0f} | "
        asked = f"{health.text()} | {other.text()} |"
        flood.close()
        time.sleep(3)
        print(row + f"{resident(server) - before:.0f} | " + asked, flush=True)
        server.process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only", default="", help="floods that have this in their names")
    options = parser.parse_args()
    running_server.PROGRAM = os.path.abspath(options.server)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 16384), most))
    print("| flood | MiB sent | MiB more at most | 3 s after it | /health: ms, median / most | failed | another key: ms | failed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys")
        pathlib.Path(keys).write_text("flood\nother\n")
        for name, flood_with in FLOODS.items():
            if options.only in name:
                measure(name, flood_with, options.seconds, keys)


if __name__ == "__main__":
    main()
