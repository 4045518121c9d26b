"""Keys, names and pages of other sites."""

import http.client
import json
import os
import signal
import subprocess
import tempfile
import unittest

import running_server
from running_server import CHAT, LIMIT, RunningServer, chat, wait_for


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
                # Two that are not the same: whose request is it?
                self.assertEqual(status(body=question, Authorization="Bearer first", **{"X-Api-Key": "second"}), 400)
                self.assertEqual(status(body=question, Authorization="Bearer first", **{"X-Api-Key": "first"}), 200)
                twice = b"Authorization: Bearer first\r\nAuthorization: Bearer second\r\n"
                self.assertIn(b" 400 ", server.raw(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n" % twice))
                with open(path, "w") as file:
                    file.write("third\n")
                server.process.send_signal(signal.SIGHUP)
                wait_for(lambda: status(body=question, Authorization="Bearer third") == 200, "the new key is not valid")
                self.assertEqual(status(body=question, Authorization="Bearer second"), 401)
                self.assertNotIn("first", "".join(server.lines))

    def test_one_key_does_not_see_the_other(self):
        with RunningServer("--api-key", "one,two") as server:
            text = "secret " * 80
            for key, cached in (("one", False), ("two", False), ("one", True)):
                answer = server.request("POST", CHAT, chat(text, max_tokens=1), {"Authorization": "Bearer " + key})[1]
                self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, cached)

    def test_why_a_prefix_missed_is_told_to_its_key(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "access")
            for flags in (("--api-key", "yellow"), ()):
                with RunningServer("--access-log", path, *flags) as server:
                    tokens = server.request("POST", "/tokenize", {"content": "one two three four five six"},
                                            {"Authorization": "Bearer yellow"})[1]["tokens"]
                    changed = tokens[:3] + [tokens[0]] + tokens[4:]
                    for prompt in (tokens, changed):
                        status, answer = server.request("POST", "/completion", {"prompt": prompt, "n_predict": 2, "temperature": 0},
                                                        {"Authorization": "Bearer yellow"})
                        self.assertEqual(status, 200)
                    differs = answer["timings"]["cache_differs"]
                    self.assertEqual((differs["position"], differs["prompt"]), (3, tokens[0]))
                    # Without keys all share one cache, and what lies there may be another's.
                    self.assertEqual(differs.get("cached"), tokens[3] if flags else None)
            with open(path) as file:
                lines = [json.loads(line) for line in file]
            self.assertEqual([line.get("differs_at") for line in lines if line["path"] == "/completion"], [None, 3] * 2)

    def test_limits_of_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            with open(path, "w") as file:
                file.write("one tokens-per-minute=1\ntwo\nthree waiting=0\n")
            with RunningServer("--api-key-file", path, "--client-limits", "running=1,waiting=1", "--parallel", "2") as server:
                def ask(key, **fields):
                    return server.request("POST", CHAT, chat(max_tokens=1, **fields), {"Authorization": "Bearer " + key})

                self.assertEqual(ask("one")[0], 200)
                # What the first has used is back after minutes.
                for stream in (True, False):
                    status, answer = ask("one", stream=stream)
                    self.assertEqual((status, answer["error"]["code"]), (429, "rate_limit_exceeded"))
                    self.assertEqual(answer["error"]["type"], "rate_limit_error")
                    self.assertIn("1 tokens a minute", answer["error"]["message"])
                    self.assertGreater(int(server.headers["Retry-After"]), 60)
                # So is what generates nothing; other keys are not.
                self.assertEqual(server.request("POST", "/tokenize", {"content": "x"}, {"Authorization": "Bearer one"})[0], 429)
                self.assertEqual(server.request("POST", "/tokenize", {"content": "x"}, {"Authorization": "Bearer two"})[0], 200)
                self.assertEqual(ask("two")[0], 200)
                # Two at once, one of which waits.
                self.assertEqual(ask("two", n=2)[0], 200)
                self.assertEqual(ask("two", n=3)[1]["error"]["param"], "n")
                self.assertEqual(ask("three")[0], 200)
                self.assertEqual(ask("three", n=2)[0], 400)
                metrics = server.request("GET", "/metrics", None, {"Authorization": "Bearer two"})[1].decode()
                self.assertIn("tessera_requests_limited_total 3\n", metrics)

    def test_a_place_is_free_when_the_client_has_its_answer(self):
        with RunningServer("--client-limits", "running=1 waiting=0") as server:
            connection, other = (http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT) for _ in range(2))

            def post(path, body, connection=connection):
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
                return connection.getresponse()

            for path, fields in ((CHAT, chat()), ("/v1/completions", {"prompt": "a"}), ("/completion", {"prompt": "a"})):
                for round in range(150):
                    answer = post(path, {**fields, "max_tokens": 1, "stream": True})
                    self.assertEqual(answer.status, 200, (path, round))
                    # Another connection asks as soon as the event that ends the choice is here.
                    text = b""
                    while b'"timings"' not in text:
                        part = answer.read1()
                        self.assertTrue(part, (path, round, text))
                        text += part
                    tokens = post("/tokenize", {"content": "a"}, other)
                    tokens.read()
                    self.assertEqual(tokens.status, 200, (path, round))
                    answer.read()
            for path, body in (("/tokenize", {"content": "a"}), ("/detokenize", {"tokens": [5]}), ("/apply-template", chat()), (CHAT, chat(max_tokens=1))):
                for round in range(100):
                    answer = post(path, body)
                    answer.read()
                    self.assertEqual(answer.status, 200, (path, round))
            connection.close()
            other.close()

    def test_limits_that_are_none(self):
        for flags in (("--client-limits", "speed=1"), ("--client-limits", "running=0")):
            failed = subprocess.run([running_server.PROGRAM, "--port", "0", *flags], capture_output=True, text=True)
            self.assertNotEqual(failed.returncode, 0)
            self.assertIn("expected", failed.stderr)

    def test_key_files_that_are_no_files(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe, keys = os.path.join(folder, "pipe"), os.path.join(folder, "keys")
            os.mkfifo(pipe)
            for path, kind in ((pipe, "a pipe"), (folder, "a directory"), ("/dev/zero", "a device"), (keys, "No such file")):
                failed = subprocess.run([running_server.PROGRAM, "--port", "0", "--api-key-file", path], capture_output=True, text=True, timeout=LIMIT)
                self.assertNotEqual(failed.returncode, 0)
                self.assertIn("--api-key-file", failed.stderr)
                self.assertIn(kind, failed.stderr)
            with open(keys, "w") as file:
                file.write("one\n")
            with RunningServer("--api-key-file", keys) as server:
                os.remove(keys)
                os.mkfifo(keys)
                server.process.send_signal(signal.SIGHUP)
                server.wait_for_line("expected a regular file, found a pipe")
                self.assertEqual(server.request("GET", "/v1/models", None, {"Authorization": "Bearer one"})[0], 200)
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(LIMIT), 0)

    def test_a_server_for_all_without_keys_is_told(self):
        for flags, told in ((("--host", "0.0.0.0"), True), (("--host", "0.0.0.0", "--api-key", "one"), False), ((), False)):
            with RunningServer(*flags) as server:
                self.assertEqual(any("needs no key" in line for line in server.lines), told, flags)

    def test_origins_as_browsers_send_them(self):
        given = "https://Allowed.example/,http://localhost:5173,https://other.example:443"
        with RunningServer("--cors-origin", given) as server:
            self.assertTrue(any("https://Allowed.example/" in line for line in server.lines))
            for origin in ("https://allowed.example", "http://localhost:5173", "https://other.example"):
                self.assertEqual(server.request("GET", "/v1/models", None, {"Origin": origin})[0], 200, origin)
                self.assertEqual(server.headers["Access-Control-Allow-Origin"], origin)
        for wrong in ("allowed.example", "https://allowed.example/path", "https://", "://x", "https://allowed.example/?", "https://a b"):
            failed = subprocess.run([running_server.PROGRAM, "--port", "0", "--cors-origin", wrong], capture_output=True, text=True, timeout=LIMIT)
            self.assertNotEqual(failed.returncode, 0, wrong)
            self.assertIn("--cors-origin", failed.stderr)

    def test_keys_do_not_travel_in_the_clear_silently(self):
        for flag, other in (("--ssl-key-file", "--tls-cert"), ("--tls-cert", "--tls-key")):
            failed = subprocess.run([running_server.PROGRAM, "--port", "0", flag, "file"], capture_output=True, text=True, timeout=LIMIT)
            self.assertNotEqual(failed.returncode, 0)
            self.assertIn(f"give {other} too", failed.stderr)

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
            # The star does not stand for the first; the openai client for browsers sends X-Stainless-Lang and others.
            self.assertEqual(server.headers["Access-Control-Allow-Headers"], "Authorization, *")
            self.assertEqual(server.request("OPTIONS", CHAT, None, {"Origin": "https://evil.example"})[0], 403)

    def test_pages_of_allowed_sites_see_why_they_are_refused(self):
        site = "http://site.example"
        flags = ("--cors-origin", site, "--api-key", "one", "--body-limit", "1", "--no-slots")
        with RunningServer(*flags) as server:
            def check(expected, method, path, body=None, **headers):
                sent = {"Origin": site, "Authorization": "Bearer one", **{name.replace("_", "-"): value for name, value in headers.items()}}
                status, answer = server.request(method, path, body, sent)
                self.assertEqual(status, expected, (path, answer))
                told = [value for name, value in server.header_list if name == "Access-Control-Allow-Origin"]
                self.assertEqual(told, [site], (expected, path, body))
                self.assertEqual(server.headers["Vary"], "Origin")
                return answer

            check(200, "GET", "/v1/models")
            check(204, "OPTIONS", CHAT)
            check(400, "GET", "/props?x=1")
            check(400, "POST", CHAT, "{")
            check(400, "POST", CHAT, chat(no_such_field=1))
            check(400, "GET", "/props", None, X_Api_Key="two")
            check(401, "GET", "/props", None, Authorization="Bearer two")
            check(404, "GET", "/nothing")
            check(501, "GET", "/slots")
            check(405, "GET", CHAT)
            check(413, "POST", CHAT, "x" * (3 << 19))
            check(413, "GET", "/health", "x" * (1 << 17))
            check(415, "POST", "/completion", "{}", Content_Type="text/plain")
            check(417, "POST", CHAT, "{}", Expect="nothing")
            check(421, "GET", "/props", None, Host="evil.example")
            check(501, "POST", "/v1/rerank", {"query": "x"})
            # The header is complete, and says what the body's length is in a way that is refused.
            check(400, "POST", CHAT, "{}", Content_Length="2,2")
            check(501, "POST", CHAT, "{}", Transfer_Encoding="gzip")
        with RunningServer("--cors-origin", site, "--client-limits", "requests-per-minute=1") as server:
            for status in (200, 429):
                self.assertEqual(server.request("POST", CHAT, chat(max_tokens=1), {"Origin": site})[0], status)
                self.assertEqual(server.headers["Access-Control-Allow-Origin"], site)
        with RunningServer("--cors-origin", site, wait=False) as server:
            # While the model is loaded, or when it has been.
            status = server.request("POST", CHAT, chat(max_tokens=1), {"Origin": site})[0]
            self.assertIn(status, (200, 503))
            self.assertEqual(server.headers["Access-Control-Allow-Origin"], site)

    def test_types_methods_and_paths(self):
        with RunningServer("--api-prefix", "/llm", "--no-slots", "--no-metrics") as server:
            self.assertEqual(server.request("GET", "/health")[0], 404)
            self.assertEqual(server.request("GET", "/llm/health")[0], 200)
            self.assertEqual(server.request("HEAD", "/llm/health"), (200, b""))
            self.assertEqual(server.request("GET", "/llm/slots")[0], 501)
            self.assertEqual(server.request("GET", "/llm/metrics")[0], 501)
            self.assertEqual(server.request("GET", "/llm" + CHAT)[0], 405)
            self.assertEqual(server.headers["Allow"], "POST")
            self.assertEqual(server.request("POST", "/llm/v1/rerank", {"query": "x"})[0], 501)
            for kind in ("Application/JSON", "application/json;charset=utf-8", "application/json ; charset=utf-8"):
                self.assertEqual(server.request("POST", "/llm" + CHAT, chat(max_tokens=1), {"Content-Type": kind})[0], 200)
            for kind in ("text/plain", "multipart/form-data", "", "x-www-form-urlencoded"):
                self.assertEqual(server.request("POST", "/llm" + CHAT, "{}", {"Content-Type": kind})[0], 415)
            # As curl -d sends JSON, and no browser.
            form, body = {"Content-Type": "application/x-www-form-urlencoded"}, json.dumps(chat(max_tokens=1))
            self.assertEqual(server.request("POST", "/llm" + CHAT, body, form)[0], 200)
            for header, value in (("Origin", f"http://127.0.0.1:{server.port}"), ("Referer", "http://evil.example/"), ("Cookie", "a=b"),
                                  ("Sec-Fetch-Site", "cross-site"), ("sec-ch-ua", "x"), ("Referer", "")):
                self.assertEqual(server.request("POST", "/llm" + CHAT, body, {**form, header: value})[0], 415, header)
            self.assertEqual(server.request("POST", "/llm" + CHAT, body, {**form, "Origin": "http://evil.example"})[0], 403)

    def test_parameters_of_addresses(self):
        with RunningServer("--parallel", "1", "-c", "65536", "--request-context", "60000") as server:
            def refused(path, name, method="GET", body=None):
                status, answer = server.request(method, path, body)
                self.assertEqual((status, answer["error"]["param"]), (400, name), path)

            for path in ("/health", "/v1/health", "/metrics", "/props", "/slots", "/v1/models", "/lora-adapters", "/tessera/machine"):
                self.assertEqual(server.request("GET", path + "?_=1700000000&model=any")[0], 200)
                refused(path + "?_=1&no_such=1", "no_such")
            refused("/health?include_slots=1", "include_slots")
            refused("/metrics?x", "x")
            refused("/tokenize?a=b", "a", "POST", {"content": "a"})
            refused(CHAT + "?temperature=0", "temperature", "POST", chat())
            self.assertEqual(server.request("POST", CHAT + "?api-version=2024-06-01", chat(max_tokens=1))[0], 200)
            self.assertEqual(server.request("GET", "/?anything=1")[0], 200)
            self.assertEqual(server.request("GET", "/slots?fail_on_no_slot=1")[0], 200)
            refused("/slots?fail_on_no_slot=perhaps", "fail_on_no_slot")
            stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            stream.request("POST", CHAT, json.dumps(chat(stream=True, ignore_eos=True, max_tokens=50000)), {"Content-Type": "application/json"})
            answer = stream.getresponse()
            for _ in range(4):
                answer.readline()
            server.wait_for_metric("requests_running", lambda value: value == 1)
            self.assertEqual(server.request("GET", "/slots?fail_on_no_slot=1")[1]["error"]["code"], "no_slot")
            self.assertEqual(server.request("GET", "/slots?fail_on_no_slot=0")[0], 200)
            stream.close()
            answer.close()

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

    def test_a_line_of_the_log_names_its_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "access")
            numbers = []
            with RunningServer("--access-log", path) as server:
                for method, target, body in (("GET", "/health", None), ("POST", CHAT, chat(max_tokens=1, stream=True)), ("GET", "/nowhere", None)):
                    server.request(method, target, body, {"Origin": f"http://127.0.0.1:{server.port}"})
                    numbers.append(int(server.headers["X-Request-Id"]))
            with open(path) as file:
                lines = [json.loads(line) for line in file]
            self.assertEqual([line["id"] for line in lines], numbers)
            self.assertEqual(len(set(numbers)), 3)
            for line in lines:
                self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_keys_that_are_none_do_not_keep_the_log_from_being_reopened(self):
        with tempfile.TemporaryDirectory() as folder:
            keys, path = os.path.join(folder, "keys"), os.path.join(folder, "access")
            with open(keys, "w") as file:
                file.write("one\n")
            with RunningServer("--api-key-file", keys, "--access-log", path) as server:
                os.rename(path, path + ".1")
                with open(keys, "w") as file:
                    file.write("# none\n")
                server.process.send_signal(signal.SIGHUP)
                wait_for(lambda: os.path.exists(path), "the log was not opened again")
                self.assertEqual(server.request("GET", "/v1/models", None, {"Authorization": "Bearer one"})[0], 200)

    def test_a_line_that_was_cut_spoils_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "access")
            with open(path, "w") as file:
                file.write('{"time":"2026-')
            with RunningServer("--access-log", path) as server:
                server.request("GET", "/health")
            with open(path) as file:
                lines = file.read().splitlines()
            self.assertEqual(lines[0], '{"time":"2026-')
            self.assertEqual(json.loads(lines[1])["path"], "/health")

    def test_a_log_that_nobody_reads_delays_nobody(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pipe")
            os.mkfifo(path)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            with RunningServer("--access-log", path) as server:
                # A pipe holds 64 KiB; the rest of 4 MiB waits, and what is more is dropped.
                long = "/" + "x" * 60000
                for _ in range(300):
                    self.assertEqual(server.request("GET", long)[0], 404)
                    if server.metric("access_log_dropped_lines_total") > 0:
                        break
                else:
                    self.fail("nothing was dropped")
                os.set_blocking(reader, True)
                first = b""
                while b"\n" not in first:
                    first += os.read(reader, 65536)
                self.assertEqual(json.loads(first.split(b"\n")[0])["status"], 404)
                # A reader that goes does not end the server.
                os.close(reader)
                for _ in range(3):
                    self.assertEqual(server.request("GET", "/health")[0], 200)
                self.assertTrue(server.alive())


if __name__ == "__main__":
    running_server.main()
