"""TLS as clients see it: curl, Python's ssl and the openai client, with an authority of the test's own."""

import concurrent.futures
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import warnings

import httpx
import openai

import running_server
from running_server import CHAT, LIMIT, LONG_ANSWERS, RunningServer, chat, wait_for

COUNT = [{"role": "user", "content": "Count from 1 to 10 in French."}]
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"


def openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


class Authority:
    """Signs certificates of this machine, in files of a folder."""

    KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def __init__(self, folder, name):
        self.key, self.certificate = os.path.join(folder, name + ".key"), os.path.join(folder, name + ".pem")
        openssl("req", "-x509", *self.KEY, "-keyout", self.key, "-out", self.certificate, "-days", "2", "-subj", "/CN=" + name)

    def issue(self, name, certificate, key):
        request = certificate + ".csr"
        openssl("req", *self.KEY, "-keyout", key, "-out", request, "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-days", "2", "-copy_extensions", "copy", "-out", certificate)

    def context(self, *protocols):
        """Of a client that trusts this authority alone."""
        context = ssl.create_default_context(cafile=self.certificate)
        if protocols:
            context.set_alpn_protocols(protocols)
        return context


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.certificate, cls.key = (os.path.join(cls.folder.name, name) for name in ("server.pem", "server.key"))
        cls.authority = Authority(cls.folder.name, "known")
        cls.authority.issue("first", cls.certificate, cls.key)
        cls.context = cls.authority.context()
        cls.server = RunningServer("--tls-cert", cls.certificate, "--tls-key", cls.key, "--parallel", "16", tls=cls.context).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def connect(self, context=None, receive_buffer=None, **how):
        plain = socket.socket()
        plain.settimeout(LIMIT)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            plain.connect(("127.0.0.1", self.server.port))
            # An end that is not said to be one is an error.
            return (context or self.context).wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False, **how)
        except BaseException:
            plain.close()
            raise

    def name(self):
        """Whom a new connection finds."""
        with self.connect() as connection:
            return dict(part[0] for part in connection.getpeercert()["subject"])["commonName"]

    def health(self):
        self.assertEqual(self.server.request("GET", "/health")[0], 200)

    def rest(self, connection):
        received = b""
        while part := connection.recv(65536):
            received += part
        return received

    def test_the_address_is_said(self):
        self.assertTrue(any(line.startswith("listening at https://127.0.0.1:") for line in self.server.lines), self.server.lines)

    def test_curl(self):
        def curl(*words):
            return subprocess.run(["curl", "-sS", *words, f"https://localhost:{self.server.port}/health"], capture_output=True, text=True, timeout=LIMIT)

        done = curl("--cacert", self.authority.certificate, "-w", " %{http_code} %{http_version} %{ssl_verify_result}", "--http2")
        self.assertEqual((done.returncode, done.stdout.split()[-3:]), (0, ["200", "1.1", "0"]), done)
        self.assertEqual(curl().returncode, 60, "an authority that is not known")
        self.health()

    def test_other_authorities_are_refused_by_the_client(self):
        other = Authority(self.folder.name, "other")
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.connect(other.context())
        self.health()

    def test_versions(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.authority.context()
            context.minimum_version = context.maximum_version = version
            with self.connect(context) as connection:
                self.assertEqual(connection.version(), version.name.replace("_", "."))
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertTrue(self.rest(connection).startswith(b"HTTP/1.1 200 "))
        old = self.authority.context()
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaisesRegex(ssl.SSLError, "(?i)version"):
            self.connect(old)

    def test_protocols(self):
        with self.connect(self.authority.context("h2", "http/1.1")) as connection:
            self.assertEqual(connection.selected_alpn_protocol(), "http/1.1")
        with self.assertRaisesRegex(ssl.SSLError, "(?i)no.application.protocol"):
            self.connect(self.authority.context("h2"))

    def test_sessions_are_taken_up_again(self):
        context = self.authority.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.connect(context) as connection:
            session = connection.session
        with self.connect(context, session=session) as connection:
            self.assertTrue(connection.session_reused)

    def test_http_in_the_clear(self):
        for data in (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", b"\r\n"):
            answer = self.server.raw(data)
            self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
            self.assertIn(b"text/plain", answer)
            self.assertIn(b"https://", answer)
        # What looks like TLS at first is answered as TLS has it, by an alert.
        self.assertEqual(self.server.raw(b"\x16\x03\x01\x00\x05hello")[:1], b"\x15")
        self.health()

    def test_pages_of_this_server(self):
        for scheme, status in (("https", 200), ("http", 403)):
            self.assertEqual(self.server.request("GET", "/v1/models", None, {"Origin": f"{scheme}://127.0.0.1:{self.server.port}"})[0], status, scheme)

    def test_openai_client(self):
        with httpx.Client(verify=self.context) as transport:
            client = openai.OpenAI(base_url=f"https://localhost:{self.server.port}/v1", api_key="none", http_client=transport, max_retries=0)
            self.assertEqual(client.chat.completions.create(model="any", messages=COUNT).choices[0].message.content, ANSWER)
            parts = client.chat.completions.create(model="any", messages=COUNT, stream=True)
            self.assertEqual("".join(part.choices[0].delta.content or "" for part in parts if part.choices), ANSWER)

    def test_requests_on_one_connection(self):
        with self.connect() as connection:
            # In one record, of which a read takes a part.
            one = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"y" * 6000 + b"\r\n\r\n"
            connection.sendall(one + one)
            received = b""
            while received.count(b"HTTP/1.1 200 ") < 2:
                received += connection.recv(65536)
            body = json.dumps(chat("hi", max_tokens=1)).encode()
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
                               b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.assertEqual(connection.recv(65536), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(body)
            # To an end that is said to be one.
            self.assertTrue(self.rest(connection).startswith(b"HTTP/1.1 200 "))

    def test_a_refusal_is_read_behind_a_body_that_is_not(self):
        with self.connect() as connection:
            connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200000)
            self.assertTrue(self.rest(connection).startswith(b"HTTP/1.1 404 "))

    def test_a_body_that_is_decrypted_and_not_wanted_costs_nothing(self):
        """A record that has the head of a refused request has much of its body, too, and the client stays."""
        with self.connect() as connection:
            connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n" + b"x" * 12000)
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 404 "))
            before, begin = self.server.processor_seconds(), time.monotonic()
            time.sleep(1)
            self.assertLess(self.server.processor_seconds() - before, (time.monotonic() - begin) / 2)

    def test_large_bodies_and_responses(self):
        text = "one two three " * 150000
        status, answer = self.server.request("POST", "/tokenize", {"content": text})
        self.assertEqual(status, 200)
        self.assertEqual(self.server.request("POST", "/detokenize", {"tokens": answer["tokens"]}), (200, {"content": text}))

    def test_a_slow_reader_of_a_large_response(self):
        body = json.dumps({"content": "one two three " * 80000, "with_pieces": True}).encode()
        with self.connect(receive_buffer=1 << 18) as connection:
            connection.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            received = connection.recv(1000)
            self.server.wait_for_metric("http_unread_bytes", lambda value: value > 0)
            received += self.rest(connection)
        self.assertIn("tokens", json.loads(received.split(b"\r\n\r\n", 1)[1]))
        self.server.wait_for_metric("http_unread_bytes", lambda value: value == 0)

    def test_many_clients(self):
        def ask(_):
            status, answer = self.server_of_its_own().request("POST", CHAT, chat(max_tokens=64))
            return status, answer["choices"][0]["message"]["content"]

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            self.assertEqual(set(pool.map(ask, range(128))), {(200, ANSWER)})

    def server_of_its_own(self):
        """The same server, for a thread."""
        other = RunningServer(tls=self.context)
        other.port = self.server.port
        return other

    def test_handshakes_that_stall_delay_nobody(self):
        stalled = [socket.create_connection(("127.0.0.1", self.server.port), timeout=LIMIT) for _ in range(300)]
        try:
            for connection in stalled[::2]:
                connection.sendall(b"\x16\x03\x01\x02\x00\x01")
            self.server.wait_for_metric("http_connections", lambda value: value > 300)
            self.health()
        finally:
            for connection in stalled:
                connection.close()
        self.server.wait_for_metric("http_connections", lambda value: value < 100)

    def test_a_client_that_goes_ends_its_work(self):
        self.server = self.enterContext(RunningServer("--tls-cert", self.certificate, "--tls-key", self.key, *LONG_ANSWERS, tls=self.context))
        before = 0
        for way in ("said", "unsaid"):
            connection = self.connect()
            body = json.dumps(chat(stream=True, max_tokens=50000, ignore_eos=True)).encode()
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200 "))
            if way == "said":
                connection.settimeout(0)
                with socket.socket(fileno=os.dup(connection.fileno())) as plain:
                    # Nothing says that what has come is all.
                    with self.assertRaises(ConnectionResetError):
                        try:
                            connection.unwrap()
                        except (ssl.SSLError, BlockingIOError):
                            pass  # text that comes meanwhile
                        plain.settimeout(LIMIT)
                        while plain.recv(65536):
                            pass
            else:
                connection.close()
            before += 1
            self.server.wait_for_metric("requests_cancelled_total", lambda value: value == before)
            connection.close()

    def test_the_certificate_is_read_again(self):
        def refused(said):
            self.server.process.send_signal(signal.SIGHUP)
            self.server.wait_for_line(said)
            self.assertEqual(self.name(), "second")

        def taken(name):
            said = len(self.server.lines)
            self.server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: self.name() == name, "the certificate is that of before")
            wait_for(lambda: len(self.server.lines) > said, "nothing was said")
            self.assertRegex("".join(self.server.lines[said:]), r"^the certificate was read again: IP Address:127\.0\.0\.1, DNS:localhost, valid until 20\d\d-\d\d-\d\d\n$")

        kept = [shutil.copy(path, path + ".kept") for path in (self.certificate, self.key)]
        with self.connect() as running:
            self.assertEqual(self.name(), "first")
            self.authority.issue("second", self.certificate, self.key)
            taken("second")
            shutil.copy(kept[1], self.key)
            refused("this is not the key of the certificate")
            with open(self.certificate, "w") as file:
                file.write("none")
            refused("-----BEGIN CERTIFICATE-----, found none")
            with open(self.certificate, "w") as file:
                file.write("-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAA\n"
                           "-----END CERTIFICATE-----\n")
            refused("the certificate cannot be read")
            running.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertTrue(self.rest(running).startswith(b"HTTP/1.1 200 "), "a connection from before goes on")
        for path, copy in zip((self.certificate, self.key), kept):
            shutil.copy(copy, path)
        taken("first")

    def test_z_answers_end_before_the_server_does(self):
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=LIMIT, context=self.context)
        connection.request("POST", CHAT, json.dumps(chat(stream=True, max_tokens=300, ignore_eos=True)), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read(10)
        self.server.process.send_signal(signal.SIGTERM)
        self.assertTrue(answer.read().endswith(b"data: [DONE]\n\n"))
        connection.close()
        self.assertEqual(self.server.process.wait(LIMIT), 0)


if __name__ == "__main__":
    running_server.main()
