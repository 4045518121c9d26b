"""One of two emulated cards is lost while the server answers. Run by with_emulated_gpus, with a fault of card 1 in a later token."""

import concurrent.futures
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import running_server  # noqa: E402
from running_server import CHAT, RunningServer, chat  # noqa: E402

ADVICE = "CUDA1 is lost: start again without it (-dev lists the devices to use), or after a reset"


class LostCard(unittest.TestCase):
    def lost(self, error):
        self.assertEqual((error["error"]["code"], error["error"]["type"]), ("device_lost", "unavailable_error"), error)
        message = error["error"]["message"]
        self.assertIn(ADVICE, message)
        # The work that failed, and no other card's.
        self.assertRegex(message, r"[a-z0-9._]+ \([a-z_]+(, layer [0-9]+)?\).*: CUDA1 cannot")
        self.assertNotIn("CUDA0 cannot", message)
        return message

    def test_requests(self):
        with RunningServer("-ngl", "99", "-ts", "1,1", "--parallel", "2", "-c", "512") as server:
            self.use(server)
        self.assertEqual(server.process.returncode, 0, "".join(server.lines))

    def use(self, server):
        self.assertEqual(server.request("GET", "/health")[0], 200)
        ask = lambda **fields: server.request("POST", "/completion", {"prompt": "The", "n_predict": 20, "ignore_eos": True, **fields})
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            stream, whole = pool.submit(ask, stream=True), pool.submit(ask)
            server.wait_for_metric("requests_running", lambda value: value == 2)
            waiting = pool.submit(ask)
            status, text = stream.result()
            self.assertEqual(status, 200)
            events = [json.loads(event.removeprefix("data: ")) for event in text.decode().strip().split("\n\n")]
            self.assertGreater(len(events), 1, "it was lost before the first token")
            self.lost(events[-1])
            for answer in (whole, waiting):
                status, error = answer.result()
                self.assertEqual(status, 503, error)
                self.lost(error)
        status, error = server.request("GET", "/health")
        self.assertEqual(status, 503, error)
        self.assertIn("restart the server", self.lost(error))
        for stream in (False, True):
            for status, error in (ask(stream=stream), server.request("POST", CHAT, chat(stream=stream))):
                self.assertEqual(status, 503, error)
                self.lost(error)
        # What needs no card goes on.
        self.assertEqual(server.request("GET", "/v1/models")[0], 200)
        self.assertEqual(server.request("GET", "/slots"), (200, []))
        self.assertEqual(server.request("POST", "/tokenize", {"content": "x"})[0], 200)
        self.assertEqual(server.metric("requests_running"), 0)
        self.assertEqual(server.metric("requests_waiting"), 0)
        self.assertEqual(server.metric("requests_failed_total"), 3)
        self.assertIn(ADVICE, "".join(line for line in server.lines if "a step failed" in line))
        self.assertTrue(server.alive())


if __name__ == "__main__":
    running_server.main()
