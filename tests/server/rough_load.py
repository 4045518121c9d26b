#!/usr/bin/env python3
"""Everything at once that a server has to bear, for builds with sanitizers; by hand:

    tests/server/rough_load.py build/tsan/bin/tessera-server --seconds 300

Clients with keys and limits ask for chats and texts, give up, read slowly or not at all, send bodies that take all memory for bodies, ask for
answers that take all memory for answers, send a few bytes at a time, nothing at all, thousands of headers, and what is not HTTP. Meanwhile keys come and go (SIGHUP), the access log is moved away, and at the
end SIGTERM comes while all of that goes on. Fails if the server does not end with status 0, if a limit was never reached, if its log is no JSON or
has a key or a prompt in it, or if a sanitizer has spoken.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

KEYS = {"red-key": "running=2 waiting=4", "green-key": "tokens-per-minute=3000", "blue-key": "running=none waiting=none", "yellow-key": ""}
MIB = 1 << 20
SECRET = "confidential"
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


class Load:
    def __init__(self, options, folder):
        self.o = options
        self.folder = folder
        self.random = random.Random(options.seed)
        self.ends = collections.Counter()
        self.largest = collections.Counter()
        self.stopping = False
        self.write_keys(True)

    def write_keys(self, yellow, more=""):
        lines = [f"{key} {limits}" for key, limits in KEYS.items() if yellow or key != "yellow-key"]
        path = os.path.join(self.folder, "keys")
        with open(path + ".new", "w") as file:
            file.write("\n".join(lines) + "\n" + more)
        os.replace(path + ".new", path)

    async def start(self):
        self.errors = open(os.path.join(self.folder, "stderr"), "w+")
        self.process = subprocess.Popen([self.o.server, "--port", "0", "--api-key-file", os.path.join(self.folder, "keys"), "--client-limits",
                                         "running=3,waiting=8", "--access-log", os.path.join(self.folder, "log"), "--held-limit", "8", "--body-limit", "4",
                                         "--queue", "12", "--parallel", "6", "-c", "4096", "--chat-template", "deepseek-v3.1", *self.o.flags], stderr=self.errors)
        end = time.monotonic() + 300
        while time.monotonic() < end:
            text = self.stderr()
            if self.process.poll() is not None:
                raise RuntimeError("the server has ended: " + text)
            if "ready after" in text:
                self.port = int(re.search(r"listening at http://[^ ]*:(\d+)", text).group(1))
                return
            await asyncio.sleep(0.1)
        raise RuntimeError("the server is not ready: " + self.stderr())

    def stderr(self):
        with open(self.errors.name) as file:
            return file.read()

    async def connect(self, small=False):
        connection = socket.socket()
        connection.setblocking(False)
        if small:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        return await asyncio.open_connection(sock=connection, limit=64 * MIB)

    def head(self, method, path, length=0, key=None, more=""):
        key = key or self.random.choice(list(KEYS))
        return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n").encode()

    async def ask(self, method, path, body=None, key=None, give_up=None, wait=0, small=False):
        """Status and what was read; the connection ends after `give_up` seconds, and nothing is read for `wait` after the first bytes."""
        sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        reader, writer = await self.connect(small)
        try:
            async def talk():
                writer.write(self.head(method, path, len(sent), key) + sent)
                first = await reader.readline()
                if wait:
                    await asyncio.sleep(wait)
                return first + await reader.read()

            answer = await asyncio.wait_for(talk(), give_up)
            status = answer.split(b" ")[1].decode() if answer.startswith(b"HTTP") else "closed"
            if b'"error":' in answer:
                code = re.search(rb'"code":"?(\w+)', answer)
                status += " " + (code.group(1).decode() if code else "")
            return status, answer
        except (asyncio.TimeoutError, TimeoutError):
            return "given up", b""
        finally:
            writer.close()

    async def chat(self):
        r = self.random
        body = {"messages": [{"role": "system", "content": SECRET}, {"role": "user", "content": f"{SECRET} {r.random()} " * r.choice([1, 1, 20])}],
                "max_tokens": int(r.lognormvariate(2.5, 1)) + 1, "stream": r.random() < 0.6, "temperature": r.choice([0, 1]), "return_progress": True}
        if r.random() < 0.3:
            body |= r.choice([{"n": 3}, {"logprobs": True, "top_logprobs": 5}, {"tools": TOOLS}, {"logit_bias": {"5": -100}}, {"stop": ["a", "the"]},
                              {"stream_options": {"include_usage": True}}, {"chat_template_kwargs": {"thinking": True}, "tools": TOOLS},
                              {"max_tokens": "many"}, {"tool_choice": "required"}, {"temperature": -1}])
        if r.random() < 0.1:
            body["messages"].append({"role": "assistant", "content": "{"})
            body |= {"continue_final_message": True, "tools": TOOLS}
        slow = r.random() < 0.1
        return await self.ask("POST", "/v1/chat/completions", body, give_up=r.expovariate(1) if r.random() < 0.3 else None, wait=2 if slow else 0, small=slow)

    async def text(self):
        r = self.random
        body = {"prompt": [r.randrange(300, 480) for _ in range(int(r.lognormvariate(4, 1)) % 900 + 1)], "n_predict": 30, "ignore_eos": True,
                "stream": r.random() < 0.7, "n_probs": r.choice([0, 0, 5])}
        return await self.ask("POST", "/completion", body, give_up=r.expovariate(1) if r.random() < 0.5 else None)

    async def look(self):
        path = self.random.choice(["/health", "/metrics", "/slots", "/props", "/v1/models", "/tessera/machine", "/", "/none"])
        status, answer = await self.ask("GET", path)
        if path == "/metrics" and status == "200":
            for name in ("http_body_bytes", "http_unread_bytes", "requests_waiting"):
                value = float(re.search(rf"^tessera_{name} (\S+)$", answer.decode(), re.M).group(1))
                self.largest[name] = max(self.largest[name], value)
        return status, answer

    async def wrong(self):
        r = self.random
        reader, writer = await self.connect()
        try:
            head = self.head("POST", "/v1/chat/completions", 5)
            data = r.choice([r.randbytes(r.randrange(3000)), head.replace(b"HTTP/1.1", b"HTTP/9"), b"x" * 70000, head + b"{\xff\xfe}", head + b"[" * 5,
                             head[:-2] + b"X-A: b\r\n" * r.choice([500, 20000]) + b"\r\n{}   ", head.replace(b"Bearer ", b"Bearer no-"), head.replace(b"localhost", b"evil.example"), head[:r.randrange(len(head))]])
            writer.write(data)
            if r.random() < 0.5:
                return "closed half-way", b""
            answer = await asyncio.wait_for(reader.read(), 2)
            return "wrong " + (answer.split(b" ")[1].decode() if answer.startswith(b"HTTP") else "closed"), answer
        except (asyncio.TimeoutError, TimeoutError):
            return "wrong, waited", b""
        finally:
            writer.close()

    async def half_open(self):
        """Says nothing, or half a header, until the server has had enough."""
        reader, writer = await self.connect()
        try:
            writer.write(self.random.choice([b"", b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc"]))
            answer = await asyncio.wait_for(reader.read(), 60)
            return "half-open " + (answer.split(b" ")[1].decode() if answer.startswith(b"HTTP") else "closed"), answer
        except (asyncio.TimeoutError, TimeoutError):
            return "half-open, waited", b""
        finally:
            writer.close()

    async def slow_sender(self):
        """A request that is in order, sent a few bytes at a time."""
        reader, writer = await self.connect()
        try:
            body = json.dumps({"prompt": "a", "n_predict": 2}).encode()
            data = self.head("POST", "/completion", len(body), "blue-key") + body
            while data:
                count = self.random.randrange(1, 9)
                writer.write(data[:count])
                data = data[count:]
                await asyncio.sleep(0.02)
            answer = await asyncio.wait_for(reader.read(), 60)
            return "slow " + (answer.split(b" ")[1].decode() if answer.startswith(b"HTTP") else "closed"), answer
        except (asyncio.TimeoutError, TimeoutError):
            return "slow, waited", b""
        finally:
            writer.close()

    async def large_body(self):
        """Most of a body that takes half of the memory for all."""
        reader, writer = await self.connect()
        try:
            writer.write(self.head("POST", "/tokenize", 4 * MIB - 100))
            for _ in range(15):
                writer.write(b" " * (MIB // 4))
                await writer.drain()
                await asyncio.sleep(self.random.random() / 4)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 5)
            return "body " + (answer.split(b" ")[1].decode() if answer.startswith(b"HTTP") else "closed"), answer
        except (asyncio.TimeoutError, TimeoutError):
            return "body, waited", b""
        finally:
            writer.close()

    async def unread_answer(self):
        if not hasattr(self, "many_tokens"):
            self.many_tokens = b""
            text = (await self.ask("POST", "/tokenize", {"content": " diciotto", "parse_special": False}, "blue-key"))[1]
            ids = json.loads(text[text.index(b"\r\n\r\n") + 4:])["tokens"]
            self.many_tokens = json.dumps({"tokens": ids * (5 * MIB // 9)}, separators=(",", ":")).encode()
        status, answer = await self.ask("POST", "/detokenize", self.many_tokens[:4 * MIB], wait=2, small=True)
        return "unread " + status, answer

    async def one(self, kind):
        try:
            status, _ = await kind()
        except (ConnectionError, OSError) as error:
            status = type(error).__name__
        self.ends[f"{kind.__name__}: {status}"] += 1

    async def disturb(self):
        yellow, count = True, 0
        while not self.stopping:
            await asyncio.sleep(1)
            count += 1
            yellow = not yellow
            self.write_keys(yellow, "" if count % 5 else "broken-key speed=9\n")
            if count % 3 == 0:
                os.rename(os.path.join(self.folder, "log"), os.path.join(self.folder, f"log.{count}"))
            self.process.send_signal(signal.SIGHUP)

    async def client(self, kind, pause):
        while not self.stopping:
            await self.one(kind)
            await asyncio.sleep(self.random.expovariate(1 / pause))

    async def run(self):
        await self.start()
        clients = [asyncio.create_task(self.disturb())]
        for kind, count, pause in ((self.chat, 14, 0.2), (self.text, 8, 0.2), (self.look, 2, 0.1), (self.wrong, 2, 0.1), (self.large_body, 4, 0.1),
                                   (self.unread_answer, 3, 1), (self.half_open, 4, 0.1), (self.slow_sender, 2, 0.1)):
            clients += [asyncio.create_task(self.client(kind, pause)) for _ in range(count)]
        end = time.monotonic() + self.o.seconds
        while time.monotonic() < end and self.process.poll() is None:
            await asyncio.sleep(1)
        print(f"the end begins; anonymous memory {self.anonymous_mib():.0f} MiB" if self.process.poll() is None else "the server has ended by itself")
        self.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(1)
        self.stopping = True
        done, pending = await asyncio.wait(clients, timeout=180)
        for client in pending:
            client.cancel()
        await asyncio.to_thread(self.process.wait, 300)
        await asyncio.gather(*clients, return_exceptions=True)
        for client in done:
            client.result()

    def anonymous_mib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"^RssAnon:\s+(\d+)", file.read(), re.M).group(1)) / 1024

    def check(self):
        faults = []
        lines = 0
        for name in os.listdir(self.folder):
            if not name.startswith("log"):
                continue
            with open(os.path.join(self.folder, name)) as file:
                text = file.read()
            faults += [f"{name} contains {word}" for word in (SECRET, *KEYS) if word in text]
            lines += sum(bool(json.loads(line)) for line in text.splitlines())
        errors = self.stderr()
        faults += [f"the messages contain {word}" for word in (SECRET, *KEYS) if word in errors]
        if re.search("Sanitizer|runtime error", errors):
            faults.append("a sanitizer has spoken:\n" + errors[:20000])
        if self.process.returncode != 0:
            faults.append(f"the server ended with status {self.process.returncode}:\n{errors[-5000:]}")
        for expected in ("body 503", "unread 503", "429 rate_limit_exceeded", "429 queue_full", "401", "400", "431", "half-open", "slow 200"):
            if not any(expected in end for end in self.ends):
                faults.append(f"nothing ended with {expected}")
        print(json.dumps({"ends": dict(sorted(self.ends.items())), "largest": self.largest, "log_lines": lines, "status": self.process.returncode}, indent=1))
        return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("flags", nargs="*", help="of the server, after --")
    with tempfile.TemporaryDirectory() as folder:
        load = Load(parser.parse_args(), folder)
        asyncio.run(load.run())
        faults = load.check()
    for fault in faults:
        print("FAULT:", fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
