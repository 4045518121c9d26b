"""Keys, names and pages of other sites."""

import os
import signal
import tempfile
import time
import unittest

import running_server
from running_server import CHAT, RunningServer, chat


class Access(unittest.TestCase):
    def test_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            with open(path, "w") as file:
                file.write("# of the team\nsecond\n")
            with RunningServer("--api-key", "first", "--api-key-file", path) as server:
                def status(path=CHAT, body=None, **headers):
                    return server.request("POST" if body else "GET", path, body, headers)[0]

                question = chat(max_tokens=1)
                self.assertEqual(status("/health"), 200)
                for closed in ("/v1/models", "/metrics", "/slots", "/props"):
                    self.assertEqual(status(closed), 401, closed)
                self.assertEqual(status(body=question), 401)
                self.assertEqual(server.headers["WWW-Authenticate"], "Bearer")
                self.assertEqual(status(body=question, Authorization="Bearer first2"), 401)
                self.assertEqual(status(body=question, Authorization="Bearer "), 401)
                self.assertEqual(status(body=question, Authorization="Bearer first"), 200)
                self.assertEqual(status(body=question, Authorization="bearer second"), 200)
                self.assertEqual(status(body=question, **{"X-Api-Key": "second"}), 200)
                with open(path, "w") as file:
                    file.write("third\n")
                server.process.send_signal(signal.SIGHUP)
                for _ in range(100):
                    if status(body=question, Authorization="Bearer third") == 200:
                        break
                    time.sleep(0.05)
                self.assertEqual(status(body=question, Authorization="Bearer third"), 200)
                self.assertEqual(status(body=question, Authorization="Bearer second"), 401)
                self.assertNotIn("first", "".join(server.lines))

    def test_one_key_does_not_see_the_other(self):
        with RunningServer("--api-key", "one,two") as server:
            text = "secret " * 80
            for key, cached in (("one", False), ("two", False), ("one", True)):
                answer = server.request("POST", CHAT, chat(text, max_tokens=1), {"Authorization": "Bearer " + key})[1]
                self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, cached)

    def test_names_and_pages(self):
        with RunningServer("--cors-origin", "https://allowed.example", "--allowed-host", "box.lan") as server:
            def status(**headers):
                return server.request("GET", "/v1/models", None, headers)[0]

            self.assertEqual(status(), 200)
            self.assertEqual(status(Host="localhost:1234"), 200)
            self.assertEqual(status(Host="[::1]"), 200)
            self.assertEqual(status(Host="box.lan"), 200)
            self.assertEqual(status(Host="evil.example"), 421)
            self.assertEqual(status(Origin="https://evil.example"), 403)
            self.assertEqual(status(Origin="null"), 403)
            self.assertEqual(status(Origin=f"http://127.0.0.1:{server.port}"), 200)
            self.assertNotIn("Access-Control-Allow-Origin", server.headers)
            self.assertEqual(status(Origin="https://allowed.example"), 200)
            self.assertEqual(server.headers["Access-Control-Allow-Origin"], "https://allowed.example")
            for stream in (True, False):
                answer = server.request("POST", CHAT, chat(max_tokens=1, stream=stream), {"Origin": "https://allowed.example"})
                self.assertEqual(answer[0], 200)
                self.assertEqual(server.headers["Access-Control-Allow-Origin"], "https://allowed.example")
            self.assertEqual(server.request("OPTIONS", CHAT, None, {"Origin": "https://allowed.example"})[0], 204)
            self.assertIn("Authorization", server.headers["Access-Control-Allow-Headers"])
            self.assertEqual(server.request("OPTIONS", CHAT, None, {"Origin": "https://evil.example"})[0], 403)

    def test_types_methods_and_paths(self):
        with RunningServer("--api-prefix", "/llm", "--no-slots", "--no-metrics") as server:
            self.assertEqual(server.request("GET", "/health")[0], 404)
            self.assertEqual(server.request("GET", "/llm/health")[0], 200)
            self.assertEqual(server.request("HEAD", "/llm/health"), (200, b""))
            self.assertEqual(server.request("GET", "/llm/slots")[0], 404)
            self.assertEqual(server.request("GET", "/llm/metrics")[0], 404)
            self.assertEqual(server.request("GET", "/llm" + CHAT)[0], 405)
            self.assertEqual(server.headers["Allow"], "POST")
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
                self.assertEqual(server.request("POST", "/llm" + CHAT, "{}", {"Content-Type": kind})[0], 415)

    def test_nothing_of_a_prompt_is_logged(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "access")
            with RunningServer("--access-log", path, "--api-key", "hidden") as server:
                server.request("POST", CHAT, chat("confidential", max_tokens=2), {"Authorization": "Bearer hidden"})
                server.request("POST", CHAT, "confidential{", {"Authorization": "Bearer hidden"})
            with open(path) as file:
                log = file.read()
            self.assertEqual(len(log.splitlines()), 2)
            self.assertNotIn("confidential", log + "".join(server.lines))
            self.assertNotIn("hidden", log + "".join(server.lines))


if __name__ == "__main__":
    running_server.main()
