"""Commands that are run, with what came of them."""

import json
import subprocess
import sys
import time


def die(text):
    sys.exit(f"gpu_acceptance: {text}")


TIMED_OUT = 124


class Done:
    """A command that has ended: exit status (124: it took too long, 127: it could not be run), what it printed, seconds."""

    def __init__(self, words, environment=None, timeout=540):
        begin = time.monotonic()
        self.words = [str(word) for word in words]
        self.out = self.err = ""
        try:
            done = subprocess.run(self.words, env=environment, capture_output=True, text=True, errors="replace", timeout=max(timeout, 0.1))
            self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            self.status = TIMED_OUT
            self.out, self.err = (text.decode(errors="replace") if isinstance(text, bytes) else text or ""
                                  for text in (late.stdout, late.stderr))
            self.err += f"ended after {timeout:.0f} s\n"
        except OSError as error:
            self.status, self.err = 127, f"{error}\n"
        self.seconds = time.monotonic() - begin

    @property
    def all(self):
        return self.out + self.err

    def lines(self):
        """The JSON objects of standard output, one a line; lines of another form are left out."""
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
