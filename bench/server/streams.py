"""Streams of llama-server's /completion, which both servers have, and servers of either kind as processes."""

import asyncio
import dataclasses
import json
import os
import re
import socket
import subprocess
import time


@dataclasses.dataclass
class Stream:
    """What came of one request. Times are of time.monotonic."""

    begin: float = 0
    status: int = 0
    times: list = dataclasses.field(default_factory=list)  # of events with text or tokens
    tokens: int = 0  # that the server says it generated
    cached: int = 0
    given_up: bool = False

    @property
    def first(self):
        return self.times[0] - self.begin

    @property
    def gaps(self):
        return [b - a for a, b in zip(self.times, self.times[1:])]


async def stream(port, body, key=None, give_up=None, result=None, pause=0):
    """One request on a connection of its own.

    `give_up`: seconds after which the connection is closed; `result`: a Stream that is filled; `pause`: seconds without reading after the first text.
    """
    sent = json.dumps({"stream": True, "temperature": 0, "ignore_eos": True, "cache_prompt": True, **body}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    result = result or Stream()
    result.begin = time.monotonic()
    writer.write((f"POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{authorization}"
                  f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n").encode() + sent)
    end = None if give_up is None else result.begin + give_up

    async def line():
        return await asyncio.wait_for(reader.readline(), None if end is None else max(0.001, end - time.monotonic()))

    try:
        result.status = int((await line()).split(b" ")[1])
        while result.status == 200 and (text := await line()):
            if not text.startswith(b"data: {"):
                continue
            event = json.loads(text[6:])
            if event.get("stop"):
                result.tokens = event.get("tokens_predicted", 0)
                result.cached = event.get("timings", {}).get("cache_n", 0)
                break
            if "content" in event:
                result.times.append(time.monotonic())
                if len(result.times) == 1:
                    await asyncio.sleep(pause)
    except (TimeoutError, asyncio.TimeoutError):
        result.given_up = True
    finally:
        writer.close()
    return result


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


async def get(port, path, key=None):
    """Status and text of a GET."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{authorization}\r\n".encode())
    text = await reader.read()
    writer.close()
    head, _, rest = text.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), rest.decode()


class Server:
    """A server as a process, used in an `async with`; ready inside.

    `notified`: once it listens, its word to the service manager (sd_notify) is awaited; asking again and again would take processor time
    from loading. llama-server sends none.
    """

    def __init__(self, program, *flags, notified=False):
        self.port = free_port()
        self.notified = notified
        self.command = [str(program), "--host", "127.0.0.1", "--port", str(self.port), *map(str, flags)]

    async def __aenter__(self):
        environment = dict(os.environ)
        manager = None
        if self.notified:
            manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            environment["NOTIFY_SOCKET"] = f"@tessera-figures-{self.port}"
            manager.bind("\0" + environment["NOTIFY_SOCKET"][1:])
            manager.setblocking(False)
        self.begin = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        self.listening = None
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"ended with status {self.process.returncode}: {' '.join(self.command)}")
            try:
                status, _ = await get(self.port, "/health")
                self.listening = self.listening or time.monotonic() - self.begin
                if status == 200 or (manager and await self._word(manager)):
                    return self
            except (OSError, IndexError):
                pass
            await asyncio.sleep(0.002)

    async def _word(self, manager):
        """Whether the server says within a second that it is ready."""
        try:
            return b"READY=1" in await asyncio.wait_for(asyncio.get_running_loop().sock_recv(manager, 4096), 1)
        except (TimeoutError, asyncio.TimeoutError):
            return False

    async def __aexit__(self, *_):
        self.process.terminate()
        await asyncio.to_thread(self.process.wait)

    def anonymous_mib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            text = file.read()
        return sum(int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1)) for name in ("RssAnon", "VmSwap")) / 1024

    def other_thread_seconds(self):
        """Processor time of threads that compute no step: those of I/O and of requests."""
        nanoseconds = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                with open(f"/proc/{self.process.pid}/task/{task}/comm") as name, open(f"/proc/{self.process.pid}/task/{task}/schedstat") as file:
                    if name.read().startswith(("tessera-io", "tessera-worker")):
                        nanoseconds += int(file.read().split()[0])
            except OSError:
                continue
        return nanoseconds * 1e-9
