"""From the start of the server to its end."""

import concurrent.futures
import json
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import running_server
from running_server import CHAT, LIMIT, LONG_ANSWERS, RunningServer, chat, wait_for

LONG = dict(max_tokens=300, ignore_eos=True)


class Lifecycle(unittest.TestCase):
    def send(self, server, text="hi", receive_buffer=None, **fields):
        """A connection on which a long answer is requested; receive_buffer: bytes that the client's system holds, about."""
        body = json.dumps(chat(text, **{"stream": True, **LONG, **fields})).encode()
        connection = socket.socket()
        connection.settimeout(LIMIT)
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        return connection

    def stream(self, server, **fields):
        """One that has begun to receive it."""
        connection = self.send(server, **fields)
        received = b""
        while b'"content":' not in received.replace(b'"content":null', b""):
            received += connection.recv(4096)
        return connection, received

    def rest(self, connection):
        received = b""
        while part := connection.recv(65536):
            received += part
        connection.close()
        return received

    def test_answers_end_before_the_server_does(self):
        with RunningServer() as server:
            connection, _ = self.stream(server)
            server.process.send_signal(signal.SIGTERM)
            self.assertTrue(self.rest(connection).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"))
            self.assertEqual(server.process.wait(LIMIT), 0)

    def test_a_slow_reader_gets_its_answer_before_the_server_ends(self):
        with RunningServer("--timeout", "600") as server:
            # More than buffers between the two hold, so that much of it waits in the server when it has been made.
            connection = self.send(server, receive_buffer=4096, n=16, logprobs=True, top_logprobs=20)
            server.wait_for_metric("requests_finished_total", lambda value: value == 16)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(2.5)  # it looks once a second whether all is done
            self.assertTrue(server.alive())
            self.assertTrue(self.rest(connection).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"))
            self.assertEqual(server.process.wait(LIMIT), 0)

    def test_what_generates_nothing_is_answered_before_the_server_ends(self):
        with RunningServer() as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            body = json.dumps({"content": "some words " * (3 << 19)})
            while True:
                answer = pool.submit(server.request, "POST", "/tokenize", body)
                wait_for(lambda: answer.done() or server.metric("http_body_bytes") >= len(body), "nothing is read")
                if not answer.done():
                    break
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(answer.result()[0], 200)
            self.assertEqual(server.process.wait(LIMIT), 0)

    def test_a_client_that_sent_more_before_it_went(self):
        with RunningServer(*LONG_ANSWERS) as server:
            for more in (b"\r\n", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"):
                cancelled = server.metric("requests_cancelled_total")
                connection = self.send(server, max_tokens=100000, stream=False)
                server.wait_for_metric("requests_running", lambda value: value == 1)
                connection.sendall(more)
                connection.close()
                server.wait_for_metric("requests_cancelled_total", lambda value: value == cancelled + 1)

    def test_requests_sent_during_an_answer_are_answered(self):
        with RunningServer() as server:
            body = json.dumps(chat("hi", max_tokens=100)).encode()
            one = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            # The first of the others is cut where no part of a request ends.
            with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as connection:
                connection.sendall(one + one[:20])
                wait_for(lambda: server.unread() == 0, "what follows a request is not read")
                connection.sendall(one[20:] + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
                received = self.rest(connection)
            self.assertEqual(received.count(b"HTTP/1.1 200 "), 3)

    def test_no_new_requests_while_stopping(self):
        with RunningServer(*LONG_ANSWERS) as server:
            connection, _ = self.stream(server, max_tokens=100000)
            server.process.send_signal(signal.SIGTERM)
            while server.request("GET", "/health")[0] == 200:
                time.sleep(0.02)
            status, answer = server.request("POST", CHAT, chat())
            self.assertEqual((status, answer["error"]["code"]), (503, "stopping"))
            self.assertEqual(server.request("GET", "/health")[0], 503)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(LIMIT), 0)
            connection.close()

    def test_a_client_that_waits_hears_of_it(self):
        with RunningServer("--parallel", "1", "--queue", "1000") as server:
            # Far more work than ten seconds have room for is before it: 800 answers as long as the context.
            connections = [self.send(server, max_tokens=100000, n=8) for _ in range(100)]
            late = self.send(server)
            received = b""
            while b": waiting\n\n" not in received:
                part = late.recv(4096)
                self.assertTrue(part, "the answer has ended")
                received += part
            self.assertNotIn(b'"content":', received.replace(b'"content":null', b""))
            for connection in [*connections, late]:
                connection.close()

    def test_a_full_queue(self):
        with RunningServer("--parallel", "1", "--queue", "1") as server:
            # All at once: the first runs, another waits, and there is no room for more however fast the machine is.
            body = json.dumps(chat(max_tokens=100000, ignore_eos=True, temperature=0)).encode()
            sent = (f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n").encode() + body
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                answers = [answer.decode() for answer in pool.map(server.raw, [sent] * 12)]
            refused = [answer for answer in answers if answer.startswith("HTTP/1.1 429 ")]
            self.assertEqual(len(refused) + sum(answer.startswith("HTTP/1.1 200 ") for answer in answers), 12)
            self.assertGreater(len(refused), 0)
            for answer in refused:
                self.assertIn('"queue_full"', answer)
                self.assertRegex(answer, r"\r\nRetry-After: [1-9]")

    def test_a_queue_has_room(self):
        failed = subprocess.run([running_server.PROGRAM, "--port", "0", "--queue", "0"], capture_output=True, text=True)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("--queue", failed.stderr)

    def test_more_choices_than_may_wait(self):
        with RunningServer("--parallel", "1", "--queue", "2") as server:
            for stream in (False, True):
                status, answer = server.request("POST", CHAT, chat("hi", n=8, stream=stream, max_tokens=2))
                self.assertEqual(status, 200, answer)
                text = json.dumps(answer) if not stream else answer.decode()
                self.assertEqual(text.count('"finish_reason": "length"' if not stream else '"finish_reason":"length"'), 8)

    def test_tools_are_described_where_the_template_has_them(self):
        tools = [{"type": "function", "function": {"name": "weather", "description": "Of a city",
                                                   "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
        with RunningServer("--chat-template", "deepseek-v3.1") as server:
            status, answer = server.request("POST", "/apply-template", chat("Rain?", tools=tools))
            self.assertEqual(status, 200)
            self.assertIn("weather", answer["prompt"])
            self.assertIn("Of a city", answer["prompt"])
            history = chat("Rain?", tools=tools, max_tokens=3)
            history["messages"] += [{"role": "assistant", "content": None, "tool_calls": [
                                        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Bonn\"}"}}]},
                                    {"role": "tool", "tool_call_id": "a", "content": "sunny"}]
            self.assertIn("sunny", server.request("POST", "/apply-template", history)[1]["prompt"])
            self.assertEqual(server.request("POST", CHAT, history)[0], 200)

    def test_the_examples_that_are_installed(self):
        share = pathlib.Path(__file__).parents[2] / "apps" / "server" / "share"
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder, "keys")
            keys.write_text((share / "keys").read_text())
            found = re.search(r'^TESSERA_FLAGS="(.*)"$', (share / "server.flags").read_text(), re.M).group(1).split()
            flags = found + ["--port", "0", "--config", str(share / "config.toml"), "--api-key-file", str(keys)]
            with RunningServer(*flags) as server:
                named = [line.split()[0] for line in keys.read_text().splitlines() if line and not line.startswith("#")]
                self.assertEqual(len(named), 3)
                for key in named:
                    self.assertEqual(server.request("POST", CHAT, chat(max_tokens=1), {"Authorization": "Bearer " + key})[0], 200)
                self.assertEqual(server.request("POST", CHAT, chat(max_tokens=1))[0], 401)

    def test_a_port_that_is_taken(self):
        with RunningServer() as server:
            other = subprocess.run([running_server.PROGRAM, "--port", str(server.port)], capture_output=True, text=True)
            self.assertEqual(other.returncode, 1)
            self.assertIn("another program has it", other.stderr)
            self.assertIn("--port", other.stderr)

    def test_a_model_that_cannot_be_loaded(self):
        failed = subprocess.run([running_server.PROGRAM, "--port", "0", "-c", "1000000000"], capture_output=True, text=True)
        self.assertNotEqual(failed.returncode, 0)
        failed = subprocess.run([running_server.PROGRAM, "-m", "/proc/nowhere.gguf", "--port", "0"], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("nowhere.gguf", failed.stderr)

    def test_a_signal_ends_loading(self):
        # The small model loads fast: not each signal is in time.
        for _ in range(20):
            with RunningServer(wait=False) as server:
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(LIMIT), 0)
                server.reader.join(10)
                if not any(line.startswith("ready after") for line in server.lines):
                    self.assertEqual(server.lines[-1], "stopped\n")
                    return
        self.fail("no signal ended loading before the model was ready")

    def test_hangups_before_the_server_is_ready(self):
        hangup = 1 << (signal.SIGHUP - 1)
        for _ in range(3):
            process = subprocess.Popen([running_server.PROGRAM, "--port", "0"], stderr=subprocess.PIPE, text=True)
            # From the first instant at which the program can have done something about it.
            end = time.monotonic() + LIMIT
            while time.monotonic() < end:
                with open(f"/proc/{process.pid}/status") as file:
                    caught = next(line for line in file if line.startswith("SigCgt"))
                if int(caught.split()[1], 16) & hangup:
                    break
            for _ in range(50):
                process.send_signal(signal.SIGHUP)
                time.sleep(0.005)
            for line in process.stderr:
                if line.startswith("ready after"):
                    break
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            self.assertEqual(process.wait(LIMIT), 0)
            process.stderr.close()

    def test_health_answers_during_prompts(self):
        with RunningServer("--parallel", "1") as server:
            # No two begin alike, so that each is computed.
            connections = [self.send(server, f"{number} box " * 200, max_tokens=1) for number in range(100)]
            server.wait_for_metric("requests_running", lambda value: value > 0)
            for _ in range(20):
                self.assertEqual(server.request("GET", "/health")[0], 200)
                self.assertEqual(server.request("GET", "/slots")[0], 200)
            for connection in connections:
                connection.close()

    def test_a_reader_that_stops_reading_is_disconnected(self):
        with RunningServer("--timeout", "1") as server:
            connection = self.send(server, receive_buffer=4096, n=16, max_tokens=1500, logprobs=True, top_logprobs=20)
            server.wait_for_metric("requests_cancelled_total", lambda value: value > 0)
            server.wait_for_metric("requests_running", lambda value: value == 0)
            connection.close()


if __name__ == "__main__":
    running_server.main()
