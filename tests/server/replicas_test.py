"""Three replicas behind haproxy as docs/replicas.md configures it: one of them is killed under 32 clients."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import running_server
from replicas import Replicas, ask_many, block_of

HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Haproxy:
    """The documentation's configuration, with addresses of this machine."""

    def __init__(self, replicas):
        self.port = free_port()
        text = block_of("haproxy").replace("0.0.0.0:8000", f"127.0.0.1:{self.port}")
        for i, server in enumerate(replicas, 1):
            assert f"10.0.0.1{i}:8080" in text
            text = text.replace(f"10.0.0.1{i}:8080", f"127.0.0.1:{server.port}")
        assert not re.search(r"10\.0\.0\.\d", text), "an address of the documentation is left"
        self.text = text

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(self.text)
        checked = subprocess.run([HAPROXY, "-c", "-f", path], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        self.process = subprocess.Popen([HAPROXY, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        running_server.wait_for(self.answers, "haproxy does not answer")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(running_server.LIMIT)
        self.folder.cleanup()

    def answers(self):
        assert self.process.poll() is None, "haproxy has ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class ThreeReplicas(unittest.TestCase):
    def test_one_is_killed_under_32_clients(self):
        with Replicas(3) as replicas, Haproxy(replicas.servers) as proxy:
            results = ask_many(proxy.port, replicas, kill=lambda server: server.process.send_signal(signal.SIGKILL))
            self.assertEqual(results.lost, [])
            self.assertGreater(results.whole, 0)
            self.assertGreater(results.streamed, 0)
            # Those that go on do all that is asked after it.
            self.assertEqual(ask_many(proxy.port, replicas).lost, [])

    def test_one_that_stops_loses_nothing(self):
        """Also no stream: SIGTERM finishes what runs."""
        with Replicas(3) as replicas, Haproxy(replicas.servers) as proxy:
            results = ask_many(proxy.port, replicas, kill=lambda server: server.process.send_signal(signal.SIGTERM))
            self.assertEqual((results.lost, results.cut), ([], 0))


if __name__ == "__main__":
    running_server.main()
