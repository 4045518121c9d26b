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


class RunningServer:
    """tessera-server on a free port with the bundled model; use it in a with statement."""

    def __init__(self, *flags, wait=True):
        self.flags = flags
        self.wait = wait

    def __enter__(self):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([PROGRAM, "--port", "0", *self.flags], stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.port = None
        ready = threading.Event()

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                found = re.match(r"listening at http://[^ ]*:(\d+)", line)
                if found:
                    self.port = int(found.group(1))
                if line.startswith("ready after") or (found and not self.wait):
                    ready.set()
            ready.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        ready.wait(120)
        if self.port is None:
            raise RuntimeError("the server did not start: " + "".join(self.lines))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGTERM)
                self.process.wait(30)
        self.reader.join(10)
        self.process.stderr.close()
        self.log.close()

    def alive(self):
        return self.process.poll() is None

    def request(self, method, path, body=None, headers=None):
        """Status and body, as JSON where it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent.update(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        text = answer.read()
        self.headers = dict(answer.getheaders())
        connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def raw(self, data, timeout=60):
        """All that the server answers to these bytes before it closes the connection, or nothing comes for so many seconds."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            connection.sendall(data)
            answer = b""
            try:
                while part := connection.recv(65536):
                    answer += part
            except TimeoutError:
                pass
            return answer

    def metric(self, name):
        text = self.request("GET", "/metrics")[1].decode()
        return float(re.search(rf"^tessera_{name} (\S+)$", text, re.M).group(1))

    def wait_for_metric(self, name, test, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            value = self.metric(name)
            if test(value):
                return value
            time.sleep(0.02)
        raise AssertionError(f"{name} is {value}")


CHAT = "/v1/chat/completions"


def chat(text="Count from 1 to 10 in French.", **fields):
    return {"messages": [{"role": "user", "content": text}], **fields}


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    # Modules that import this one see the same object only if this is it.
    sys.modules["running_server"].PROGRAM = PROGRAM
    unittest.main(verbosity=2)
