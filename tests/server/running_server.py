"""Starts tessera-server for tests, and speaks HTTP to it by hand where a client library would be too kind."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = None
LIMIT = 300  # seconds for what takes moments: no machine is so slow
# Flags of a server whose answers of max_tokens=100000 take half a minute and more; those of the bundled model's own context take less than a second.
LONG_ANSWERS = ("-c", "60000", "--request-context", "60000")


def wait_for(test, what):
    """Until it holds; `what` says why it should."""
    end = time.monotonic() + LIMIT
    while not test():
        if time.monotonic() > end:
            raise AssertionError(what() if callable(what) else what)
        time.sleep(0.01)


class RunningServer:
    """tessera-server on a free port with the bundled model; use it in a with statement. `tls`: how to speak to it, an ssl.SSLContext. `environment`: variables
    that it gets besides."""

    def __init__(self, *flags, wait=True, tls=None, environment=None):
        self.flags = flags
        self.environment = environment
        self.wait = wait
        self.tls = tls

    def __enter__(self):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([PROGRAM, "--port", "0", *self.flags], stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(self.environment or {})})
        self.lines = []
        self.port = None
        ready = threading.Event()

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                found = re.match(r"listening at https?://[^ ]*:(\d+)", line)
                if found:
                    self.port = int(found.group(1))
                if line.startswith("ready after") or (found and not self.wait):
                    ready.set()
            ready.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        ready.wait(LIMIT)
        if self.port is None:
            raise RuntimeError("the server did not start: " + "".join(self.lines))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGTERM)
                self.process.wait(LIMIT)
        self.reader.join(10)
        self.process.stderr.close()
        self.log.close()

    def alive(self):
        return self.process.poll() is None

    def request(self, method, path, body=None, headers=None):
        """Status and body, as JSON where it is."""
        if self.tls:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=LIMIT, context=self.tls)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent.update(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        text = answer.read()
        self.header_list = answer.getheaders()
        self.headers = dict(self.header_list)
        connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def raw(self, data):
        """All that the server answers to these bytes before it closes the connection, which it has to do."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT) as connection:
            connection.sendall(data)
            answer = b""
            try:
                while part := connection.recv(65536):
                    answer += part
            except TimeoutError:
                raise AssertionError(f"the connection stays open behind {answer[-200:]}") from None
            return answer

    def unread(self):
        """Bytes that have arrived at the server and that it has not read."""
        with open("/proc/net/tcp") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        return sum(int(row[4].split(":")[1], 16) for row in rows if int(row[1].split(":")[1], 16) == self.port and row[3] == "01")

    def metric(self, name):
        text = self.request("GET", "/metrics")[1].decode()
        return float(re.search(rf"^tessera_{name} (\S+)$", text, re.M).group(1))

    def settled(self, name):
        """A metric of the engine when it has no request: it tells what it did in a step after that step's answers."""
        def idle():
            text = self.request("GET", "/metrics")[1].decode()
            return all(re.search(rf"^tessera_requests_{state} 0$", text, re.M) for state in ("running", "waiting"))

        wait_for(idle, "requests are under way")
        return self.metric(name)

    def processor_seconds(self):
        """That the server has used: what others use meanwhile counts for nothing."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            user, system = file.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def wait_for_metric(self, name, test):
        wait_for(lambda: test(self.metric(name)), lambda: f"{name} is {self.metric(name)}")

    def wait_for_line(self, pattern):
        """Lines are read by a thread of their own, and may come later than the answers to what was asked after them."""
        wait_for(lambda: any(re.search(pattern, line) for line in self.lines), lambda: f"'{pattern}' was not said: {self.lines}")


CHAT = "/v1/chat/completions"


def chat(text="Count from 1 to 10 in French.", **fields):
    return {"messages": [{"role": "user", "content": text}], **fields}


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    # Of the tests' own: their runs are none whose speed the user wants to know of.
    os.environ.setdefault("XDG_CACHE_HOME", PROGRAM + ".cache")
    # Modules that import this one see the same object only if this is it.
    sys.modules["running_server"].PROGRAM = PROGRAM
    unittest.main(verbosity=2)
