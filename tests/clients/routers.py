"""Routers of others over three replicas, started by the command that docs/replicas.md has."""

import json
import shlex
import signal
import socket
import subprocess
import urllib.error
import urllib.request

from checks import ANSWER, QUESTION, equal, feature, main
from replicas import Replicas, ask_many, block_of
from running_server import wait_for


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Router:
    def __init__(self, name, servers):
        self.port = free_port()
        command = block_of(name).replace("--host 0.0.0.0", "--host 127.0.0.1").replace("--port 8000", f"--port {self.port}")
        for i, server in enumerate(servers, 1):
            command = command.replace(f"10.0.0.1{i}:8080", f"127.0.0.1:{server.port}")
        # Both have a port for their own metrics, which may be taken.
        self.command = [*shlex.split(command), "--prometheus-port", str(free_port())]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.ready, "the router is not ready")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ready(self):
        assert self.process.poll() is None, "the router has ended"
        try:
            return self.ask("/v1/completions", {"prompt": "a", "max_tokens": 1})[0] == 200
        except OSError:
            return False

    def ask(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps({"model": "any", **body}).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


def check(name, package, more):
    """`more`: what else is asked, paths and bodies."""
    messages = [{"role": "user", "content": QUESTION}]

    @feature("chat")
    def chat(_):
        with Replicas(1, "--temp", "0") as replicas, Router(name, [*replicas.servers] * 3) as router:
            status, text = router.ask("/v1/chat/completions", {"messages": messages})
            equal(status, 200)
            equal(json.loads(text)["choices"][0]["message"]["content"], ANSWER)

    @feature("stream")
    def stream(_):
        with Replicas(1, "--temp", "0") as replicas, Router(name, [*replicas.servers] * 3) as router:
            lines = router.ask("/v1/chat/completions", {"messages": messages, "stream": True})[1].decode().split("\n\n")
            parts = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
            equal("".join(part["choices"][0]["delta"].get("content") or "" for part in parts if part["choices"]), ANSWER)

    @feature("other APIs")
    def others(_):
        with Replicas(1, "--temp", "0") as replicas, Router(name, [*replicas.servers] * 3) as router:
            for path, body in more:
                status, text = router.ask(path, body)
                equal((path, status, text if status != 200 else b""), (path, 200, b""))

    @feature("one of three killed under 32 clients")
    def killed(_):
        with Replicas(3) as replicas, Router(name, replicas.servers) as router:
            results = ask_many(router.port, replicas, kill=lambda server: server.process.send_signal(signal.SIGKILL))
            print(f"complete: {results.whole} whole, {results.streamed} streamed; cut: {results.cut}; lost: {len(results.lost)}")
            equal(results.lost, [])

    main(package)
