"""Floods, each bounded in time and count: what the server holds stays bounded, and others are answered meanwhile."""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import tempfile
import threading
import time
import unittest

import running_server
from running_server import CHAT, LIMIT, LONG_ANSWERS, RunningServer, chat, wait_for

MIB = 1 << 20
POST = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
TOKENIZE = POST % b"/tokenize"


def resident(server):
    """Bytes of the server in memory that belong to no file."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1]) << 10


def connect(server, source="127.0.0.1", receive_buffer=None):
    """Addresses of 127.0.0.0/8 stand for different clients."""
    connection = socket.socket()
    connection.settimeout(LIMIT)
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.bind((source, 0))
    connection.connect(("127.0.0.1", server.port))
    return connection


def ask(server, source, method=b"GET", path=b"/health", body=b"", headers=b"", timeout=LIMIT):
    """The status of the answer; 0: there was none. As a client of that address."""
    try:
        with connect(server, source) as connection:
            connection.settimeout(timeout)
            head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"
            connection.sendall(head % (method, path, headers, len(body)) + body)
            return int(connection.recv(65536)[9:12])
    except (OSError, ValueError):
        return 0


def pour(connection, head, pattern, most):
    """Sends `head`, then `pattern` again and again until the other end answers or ends the connection; how much it took, and its answer.
    Who neither reads, nor answers, nor closes within the connection's time limit fails the test."""
    answer, sent = b"", 0
    block = pattern * (65536 // len(pattern) + 1)
    try:
        connection.sendall(head)
        while sent < most and not answer:
            connection.sendall(block)
            sent += len(block)
            if select.select([connection], [], [], 0)[0]:
                answer = connection.recv(65536)
                if not answer:
                    return sent, answer
        # To the end of the connection: what is refused is not kept.
        while part := connection.recv(65536):
            answer += part
    except ConnectionError:
        pass
    except TimeoutError:
        raise AssertionError(f"after {sent} bytes nothing was read, answered or closed; received were {answer[:100]}") from None
    return sent, answer


def gives_back(server, most):
    """What is no longer needed, at once or a few seconds later."""
    wait_for(lambda: resident(server) < most, lambda: f"{resident(server)} bytes are held, {most} should be enough")


class Endless(unittest.TestCase):
    """Bytes that belong to no body."""

    def flood(self, head, pattern, most=64 * MIB):
        """Sends `pattern` again and again until the server ends the connection; how much it took."""
        with RunningServer() as server:
            before = resident(server)
            with connect(server) as connection:
                sent, answer = pour(connection, head, pattern, most)
                grown = resident(server) - before
            self.assertLess(grown, 8 * MIB)
            self.assertEqual(server.request("GET", "/health")[0], 200)
            return sent, answer

    def test_who_stalls_is_seen(self):
        with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_connection(silent.getsockname()) as connection:
            connection.settimeout(0.2)
            with self.assertRaisesRegex(AssertionError, "nothing was read"):
                pour(connection, b"GET / HTTP/1.1\r\n", b"y" * 1000, 64 * MIB)
        # Nor is an answer enough behind which the connection stays.
        with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_connection(silent.getsockname()) as connection:
            connection.settimeout(0.2)
            other, _ = silent.accept()
            with other, self.assertRaisesRegex(AssertionError, "nothing was read.*431"):
                other.sendall(b"HTTP/1.1 431 Too Large\r\n\r\n")
                pour(connection, b"GET / HTTP/1.1\r\n", b"y" * 1000, 64 * MIB)

    def refused(self, head, pattern):
        sent, answer = self.flood(head, pattern)
        self.assertLess(sent, 8 * MIB)
        # The system may drop the answer where bytes come that nobody reads.
        self.assertRegex(answer, rb"^(HTTP/1.1 4\d\d |$)")

    CHUNKED = b"%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

    def test_trailers(self):
        for target in (b"GET /health", b"POST /tokenize"):
            with self.subTest(target):
                self.refused(self.CHUNKED % target + b"0\r\n", b"X-Trailer: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
                self.refused(self.CHUNKED % target + b"0\r\nX: ", b"y" * 1000)

    def test_an_extension(self):
        self.refused(self.CHUNKED % b"GET /health" + b"1;", b"x" * 1000)
        self.refused(self.CHUNKED % b"GET /health" + b"0;x=", b"x" * 1000)

    def test_extensions_of_many_chunks(self):
        self.refused(self.CHUNKED % b"POST /tokenize", b"1;name=" + b"v" * 4000 + b"\r\n \r\n")

    def test_the_size_of_a_chunk(self):
        self.refused(self.CHUNKED % b"GET /health", b"0" * 1000)

    def test_a_body_that_nobody_wants(self):
        self.refused(self.CHUNKED % b"GET /health", b"400\r\n" + b"x" * 1024 + b"\r\n")
        with RunningServer() as server:
            self.assertIn(b" 413 ", server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"))

    def test_a_header(self):
        self.refused(b"GET /health HTTP/1.1\r\n", b"X: y\r\n")
        self.refused(b"GET /", b"y" * 1000)
        self.refused(b"", b"y" * 1000)

    def test_small_extensions_and_trailers_pass(self):
        with RunningServer() as server:
            answer = server.raw(TOKENIZE + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                                b"a;name=value;other=\"quoted\"\r\n{\"content\"\r\n5;x\r\n:\"a\"}\r\n0;last\r\nX-Sum: 3\r\nX-Other: 4\r\n\r\n")
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
            self.assertTrue(answer.endswith(b"]}"), answer)

    def test_headers_that_do_not_end(self):
        """Fields as small as can be take the most memory once they are taken apart."""
        with RunningServer() as server:
            before = resident(server)
            with contextlib.ExitStack() as stack:
                for number in range(400):
                    connection = stack.enter_context(connect(server, f"127.0.1.{number % 4 + 1}"))
                    connection.sendall(b"GET /health HTTP/1.1\r\n" + b"a:\r\n" * 15000)
                wait_for(lambda: server.unread() == 0, "headers are not read")
                self.assertLess(resident(server) - before, 400 * 160 << 10)
                self.assertEqual(server.request("GET", "/health")[0], 200)


class Framing(unittest.TestCase):
    """What does not say for certain where a message ends is refused, and nothing behind it is a request."""

    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    HIDDEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def statuses(self, headers, body, version=b"1.1", host=b"Host: localhost\r\n"):
        head = b"POST /tokenize HTTP/%s\r\n%sContent-Type: application/json\r\n%s\r\n" % (version, host, headers)
        answer = self.server.raw(head + body + self.HIDDEN)
        return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]], answer

    def test_codings(self):
        chunks = b"d\r\n{\"content\":1}\r\n0\r\n\r\n"
        for coding, status in ((b"gzip", 501), (b"identity", 501), (b"gzip, chunked", 501), (b"chunked, gzip", 501), (b"xchunked", 501),
                               (b"chunked, chunked", 501), (b"chunked;q=1", 501), (b"\"chunked\"", 501), (b"", 501), (b"chunked,", 501),
                               (b", chunked", 501), (b"chunked\x0b", 400), (b"trailers, deflate", 501)):
            with self.subTest(coding):
                found, answer = self.statuses(b"Transfer-Encoding: %s\r\n" % coding, chunks)
                self.assertEqual(len(found), 1, answer)
                self.assertIn(found[0], (status, 400))
                self.assertIn(b"Connection: close", answer)

    def test_more_than_one_length(self):
        for headers in (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 13\r\n",
                        b"Content-Length: 13\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\nContent-Length: 13\r\n",
                        b"Content-Length: 13\r\nTransfer-Encoding: gzip\r\n", b"Content-Length: 13\r\nContent-Length: 13\r\n",
                        b"Content-Length: 13, 13\r\n", b"Content-Length: 13\r\nContent-Length: 14\r\n", b"Content-Length: +13\r\n",
                        b"Content-Length: 0x0d\r\n", b"Content-Length: \r\n", b"Content-Length: 13 13\r\n", b"Content-Length : 13\r\n",
                        b" Content-Length: 13\r\n"):
            with self.subTest(headers):
                found, answer = self.statuses(headers, b"{\"content\":1}")
                self.assertEqual(len(found), 1, answer)
                self.assertIn(found[0], (400, 501))

    def test_chunks_of_http_1_0(self):
        found, answer = self.statuses(b"Transfer-Encoding: chunked\r\n", b"d\r\n{\"content\":1}\r\n0\r\n\r\n", version=b"1.0")
        self.assertEqual(found, [400], answer)

    def test_chunks_that_are_none(self):
        for body in (b"d\n{\"content\":1}\r\n0\r\n\r\n", b"0x1\r\n \r\n0\r\n\r\n", b"-1\r\n", b"1\r\nab\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n",
                     b"1 ; \x01\r\n \r\n0\r\n\r\n", b"0\r\nContent-Length: 4\r\n\r\n", b"0\r\nbad trailer\r\n\r\n", b"\r\n"):
            with self.subTest(body):
                found, answer = self.statuses(b"Transfer-Encoding: chunked\r\n", body)
                self.assertEqual(len(found), 1, answer)
                self.assertIn(found[0], (400, 413, 431))

    def test_what_is_expected(self):
        found, _ = self.statuses(b"Expect: the-unexpected\r\nContent-Length: 13\r\n", b"{\"content\":1}")
        self.assertEqual(found, [417])

    def test_tls_is_told(self):
        self.assertIn(b"TLS", self.server.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))


class Bodies(unittest.TestCase):
    """One client's bodies against another's."""

    def test_bodies_that_never_end(self):
        with RunningServer() as server, contextlib.ExitStack() as stack:
            for _ in range(5):
                connection = stack.enter_context(connect(server, "127.0.1.1"))
                with contextlib.suppress(ConnectionError):
                    connection.sendall(TOKENIZE + b"Content-Length: %d\r\n\r\n" % (64 * MIB) + b" " * (52 * MIB))
            server.wait_for_metric("http_body_bytes", lambda value: value > 150 * MIB)
            for source in ("127.0.1.2", "127.0.1.1"):
                self.assertEqual(ask(server, source, b"POST", b"/tokenize", b'{"content":"a"}'), 200)
            large = b'{"content":"a"}'.ljust(60 * MIB)
            self.assertEqual(ask(server, "127.0.1.2", b"POST", b"/tokenize", large), 200)

    def test_the_slowest_body_of_who_holds_most_goes_first(self):
        with RunningServer("--body-limit", "8", "--held-limit", "16") as server, contextlib.ExitStack() as stack:
            def begin(source, sent):
                connection = stack.enter_context(connect(server, source))
                connection.sendall(TOKENIZE + b"Content-Length: %d\r\n\r\n" % (8 * MIB) + b" " * sent)
                server.wait_for_metric("http_body_bytes", lambda value: value >= before + sent - 65536)
                return connection

            before = 0
            modest = begin("127.0.1.2", 3 * MIB)
            before = 3 * MIB
            started = time.monotonic()
            first = begin("127.0.1.1", 6 * MIB)
            before = 9 * MIB
            # However long sending takes here, the second is sent in far less time than has passed since the first began.
            time.sleep(2 + 2 * (time.monotonic() - started))
            second = begin("127.0.1.1", 5 * MIB)
            other = stack.enter_context(connect(server, "127.0.1.3"))
            body = b'{"content":"a"}'.ljust(5 * MIB)
            other.sendall(TOKENIZE + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.assertIn(b" 200 ", other.recv(65536))
            answer = first.recv(65536)
            self.assertIn(b" 503 ", answer)
            self.assertIn(b"overloaded", answer)
            self.assertEqual(select.select([modest, second], [], [], 0)[0], [])

    def test_a_body_that_stops_is_given_up(self):
        with RunningServer() as server, connect(server) as connection:
            begin = time.monotonic()
            connection.sendall(TOKENIZE + b"Content-Length: %d\r\n\r\n" % (64 * MIB) + b" " * (4 * MIB))
            answer = b""
            ended = False
            try:
                # A trickle does not keep it.
                while not ended:
                    connection.sendall(b" ")
                    if select.select([connection], [], [], 1)[0]:
                        part = connection.recv(65536)
                        answer, ended = answer + part, not part
                    self.assertLess(time.monotonic() - begin, LIMIT, "30 seconds are a window")
            except ConnectionError:
                pass
            self.assertTrue(answer == b"" or b" 408 " in answer, answer)

    def test_small_bodies_beside_small_ones(self):
        with RunningServer("--held-limit", "1") as server, contextlib.ExitStack() as stack:
            for _ in range(100):
                connection = stack.enter_context(connect(server, "127.0.1.1"))
                with contextlib.suppress(ConnectionError):
                    connection.sendall(TOKENIZE + b"Content-Length: %d\r\n\r\n" % (1 << 18) + b" " * (250 << 10))
            for _ in range(10):
                self.assertEqual(ask(server, "127.0.1.2", b"POST", b"/tokenize", b'{"content":"a"}'.ljust(200 << 10)), 200)


class Cost(unittest.TestCase):
    """Work and memory that a few bytes, or many of one kind, ask for."""

    @contextlib.contextmanager
    def grows_at_most(self, server, most):
        """By so many bytes at any time, and hardly at all in the end."""
        before, ended, largest = resident(server), threading.Event(), [0]

        def watch():
            while not ended.wait(0.01):
                largest[0] = max(largest[0], resident(server))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
        self.assertLess(largest[0] - before, most)
        gives_back(server, before + 32 * MIB)

    def seconds(self, server, path, body, code):
        begin = server.processor_seconds()
        status, answer = server.request("POST", path, body)
        self.assertEqual((status, answer["error"]["code"]), (400, code), answer)
        return server.processor_seconds() - begin

    def test_what_is_far_too_long_is_refused_before_it_is_written_or_tokenised(self):
        """It takes a few times as long as to read the same text as JSON, and memory for little more than that."""
        letters = "a" * (62 * MIB)
        user = [{"role": "user", "content": "q"}]
        calls = [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": letters})}}]}]
        lists = [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "[" + "[]," * (20 * MIB) + "1]"}}]}]
        tools = [{"type": "function", "function": {"name": "f", "description": letters, "parameters": {}}}]
        requests = ((CHAT, chat(letters)), (CHAT, {"messages": [{"role": "system", "content": letters}] + user}),
                    (CHAT, {"messages": user + [{"role": "user", "content": "a" * 1000}] * 60000}),
                    (CHAT, {"messages": user + calls + user}), (CHAT, {"messages": user + lists + user}), (CHAT, {"messages": user, "tools": tools}),
                    ("/v1/completions", {"prompt": letters}), ("/completion", {"prompt": letters}), ("/completion", {"prompt": "a b" * (20 * MIB)}),
                    ("/completion", {"prompt": [5, letters]}), ("/v1/completions", {"prompt": ["a", letters]}))
        with RunningServer("--chat-template", "qwen3") as server:
            read = self.seconds(server, "/completion", json.dumps({"no_such_field": letters}), "unknown_parameter")
            for path, fields in requests:
                body = json.dumps(fields)
                # Tools are kept as they came, too, and arguments as text and as JSON.
                kept_twice = "tools" in fields or "tool_calls" in body
                with self.subTest(path, body=body[:60]), self.grows_at_most(server, (400 if kept_twice else 250) * MIB):
                    self.assertLess(self.seconds(server, path, body, "context_length_exceeded"), 10 * read)

    # Much work for a worker, whether it is refused in the end or not.
    READING = {
        "a text of many words": (b"/tokenize", b'{"content":"' + b"a b" * (10 * MIB) + b'"}'),
        "many tokens to write": (b"/detokenize", b'{"tokens":[' + b"300," * (8 * MIB) + b"5]}"),
        "a prompt of many tokens": (b"/completion", b'{"prompt":[' + b"5," * (8 * MIB) + b"5]}"),
        "a prompt of many parts": (b"/completion", b'{"prompt":[' + b'5,"a b",' * (4 * MIB) + b"5]}"),
        "many long prompts": (b"/v1/completions", b'{"prompt":[' + b",".join([b'"' + b"a b" * 100000 + b'"'] * 128) + b"]}"),
        "many prompts of tokens": (b"/v1/completions", b'{"prompt":[' + b",".join([b"[" + b"5," * 60000 + b"5]"] * 128) + b"]}"),
    }

    def test_others_are_answered_beside_what_takes_long_to_read(self):
        short = json.dumps(chat(max_tokens=1)).encode()

        def median(server, count=15):
            times = []
            for _ in range(count):
                begin = time.monotonic()
                self.assertEqual(ask(server, "127.0.1.2", b"POST", CHAT.encode(), short), 200)
                times.append(time.monotonic() - begin)
            return sorted(times)[count // 2]

        for name, (path, body) in self.READING.items():
            with self.subTest(name), RunningServer() as server, self.grows_at_most(server, 600 * MIB):
                ended, statuses, floods = threading.Event(), set(), []

                def flood():
                    while not ended.is_set():
                        begin = time.monotonic()
                        statuses.add(ask(server, "127.0.1.1", b"POST", path, body))
                        floods.append(time.monotonic() - begin)

                flooding = threading.Thread(target=flood)
                flooding.start()
                try:
                    server.wait_for_metric("http_body_bytes", lambda value: value > MIB)
                    beside = median(server)
                finally:
                    ended.set()
                    flooding.join()
                self.assertLessEqual(statuses, {200, 400, 503})
                # Behind one of them it would take as long.
                self.assertLess(beside, max(floods) / 2)

    def test_json_that_is_larger_than_its_text(self):
        with RunningServer("--held-limit", "128") as server:
            before = resident(server)
            for text in (b"[]," * (20 * MIB), b'{"":1},' * (8 * MIB), b"1," * (30 * MIB)):
                body = b'{"prompt":[' + text[:-1] + b"]}"
                status, answer = server.request("POST", "/v1/completions", body)
                self.assertIn(status, (400, 503), answer)
            gives_back(server, before + 32 * MIB)
            self.assertEqual(server.request("POST", CHAT, chat(max_tokens=1))[0], 200)

    def test_one_word_that_is_tokenised(self):
        with RunningServer() as server:
            before = resident(server)
            status, _ = server.request("POST", "/tokenize", {"content": "a" * (62 * MIB)})
            self.assertEqual(status, 400)
            gives_back(server, before + 32 * MIB)


class Places(unittest.TestCase):
    """Connections and the queue: one client's against another's."""

    def test_the_queue(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = os.path.join(folder, "keys")
            with open(keys, "w") as file:
                file.write("red\nblue\ngreen\n")
            with RunningServer("--api-key-file", keys, "--parallel", "2", "--queue", "16") as server, contextlib.ExitStack() as stack:
                def header(key):
                    return b"Authorization: Bearer %s\r\n" % key

                def send(key, **fields):
                    body = json.dumps(chat(max_tokens=100000, stream=True, ignore_eos=True, **fields)).encode()
                    connection = stack.enter_context(connect(server))
                    connection.sendall(POST % CHAT.encode() + header(key) + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                    return int(connection.recv(65536)[9:12])

                self.assertEqual(send(b"red", n=16), 200)
                statuses = [send(b"red", n=16) for _ in range(3)] + [send(b"red") for _ in range(30)]
                self.assertIn(429, statuses)
                body = json.dumps(chat(max_tokens=2)).encode()
                for key in (b"blue", b"green", b"blue"):
                    self.assertEqual(ask(server, "127.0.0.1", b"POST", CHAT.encode(), body, header(key)), 200)
                # Many of a newcomer's do not take the places of the next one either.
                self.assertEqual(send(b"blue", n=4), 200)
                self.assertEqual([send(b"blue", n=16) for _ in range(3)], [429] * 3)
                self.assertEqual(ask(server, "127.0.0.1", b"POST", CHAT.encode(), body, header(b"green")), 200)

    FLOODS = {
        "idle": b"",
        "header": b"GET /health HTTP/1.1\r\n",
        "body": TOKENIZE + b"Content-Length: 5000\r\n\r\n{",
        "refused": b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
        "kept": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }

    def flooded(self, server, data, count):
        """So many connections of one address that have sent `data`; while they come, others are answered."""
        connections = []
        try:
            for number in range(count):
                connections.append(connect(server, "127.0.1.1"))
                with contextlib.suppress(ConnectionError):
                    connections[-1].sendall(data)
                if number % 100 == 99:
                    self.assertEqual(ask(server, "127.0.1.1"), 200, f"of the same address after {number}")
                    self.assertEqual(ask(server, "127.0.1.2"), 200, f"of another address after {number}")
            self.assertEqual(ask(server, "127.0.1.2", b"POST", b"/tokenize", b'{"content":"a"}'), 200)
        finally:
            for connection in connections:
                connection.close()

    def allow(self, count):
        soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most < count:
            self.skipTest("this process may not open so many")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), most))
        return most

    def test_connections_in_every_state(self):
        self.allow(8192)
        for name, data in self.FLOODS.items():
            with self.subTest(name), RunningServer() as server:
                self.flooded(server, data, 1500)

    def answers(self, **fields):
        body = json.dumps(chat(max_tokens=100000, stream=True, ignore_eos=True, **fields)).encode()
        return POST % CHAT.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def test_connections_that_wait_for_answers(self):
        self.allow(8192)
        with RunningServer("--queue", "100000") as server:
            self.flooded(server, self.answers(), 1500)

    def test_descriptors(self):
        most = self.allow(8192)
        # Of those whose answers wait several, for what they leave depends on who is faster.
        floods = [*self.FLOODS.items(), *[("answers", self.answers())] * 8]
        for name, data in floods:
            with self.subTest(name), RunningServer("--queue", "100000") as server:
                resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (100, most))
                self.flooded(server, data, 300)

    def test_answers_that_are_not_read(self):
        with RunningServer("--held-limit", "20") as server, contextlib.ExitStack() as stack:
            tokens = server.request("POST", "/tokenize", {"content": " diciotto", "parse_special": False})[1]["tokens"]
            tokens = json.dumps({"tokens": tokens * (12 * MIB // 9)}).encode()
            for _ in range(3):
                slow = stack.enter_context(connect(server, "127.0.1.1", 4096))
                slow.sendall(POST % b"/detokenize" + b"Content-Length: %d\r\n\r\n" % len(tokens) + tokens)
                server.wait_for_metric("http_unread_bytes", lambda value: value > 8 * MIB)
            self.assertEqual(ask(server, "127.0.1.2", b"POST", b"/detokenize", tokens), 200)

    def test_a_client_that_sent_much_more_before_it_went(self):
        # The end behind what is not read is asked for twice a second: the answer takes longer than that.
        with RunningServer(*LONG_ANSWERS) as server:
            body = json.dumps(chat(max_tokens=100000, ignore_eos=True)).encode()
            connection = connect(server)
            connection.sendall(POST % CHAT.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            server.wait_for_metric("requests_running", lambda value: value == 1)
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 600)
            wait_for(lambda: server.unread() > 0, "all is read, however much follows a request")
            connection.close()
            server.wait_for_metric("requests_cancelled_total", lambda value: value == 1)

    def test_limits_hold_for_what_generates_nothing(self):
        with RunningServer("--client-limits", "requests-per-minute=4") as server:
            for path, body in (("/tokenize", {"content": "a"}), ("/detokenize", {"tokens": [5]}), ("/apply-template", chat()), ("/tokenize", {"content": "a"})):
                self.assertEqual(server.request("POST", path, body)[0], 200)
            for path in ("/tokenize", "/detokenize", "/apply-template", CHAT):
                status, answer = server.request("POST", path, {"content": "a"})
                self.assertEqual((status, answer["error"]["code"]), (429, "rate_limit_exceeded"))
        with RunningServer("--client-limits", "tokens-per-minute=1000") as server:
            self.assertEqual(server.request("POST", "/tokenize", {"content": "word " * 1000})[0], 200)
            self.assertEqual(server.request("POST", "/tokenize", {"content": "a"})[0], 429)
        with RunningServer("--client-limits", "requests-per-minute=8") as server:
            self.assertEqual(server.request("POST", CHAT, chat(n=8, max_tokens=1))[0], 200)
            self.assertEqual(server.request("POST", CHAT, chat(max_tokens=1))[0], 429)


if __name__ == "__main__":
    running_server.main()
