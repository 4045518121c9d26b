"""Cached pages over restarts (--cache-dir), and slots that are saved: kept_pages_test.py PROGRAM."""

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import running_server
from running_server import CHAT, RunningServer, chat

SPACE = hashlib.sha256(b"space of one").hexdigest().encode()
LONG = " ".join(f"The key of box {i} is {i * 7 % 100}." for i in range(40))


def question(text="Count from 1 to 9 in French.", **fields):
    return chat(f"{LONG} {text}", temperature=0, max_tokens=20, logprobs=True, top_logprobs=3, **fields)


def ask(server, body=None, key="one"):
    """What is generated with its probabilities, and how much of the prompt was cached."""
    status, answer = server.request("POST", CHAT, body or question(), {"Authorization": f"Bearer {key}"})
    assert status == 200, answer
    return json.dumps(answer["choices"]), answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def files(folder, end="-0"):
    return sorted(glob.glob(f"{folder}/*/*{end}"))


class KeptPages(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.pages = f"{self.folder}/pages"

    def server(self, *flags):
        return RunningServer("--cache-dir", self.pages, "--api-key", "one,two", *flags)

    def metric(self, server, name):
        text = server.request("GET", "/metrics", headers={"Authorization": "Bearer one"})[1].decode()
        return float(re.search(rf"^tessera_kept_{name} (\S+)$", text, re.M).group(1))

    def wait_for(self, server, name, test):
        running_server.wait_for(lambda: test(self.metric(server, name)), lambda: f"{name}: {self.metric(server, name)}")

    def kill(self, server):
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(30)

    def test_restarts(self):
        """Killed, damaged, another key, another type of cache: the same processes serve all of it."""
        with self.server() as server:
            server.wait_for_line("at most 16.0 GiB: 0 of earlier runs")
            cold, cached = ask(server)
            self.assertEqual(cached, 0)
            warm, cached = ask(server)
            self.assertGreater(cached, 500)
            whole = cached // 64
            # In the background, while nobody asks for anything.
            self.wait_for(server, "written_pages_total", lambda pages: pages >= whole)
            self.wait_for(server, "waiting_pages", lambda pages: pages == 0)
            self.kill(server)
        self.assertEqual(stat.S_IMODE(os.stat(self.pages).st_mode), 0o700)
        for name in glob.glob(f"{self.pages}/**", recursive=True):
            self.assertEqual(os.stat(name).st_mode & 0o077, 0, name)
            if os.path.isfile(name):
                with open(name, "rb") as file:
                    self.assertNotIn(SPACE, file.read())

        with self.server() as server:
            restored, cached = ask(server)
            self.assertEqual(restored, warm)
            self.assertEqual(restored, cold)
            self.assertEqual(cached, 64 * whole)
            self.wait_for(server, "read_pages_total", lambda pages: pages == whole)
            self.assertEqual(ask(server, key="two")[1], 0, "another key's pages are not found")
        # The other key's were written by the end.
        self.assertGreaterEqual(len(files(self.pages)), 2 * whole)

        pages = files(self.pages)
        # The first of each key: behind one that is not there none is read.
        paths = {os.path.basename(name).split("-")[0] for name in pages}
        pages.sort(key=lambda name: os.path.basename(name).split("-")[1] in paths)
        with open(pages[0], "r+b") as file:
            file.seek(5000)
            byte = file.read(1)
            file.seek(5000)
            file.write(bytes([byte[0] ^ 1]))
        os.truncate(pages[1], 100)
        for name in pages[2:]:
            os.utime(name)
        with self.server() as server:
            for key in ("one", "two"):
                self.assertEqual(ask(server, key=key)[0], warm)
            self.wait_for(server, "damaged_pages_total", lambda pages: pages == 2)
            server.wait_for_line("dropped as damaged")

        # Pages of another build of this version.
        own = os.path.dirname(pages[0])
        with open(f"{own}/identity") as file:
            identity = file.read()
        program = re.search(r"^program: \S+ ([0-9a-f]{16})$", identity, re.M)
        self.assertTrue(program, identity)
        with open(os.path.join(os.path.dirname(running_server.PROGRAM), "../lib/tessera/plugins/tessera_reference.toml")) as file:
            digest = re.search(r'^sha256 = "(.*)"', file.read(), re.M).group(1)
        self.assertRegex(identity, rf"(?m)^plugin reference: \S+ {digest[:16]}$")
        other = f"{self.pages}/{'0' * 32}"
        shutil.copytree(own, other)
        with open(f"{other}/identity", "w") as file:
            file.write(identity.replace(program.group(1), "0" * 16))

        with self.server("-ctk", "q8_0") as server:
            self.assertEqual(ask(server)[1], 0)
            server.wait_for_line(rf"in .*/0+ are not used: program: \S+ 0+, here \S+ {program.group(1)}")
            server.wait_for_line(r"pages \(.*\) in .* are not used: cache types: .*f16, here .*q8_0")
        # In its place again.
        with self.server() as server:
            self.assertEqual(ask(server), (warm, 64 * whole))

    def test_a_kill_while_pages_are_written(self):
        """Whatever was being written then, what is there is whole."""
        with self.server("-np", "4") as server:
            for i in range(4):
                ask(server, question(f"Say hello {i} times."))
            running_server.wait_for(lambda: files(self.pages), "nothing is written")
            self.kill(server)
        with open(f"{os.path.dirname(files(self.pages)[0])}/.part-99", "w") as file:
            file.write("what a killed process leaves")
        with self.server("-np", "4") as server:
            self.assertGreater(ask(server, question("Say hello 0 times."))[1], 0)
            self.assertEqual(self.metric(server, "damaged_pages_total"), 0)
        self.assertEqual(glob.glob(f"{self.pages}/*/.part-*"), [])

    @unittest.skipUnless("TSR_SLOW_DISK_LIBRARY" in os.environ, "without the library that holds up reads")
    def test_a_disk_that_hangs(self):
        """Whose pages lie on it waits for a moment, and nobody else; the end waits no longer."""
        with self.server() as server:
            whole, _ = ask(server)
        gate = f"{self.folder}/gate"
        environment = {"LD_PRELOAD": os.environ["TSR_SLOW_DISK_LIBRARY"], "TSR_SLOW_DISK": self.pages, "TSR_SLOW_DISK_GATE": gate}
        with RunningServer("--cache-dir", self.pages, "--api-key", "one,two", *running_server.LONG_ANSWERS, environment=environment) as server:
            stream = socket.create_connection(("127.0.0.1", server.port), timeout=running_server.LIMIT)
            body = json.dumps(chat(stream=True, ignore_eos=True, max_tokens=50000)).encode()
            stream.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer two\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                           % (CHAT.encode(), len(body), body))
            times = []

            def receive():
                with contextlib.suppress(ConnectionResetError):
                    while stream.recv(1 << 20):
                        times.append(time.monotonic())

            receiver = threading.Thread(target=receive)
            receiver.start()
            running_server.wait_for(lambda: len(times) > 20, "nothing is generated")
            with open(gate, "w"):
                pass
            answers = []
            asking = threading.Thread(target=lambda: answers.append(ask(server)))
            begin = time.monotonic()
            asking.start()
            healthy = [begin]
            while asking.is_alive():
                self.assertEqual(server.request("GET", "/health")[0], 200)
                healthy.append(time.monotonic())
                time.sleep(0.02)
            end = time.monotonic()
            # It was waited for, and nobody waited for it; other programs may have held up both.
            self.assertGreater(end - begin, 0.9)
            for what, between in (("health", healthy + [end]), ("text", [begin] + [at for at in times if begin < at < end] + [end])):
                self.assertLess(max(later - at for at, later in zip(between, between[1:])), max(0.5, (end - begin) / 2), f"{what}: of {len(between)}")
            self.assertEqual(answers, [(whole, 0)])
            self.wait_for(server, "slow_reads_total", lambda reads: reads == 1)
            self.assertEqual(self.metric(server, "read_pages_total"), 0)
            server.wait_for_line("are not read for now, but computed")
            self.assertEqual(sum("are not read for now, but computed" in line for line in server.lines), 1, server.lines)
            stream.shutdown(socket.SHUT_RDWR)
            receiver.join()
            stream.close()
            # Nobody lets the disk go on.
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(running_server.LIMIT), 0)
            server.wait_for_line("still being read: the disk does not answer")

    @unittest.skipUnless("TSR_SLOW_DISK_LIBRARY" in os.environ, "without the library that holds up reads")
    def test_a_disk_that_hangs_at_the_start(self):
        """The model is served without it, and with its pages when it answers; a signal ends all of it as ever."""
        with self.server() as server:
            whole, _ = ask(server)
            ask(server, key="two")
        gate = f"{self.folder}/gate"
        environment = {"LD_PRELOAD": os.environ["TSR_SLOW_DISK_LIBRARY"], "TSR_SLOW_DISK": self.pages, "TSR_SLOW_DISK_GATE": gate}

        def hanging(**options):
            with open(gate, "w"):
                pass
            return RunningServer("--cache-dir", self.pages, "--api-key", "one,two", environment=environment, **options)

        def metrics(server):
            return server.request("GET", "/metrics", headers={"Authorization": "Bearer one"})[1]

        def expect_end(server):
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(running_server.LIMIT), 0)
            server.wait_for_line("^stopped")

        with hanging() as server:
            server.wait_for_line(f"the folder {self.pages} has not answered in 3 s: no pages of the cache are read or kept until it has")
            self.assertEqual(ask(server), (whole, 0))
            self.assertNotIn(b"tessera_kept_pages", metrics(server))
            os.remove(gate)
            server.wait_for_line("pages of the cache are kept in .*: [1-9][0-9]* of earlier runs")
            running_server.wait_for(lambda: b"tessera_kept_pages" in metrics(server), "its pages are not used")
            answer, cached = ask(server, key="two")
            self.assertEqual(answer, whole)
            self.assertGreater(cached, 500)
            self.wait_for(server, "read_pages_total", lambda pages: pages == cached // 64)
        with hanging() as server:
            ask(server)
            expect_end(server)
        # While it is waited for.
        with hanging(wait=False) as server:
            time.sleep(1)
            expect_end(server)

    def test_a_folder_that_cannot_be_used(self):
        """No answer depends on it, and the reason is said."""
        with open(self.pages, "w") as file:
            file.write("no folder")
        with self.server() as server:
            server.wait_for_line("no pages of the cache are kept.*cannot open this folder")
            ask(server)
            self.assertNotIn(b"tessera_kept_pages", server.request("GET", "/metrics", headers={"Authorization": "Bearer one"})[1])

    def test_a_folder_for_slots_that_cannot_be_used(self):
        with open(self.pages, "w") as file:
            file.write("no folder")
        ended = subprocess.run([running_server.PROGRAM, "--port", "0", "--slot-save-path", self.pages], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn(f"{self.pages}: cannot save slots in this folder: Not a directory", ended.stderr)

    def test_slots(self):
        slots = f"{self.folder}/slots"
        with RunningServer("--slot-save-path", slots) as server:
            def act(action, name="a.bin", slot=1):
                return server.request("POST", f"/slots/{slot}?action={action}", {"filename": name} if name is not None else {})

            def cached(text="Count from 1 to 9 in French.", slot=1):
                status, answer = server.request("POST", CHAT, question(text, id_slot=slot))
                self.assertEqual(status, 200, answer)
                return answer["usage"]["prompt_tokens_details"]["cached_tokens"], json.dumps(answer["choices"])

            _, first = cached()
            warm, _ = cached()
            status, saved = act("save")
            self.assertEqual(status, 200, saved)
            self.assertEqual((saved["id_slot"], saved["filename"]), (1, "a.bin"))
            self.assertGreater(saved["n_saved"], warm)
            self.assertEqual(saved["n_written"], os.path.getsize(f"{slots}/a.bin"))
            self.assertIn("save_ms", saved["timings"])
            self.assertEqual(os.stat(f"{slots}/a.bin").st_mode & 0o077, 0)

            status, erased = act("erase", None)
            self.assertEqual((status, erased["id_slot"]), (200, 1))
            self.assertGreaterEqual(erased["n_erased"], saved["n_saved"])
            self.assertEqual(cached()[0], 0, "it was forgotten")
            act("erase", None)
            # Of an answer that was cut the last token is not cached.
            for most in (3, 4):
                self.assertEqual(server.request("POST", CHAT, {**question("Count from 1 to 9 in French.", id_slot=1), "max_tokens": most})[0], 200)
                act("erase", None)
                self.assertEqual(cached()[0], 0, "it was forgotten")
                act("erase", None)

            # Into another slot.
            status, restored = act("restore", slot=0)
            self.assertEqual((status, restored["n_restored"], restored["n_read"]), (200, saved["n_saved"], saved["n_written"]), restored)
            again, choices = cached(slot=0)
            self.assertEqual((again, choices), (warm, first))

            for name, part in (("../a.bin", "filename"), (".a", "filename"), ("", "filename"), (None, "filename"), ("a/b", "filename"), ("none", "Unable to restore")):
                status, answer = act("restore", name)
                self.assertEqual(status, 400, (name, answer))
                self.assertIn(part, answer["error"]["message"])
                self.assertNotIn(self.folder, answer["error"]["message"])
            for path in ("/slots/16?action=save", "/slots/x?action=save", "/slots/0?action=load", "/slots/0", "/slots/0?action=save&x=1"):
                self.assertEqual(server.request("POST", path, {"filename": "a.bin"})[0], 400, path)
            with open(f"{slots}/a.bin", "rb") as file:
                whole = file.read()
            for content in (b"", whole[:40], whole[:-1], whole + b"x", whole[:9000] + bytes([whole[9000] ^ 4]) + whole[9001:]):
                with open(f"{slots}/b.bin", "wb") as file:
                    file.write(content)
                status, answer = act("restore", "b.bin")
                self.assertEqual(status, 400, answer)
                self.assertIn("Unable to restore slot: b.bin", answer["error"]["message"])
            os.symlink("/etc/passwd", f"{slots}/link")
            status, answer = act("restore", "link")
            self.assertEqual(status, 400)
            self.assertIn("link: it is a symbolic link", answer["error"]["message"])
            self.assertEqual(cached(slot=0), (warm, first))
        with RunningServer("--slot-save-path", slots, "-ctk", "q8_0") as server:
            status, answer = server.request("POST", "/slots/0?action=restore", {"filename": "a.bin"})
            self.assertEqual(status, 400)
            self.assertRegex(answer["error"]["message"], "saved with another cache types: .*f16, here .*q8_0")
        with RunningServer("--api-key", "one,two", "--slot-save-path", slots) as server:
            for key, name, status in (("one", "a.bin", 400), ("one", "c.bin", 200), ("two", "c.bin", 400)):
                action = "save" if status == 200 else "restore"
                self.assertEqual(server.request("POST", f"/slots/0?action={action}", {"filename": name}, {"Authorization": f"Bearer {key}"})[0], status,
                                 "each key has files of its own")
        with RunningServer() as server:
            status, answer = server.request("POST", "/slots/0?action=save", {"filename": "a.bin"})
            self.assertEqual((status, answer["error"]["code"]), (501, "not_supported"))


if __name__ == "__main__":
    running_server.main()
