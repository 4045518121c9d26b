"""Whatever is sent, the server answers with a reason, goes on, and loses nothing of others."""

import concurrent.futures
import json
import os
import random
import resource
import select
import socket
import tempfile
import time
import unittest

import running_server
from running_server import CHAT, LIMIT, LONG_ANSWERS, RunningServer, chat


class HostileInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def tearDown(self):
        self.assertTrue(self.server.alive())
        status, answer = self.server.request("POST", CHAT, chat(max_tokens=2))
        self.assertEqual((status, answer["choices"][0]["message"]["content"]), (200, "un,"))

    def refused(self, body, status=400, path=CHAT, **headers):
        found, answer = self.server.request("POST", path, body, headers)
        self.assertEqual(found, status, (str(body)[:200], answer))
        self.assertTrue(answer["error"]["message"], body)
        return answer["error"]

    def test_bodies_that_are_not_requests(self):
        for body in ("", "{", "nonsense", "[]", "3", "null", '{"messages":', "{}" * 2, '{"a":1', b"\xff\xfe{}", '{"messages": NaN}',
                     "[" * 100000, '{"a":' * 5000 + "1" + "}" * 5000):
            self.refused(body)

    def test_fields_of_the_wrong_kind(self):
        for field, value in (("messages", []), ("messages", "hi"), ("messages", [3]), ("messages", [{"role": "user", "content": 7}]),
                             ("messages", [{"content": "x"}]), ("messages", [{"role": "wizard", "content": "x"}]),
                             ("temperature", "hot"), ("temperature", 1e300), ("top_p", -1), ("top_p", 2), ("top_k", 1.5), ("n", 0),
                             ("n", 100000), ("max_tokens", -5), ("max_tokens", 1e18), ("max_tokens", [1]), ("seed", "x"), ("stream", "yes"),
                             ("stop", 5), ("stop", [5]), ("no_such_field", 1), ("stop", ["x"] * 5000), ("stop", "x" * 100000),
                             ("logit_bias", {"": 1}), ("logit_bias", {"-4": 1}), ("logit_bias", {"5": "a"}), ("logit_bias", {"99999999": 1}),
                             ("logit_bias", {str(i): 1 for i in range(5000)}), ("logit_bias", [[1]]), ("top_logprobs", 5),
                             ("logprobs", 3), ("samplers", ["nothing"]), ("samplers", [4]), ("stream_options", {"include_usage": True}),
                             ("repeat_penalty", 0), ("min_p", 7), ("presence_penalty", None if False else "a"), ("response_format", "text")):
            self.refused({**chat(), field: value})

    def test_errors_name_field_and_finding(self):
        error = self.refused({**chat(), "top_p": 2})
        self.assertEqual(error["param"], "top_p")
        self.assertIn("found 2", error["message"])
        for path, body, where, said in (("/v1/chat/completions", {**chat(), "temperature": "hot"}, "temperature", 'a number from 0 to 1000000, found "hot"'),
                                        ("/v1/chat/completions", {**chat(), "stop": ["a", 1]}, "stop[1]", "expected a text, found 1"),
                                        ("/v1/chat/completions", {"messages": [{"role": "robot", "content": "a"}]}, "messages[0].role", 'found "robot"')):
            status, answer = self.server.request("POST", path, body)
            self.assertEqual((status, answer["error"]["param"]), (400, where), answer)
            self.assertIn(said, answer["error"]["message"])
        self.assertIn("max_tokens: required", self.server.request("POST", "/v1/messages", chat())[1]["error"]["message"])
        self.assertIn("expected a text or a list of texts, found 5", self.refused({**chat(), "stop": 5})["message"])

    def test_stops_of_completions(self):
        for path in ("/v1/completions", "/completion"):
            for stop, param in ((5, "stop"), ([5], "stop[0]"), (["a", 5], "stop[1]"), (["x"] * 5000, "stop")):
                with self.subTest(path=path, stop=str(stop)[:20]):
                    status, answer = self.server.request("POST", path, {"prompt": "a", "stop": stop})
                    self.assertEqual((status, answer["error"]["param"]), (400, param))
        error = self.refused({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": 4}]}]})
        self.assertEqual(error["param"], "messages[1].content[0].text")

    def test_text_that_is_not_unicode(self):
        status, _ = self.server.request("POST", CHAT, b'{"messages":[{"role":"user","content":"\\ud800 x"}],"max_tokens":2}')
        self.assertIn(status, (200, 400))
        self.refused(b'{"messages":[{"role":"user","content":"\xc3\x28"}],"max_tokens":2}')
        for text in ("\0", "\x7f\x01", "\u202e" * 50, "🙂" * 50, "﷽" * 20):
            self.assertEqual(self.server.request("POST", CHAT, chat(text, max_tokens=2))[0], 200)

    def test_prompts_by_tokens(self):
        for prompt in ([-1], [10**9], [1.5], [], [None], [[1], []], [[[1]]], {"a": 1}, [10**30]):
            status, answer = self.server.request("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 1})
            self.assertEqual(status, 400, (prompt, answer))
        self.refused({"tokens": [10**9]}, path="/detokenize")
        self.refused({"tokens": "x"}, path="/detokenize")
        self.refused({}, path="/tokenize")

    def test_http_that_is_none(self):
        for data in (b"GET /health HTTP/1.1\nHost: localhost\n\n", b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
                     b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                     b"POST /completion HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                     b"POST /completion HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
                     b"POST /completion HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            answer = self.server.raw(data)
            self.assertTrue(answer.startswith(b"HTTP/1.1 4"), (data, answer[:100]))
        self.assertTrue(self.server.raw(b"\r\n\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200 "))

    def test_targets_that_name_a_host(self):
        """RFC 9112, 3.2.2: it counts in place of Host."""
        for target, host, status in ((b"http://localhost/health", b"localhost", 200), (b"http://localhost", b"localhost", 200),
                                     (b"http://evil.example/health", b"localhost", 421), (b"http://localhost@evil.example/health", b"localhost", 421),
                                     (b"http://localhost/health", b"evil.example", 200), (b"http://localhost/nowhere", b"localhost", 404)):
            answer = self.server.raw(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host))
            self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), (target, host, answer[:100]))

    def test_what_a_body_is_said_to_be(self):
        body = b'{"content":"a"}'
        for headers, status in ((b"Content-Type: application/json", 200), (b"Content-Type: Application/JSON ; Charset=\"UTF-8\"", 200),
                                (b"Content-Type: application/json; charset=iso-8859-1", 415), (b"Content-Type: application/json; v=1; charset=utf-16", 415),
                                (b"Content-Type: application/json; boundary=x", 200), (b"Content-Type: application/jsonx", 415),
                                (b"X: y", 200), (b"Sec-Fetch-Site: none", 415),
                                (b"Content-Type: application/json\r\nContent-Type: text/plain", 400),
                                (b"Content-Type: application/json\r\nContent-Encoding: identity", 200),
                                (b"Content-Type: application/json\r\nContent-Encoding: gzip", 415),
                                (b"Content-Type: application/json\r\nContent-Encoding: identity, br", 415)):
            answer = self.server.raw(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\nContent-Length: %d\r\n\r\n%s"
                                     % (headers, len(body), body))
            self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), (headers, answer))

    def test_texts_that_are_not_utf_8(self):
        text = json.dumps(chat("caf\xe9", max_tokens=1), ensure_ascii=False)
        for body, said in ((text.encode("latin-1"), "not UTF-8"), (text.encode("utf-16"), "byte order mark"), (text.encode("utf-8-sig"), "byte order mark"), (b"", "empty")):
            self.assertIn(said, self.refused(body)["message"])

    def test_messages_without_content(self):
        for message in ({"role": "user"}, {"role": "user", "content": None}, {"role": "system"}, {"role": "assistant"}, {"role": "assistant", "content": None, "tool_calls": []}):
            error = self.refused({"messages": [message, {"role": "user", "content": "a"}]})
            self.assertEqual(error["param"], "messages[0].content")
        self.assertIn("a text, or a list of parts", self.refused({"messages": [{"role": "user", "content": True}]})["message"])

    def test_the_name_of_the_server(self):
        """RFC 9112, 3.2: one Host, which only HTTP/1.0 may leave out."""
        for version, host, status in ((b"1.1", b"", 400), (b"1.0", b"", 200), (b"1.1", b"Host: localhost\r\n", 200),
                                      (b"1.1", b"Host: localhost\r\nHost: localhost\r\n", 400)):
            answer = self.server.raw(b"GET /health HTTP/%s\r\n%sConnection: close\r\n\r\n" % (version, host))
            self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), (version, host, answer[:100]))
            self.assertEqual(b"Host" in answer.partition(b"\r\n\r\n")[2], status == 400)

    def test_floods(self):
        self.assertIn(b" 431 ", self.server.raw(b"GET /health HTTP/1.1\r\n" + b"X-A: " + b"y" * 200000 + b"\r\n\r\n"))
        self.assertIn(b" 431 ", self.server.raw(b"GET /health HTTP/1.1\r\n" + b"X-A: y\r\n" * 50000 + b"\r\n"))
        self.assertIn(b" 413 ", self.server.raw(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                                b"Content-Length: 9000000000\r\n\r\n"))

    def test_what_is_logged_of_a_body_that_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "access")
            with RunningServer("--access-log", path, "--body-limit", "1") as server:
                with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as connection:
                    connection.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                       b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
                    # Others come in between: the server's own count of requests has this one as well.
                    asked = 1
                    while server.metric("http_requests_total") == asked:
                        asked += 1
                    connection.sendall((b"ff000\r\n" + b" " * 0xff000 + b"\r\n") * 2)
                    self.assertIn(b" 413 ", connection.recv(4096))
            with open(path) as file:
                lines = [json.loads(line) for line in file]
            self.assertEqual([(line["method"], line["path"]) for line in lines if line["status"] == 413], [("POST", "/tokenize")])
            self.assertEqual(sorted(line["id"] for line in lines), list(range(1, len(lines) + 1)))

    def test_silent_connections_make_room(self):
        def flood(server, count):
            connections = []
            try:
                for number in range(count):
                    connections.append(socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT))
                    if number % 2:
                        connections[-1].sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                                b"Content-Length: 50000000\r\n\r\n{")
                    if number % 100 == 99:
                        self.assertEqual(server.request("GET", "/health")[0], 200)
                self.assertGreater(server.metric("http_connections_closed_total"), 0)
                self.assertEqual(server.request("POST", CHAT, chat("hi", max_tokens=1))[0], 200)
            finally:
                for connection in connections:
                    connection.close()

        with RunningServer() as server:
            with self.subTest("more than the server serves"):
                _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
                if most < 8192:
                    self.skipTest("this process may not open so many")
                resource.setrlimit(resource.RLIMIT_NOFILE, (8192, most))
                resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (8192, most))
                flood(server, 4200)
        with RunningServer() as server:
            with self.subTest("more than the system lets it open"):
                resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (100, most))
                flood(server, 300)

    def test_requests_that_do_not_arrive(self):
        post = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        late = (b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: loc", post)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "access")
            with RunningServer("--access-log", path) as server, concurrent.futures.ThreadPoolExecutor(len(late)) as pool:
                for answer in pool.map(lambda data: server.raw(data), late):
                    self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
                    self.assertIn(b"did not arrive in time", answer)
            with open(path) as file:
                lines = [json.loads(line) for line in file]
        self.assertEqual([line["status"] for line in lines], [408] * 3)
        self.assertEqual(len({line["id"] for line in lines} - {0}), 3)
        self.assertEqual(sorted(line["path"] for line in lines), ["", "", "/tokenize"])
        for line in lines:
            self.assertGreater(line["seconds"], 29)

    def test_large_bodies_do_not_hold_up_small_ones(self):
        large = json.dumps(chat("some words of text " * (1 << 20))).encode()
        connections = [socket.create_connection(("127.0.0.1", self.server.port), timeout=LIMIT) for _ in range(6)]
        for connection in connections:
            self.addCleanup(connection.close)
            connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                               % (CHAT.encode(), len(large), large[:-1]))
        # The last bytes come together, so that all wait at once however long the sending took. One of two threads works on
        # large bodies: the small request is answered while several wait. Were it behind them, one at most would be left.
        for connection in connections:
            connection.sendall(large[-1:])
        self.assertEqual(self.server.request("POST", CHAT, chat("hi", max_tokens=1))[0], 200)
        answered = select.select(connections, [], [], 0)[0]
        self.assertLess(len(answered), len(connections) - 1)
        for connection in connections:
            self.assertIn(b" 400 ", connection.recv(4096))

    def test_several_requests_at_once_on_one_connection(self):
        one = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = one.replace(b"Host", b"Connection: close\r\nHost")
        self.assertEqual(self.server.raw(one * 4 + last).count(b"HTTP/1.1 200"), 5)
        body = json.dumps(chat(max_tokens=2)).encode()
        post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        answer = self.server.raw(post * 2 + post.replace(b"Host", b"Connection: close\r\nHost"))
        self.assertEqual(answer.count(b'"content":"un,"'), 3, answer)

    def test_bodies_in_chunks_and_with_continue(self):
        body = json.dumps(chat(max_tokens=2)).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7)) + b"0\r\n\r\n"
        self.assertIn(b'"content":"un,"', self.server.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
        answer = self.server.raw(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertTrue(answer.startswith(b"HTTP/1.1 100 Continue"))
        self.assertIn(b'"content":"un,"', answer)

    def test_old_clients_get_the_end_of_the_connection(self):
        body = json.dumps(chat(max_tokens=2, stream=True)).encode()
        answer = self.server.raw(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        self.assertNotIn(b"chunked", answer)
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"))
        # An answer that is cut does not end as a whole one does.
        body = json.dumps(chat(max_tokens=50000, ignore_eos=True, stream=True)).encode()
        with RunningServer(*LONG_ANSWERS) as server, socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200 "))
            connection.shutdown(socket.SHUT_WR)
            with self.assertRaises(ConnectionResetError):
                while connection.recv(65536):
                    pass

    def test_clients_that_go_at_any_time(self):
        body = json.dumps(chat(max_tokens=50, stream=True)).encode()
        data = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        choose = random.Random(3)
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
                connection.sendall(data[:choose.randrange(len(data) + 1)])
                if choose.random() < 0.5:
                    time.sleep(choose.random() * 0.03)
                if choose.random() < 0.3:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.server.wait_for_metric("requests_running", lambda value: value == 0)
        self.server.wait_for_metric("requests_waiting", lambda value: value == 0)

    def test_random_bytes_in_requests(self):
        choose = random.Random(11)
        body = json.dumps({**chat(max_tokens=1), "stop": ["a"], "logit_bias": {"5": 1}, "n": 2, "seed": 4}).encode()
        for _ in range(300):
            changed = bytearray(body)
            for _ in range(choose.randrange(1, 4)):
                kind = choose.randrange(3)
                at = choose.randrange(len(changed))
                if kind == 0:
                    changed[at] = choose.randrange(256)
                elif kind == 1:
                    del changed[at:at + choose.randrange(1, 9)]
                else:
                    changed[at:at] = choose.choice([b"-", b"9" * 20, b'"', b"null", b"{", b"]", b"1e999", b"\\u0000"])
            status, _ = self.server.request("POST", CHAT, bytes(changed))
            self.assertIn(status, (200, 400))


class Memory(unittest.TestCase):
    """What all connections hold together is limited."""

    HEAD = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    def test_bodies(self):
        mebibyte = 1 << 20
        with RunningServer("--body-limit", "4", "--held-limit", "8") as server:
            def begin(sent, head=b"Content-Length: %d\r\n" % (4 * mebibyte), frame=lambda data: data):
                connection = socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT)
                connection.sendall(self.HEAD + head + b"\r\n" + frame(b" " * sent))
                return connection

            self.assertIn(b" 413 ", server.raw(self.HEAD + b"Content-Length: %d\r\n\r\n" % (4 * mebibyte + 1)))
            # Announcing much takes nothing from others.
            announced = [begin(0) for _ in range(20)]
            self.assertEqual(server.request("POST", "/tokenize", {"content": "x"})[0], 200)
            first = begin(3 * mebibyte)
            second = begin(3 * mebibyte, b"Transfer-Encoding: chunked\r\n", lambda data: b"%x\r\n%s\r\n" % (len(data), data))
            server.wait_for_metric("http_body_bytes", lambda value: value > 5.9 * mebibyte)
            # Of one client the slowest goes.
            third = begin(5 * mebibyte // 2)
            answer = first.recv(65536)
            self.assertIn(b" 503 ", answer)
            self.assertIn(b"Retry-After: ", answer)
            self.assertIn(b'"code":"overloaded"', answer)
            # Small ones still pass.
            self.assertEqual(server.request("POST", "/tokenize", {"content": "x"})[0], 200)
            for connection in (first, second, third, *announced):
                connection.close()
            server.wait_for_metric("http_body_bytes", lambda value: value == 0)
            body = json.dumps({"content": "x"}).encode().ljust(3 * mebibyte)
            self.assertEqual(server.request("POST", "/tokenize", body)[0], 200)

    def test_answers_that_are_not_read(self):
        mebibyte = 1 << 20
        with RunningServer("--held-limit", "16") as server:
            # More than the system's buffers hold.
            word = " diciotto"
            ids = server.request("POST", "/tokenize", {"content": word, "parse_special": False})[1]["tokens"]
            tokens = json.dumps({"tokens": ids * (12 * mebibyte // len(word))}).encode()
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            head = self.HEAD.replace(b"tokenize", b"detokenize")
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(tokens) + tokens)
            server.wait_for_metric("http_unread_bytes", lambda value: value > 11 * mebibyte)
            # Whoever does not read goes.
            self.assertEqual(server.request("POST", "/detokenize", tokens)[0], 200)
            server.wait_for_metric("http_unread_bytes", lambda value: value < mebibyte)
            self.assertEqual(server.request("POST", "/detokenize", {"tokens": ids})[0], 200)
            connection.close()
            server.wait_for_metric("http_unread_bytes", lambda value: value == 0)
            self.assertEqual(server.request("POST", "/detokenize", tokens)[0], 200)


if __name__ == "__main__":
    running_server.main()
