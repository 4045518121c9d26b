"""A device is lost while it works: who waits for it hears so, and the server stays up."""

import concurrent.futures
import json
import os
import tempfile
import unittest.mock

import running_server
from lost_device import LostDevice
from running_server import RunningServer

CONFIGURATION = """[[simulated]]
compute_capability = "8.6"
memory = "256MiB"
"""
# Loading takes fewer, and the requests below more.
OPERATIONS = 8000


class DeviceLost(LostDevice):
    device = "SIM0"

    def test_a_device_that_vanishes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one-card.toml")
            with open(path, "w") as file:
                file.write(CONFIGURATION)
            log = os.path.join(folder, "access")
            with unittest.mock.patch.dict(os.environ, TESSERA_SIMULATED_VANISH=str(OPERATIONS)):
                server = RunningServer("--config", path, "-ngl", "99", "--parallel", "2", "--access-log", log)
                with server:
                    self.use(server)
            self.assertEqual(server.process.returncode, 0)
            with open(log) as file:
                lines = [json.loads(line) for line in file]
            # The streams had begun.
            self.assertEqual(sorted(line["status"] for line in lines if line["path"] == "/completion"), [200, 200, 503, 503, 503])

    def use(self, server):
        self.assertEqual(server.request("GET", "/health")[0], 200)
        ask = lambda **fields: server.request("POST", "/completion", {"prompt": "The", "n_predict": 900, "ignore_eos": True, **fields})
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            streams = [pool.submit(ask, stream=True) for _ in range(2)]
            server.wait_for_metric("requests_running", lambda value: value == 2)
            waiting = pool.submit(ask)
            server.wait_for_metric("requests_waiting", lambda value: value == 1)
            self.assertEqual(server.request("GET", "/health")[0], 200)
            for stream in streams:
                events = self.events(stream.result())
                self.assertGreater(len(events), 2)
                self.assertIn("SIM0", self.lost(events[-1]))
            status, error = waiting.result()
            self.assertEqual(status, 503)
            self.lost(error)
        self.check_afterwards(server, ask, failed=3)
        self.assertIn("SIM0: the device has vanished", "".join(server.lines))


if __name__ == "__main__":
    running_server.main()
