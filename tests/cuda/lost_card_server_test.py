"""One of two emulated cards is lost while the server answers. Run by with_emulated_gpus, with a fault of card 1 in a later token."""

import concurrent.futures
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import running_server  # noqa: E402
from lost_device import LostDevice  # noqa: E402
from running_server import RunningServer  # noqa: E402

ADVICE = "CUDA1 is lost: start again without it, or after a reset"


class LostCard(LostDevice):
    device = "CUDA1"

    def lost(self, error):
        message = super().lost(error)
        self.assertIn(ADVICE, message)
        # The work that failed, and no other card's.
        self.assertRegex(message, r"[a-z0-9._]+ \([a-z_]+(, layer [0-9]+)?\).*: CUDA1 cannot")
        self.assertNotIn("CUDA0 cannot", message)
        return message

    def test_requests(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "access")
            with RunningServer("-ngl", "99", "-ts", "1,1", "--parallel", "2", "-c", "512", "--access-log", log) as server:
                self.use(server)
            self.assertEqual(server.process.returncode, 0, "".join(server.lines))
            with open(log) as file:
                lines = [json.loads(line) for line in file]
        # The stream had begun.
        self.assertEqual(sorted(line["status"] for line in lines if line["path"] == "/completion"), [200, 503, 503, 503, 503])

    def use(self, server):
        self.assertEqual(server.request("GET", "/health")[0], 200)
        ask = lambda **fields: server.request("POST", "/completion", {"prompt": "The", "n_predict": 20, "ignore_eos": True, **fields})
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            stream, whole = pool.submit(ask, stream=True), pool.submit(ask)
            server.wait_for_metric("requests_running", lambda value: value == 2)
            waiting = pool.submit(ask)
            events = self.events(stream.result())
            self.assertGreater(len(events), 1, "it was lost before the first token")
            self.lost(events[-1])
            for answer in (whole, waiting):
                status, error = answer.result()
                self.assertEqual(status, 503, error)
                self.lost(error)
        self.check_afterwards(server, ask, failed=3)
        server.wait_for_line("a step failed.*" + ADVICE)


if __name__ == "__main__":
    running_server.main()
