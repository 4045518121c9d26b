"""Commands that are run, with what came of them. Each has a process group of its own, which ends with it, or with this process."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time


def die(text):
    sys.exit(f"gpu_acceptance: {text}")


TIMED_OUT = 124

# Reads "+PGID" and "-PGID" until its input ends, which it does when this process ends in whatever way, and ends the groups that are left: a kernel
# that hangs would stay on the card.
GUARD = """
import os, signal, sys
for caught in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(caught, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""
# A group, not a session: what ends a session ends these, too.
OWN_GROUP = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}


class Guard:
    def __init__(self):
        self.lock = threading.Lock()
        self.process = None

    def start(self):
        """Before the first of what it watches, since it takes a moment."""
        with self.lock:
            if self.process is None:
                self.process = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, **OWN_GROUP)

    def tell(self, sign, group):
        self.start()
        with self.lock:
            self.process.stdin.write(f"{sign}{group}\n".encode())
            self.process.stdin.flush()


guard = Guard()


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass  # none is left


def has_ended(process, seconds):
    """Waits so long at most. The process is not reaped, so that its group keeps its number."""
    end, pause = time.monotonic() + seconds, 0.002
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= end:
            return False
        time.sleep(min(pause, max(end - time.monotonic(), 0)))
        pause = min(2 * pause, 0.05)
    return True


class Done:
    """A command that has ended: exit status (124: it took too long, 127: it could not be run), what it printed, seconds."""

    def __init__(self, words, environment=None, timeout=540):
        begin = time.monotonic()
        self.words = [str(word) for word in words]
        self.out = self.err = ""
        guard.start()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(self.words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **OWN_GROUP)
            except OSError as error:
                self.status, self.err, self.seconds = 127, f"{error}\n", time.monotonic() - begin
                return
            guard.tell("+", process.pid)
            try:
                ended = has_ended(process, timeout)
            finally:
                end_group(process.pid)
            try:
                self.status = process.wait(timeout=10) if ended else (process.wait(timeout=10), TIMED_OUT)[1]
            except subprocess.TimeoutExpired:  # in the driver, where no signal reaches it
                self.status = TIMED_OUT
            guard.tell("-", process.pid)
            self.out, self.err = (self.content(file) for file in (out, err))
        if not ended:
            self.err += f"ended after {timeout:.0f} s\n"
        self.seconds = time.monotonic() - begin

    @staticmethod
    def content(file):
        file.seek(0)
        return file.read().decode(errors="replace")

    @property
    def all(self):
        return self.out + self.err

    def lines(self):
        """The JSON objects of standard output, one a line; other lines are left out."""
        found = []
        for line in self.out.splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return found


def timed_out(done):
    return done.status == TIMED_OUT
