"""Processes of which one runs at a time, and the speed of memory between their turns."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time


class Process:
    """A process with its output. `marked`: seconds from the start until `mark` appeared; `peak`: its most resident bytes, once it
    has ended. As a context it kills the process on the way out, also one that is stopped."""

    def __init__(self, command, mark=None):
        print("  $ " + " ".join(command), file=sys.stderr, flush=True)
        self.command, self.mark, self.marked, self.peak, self.lines = command, mark, None, None, []
        self.begin = time.monotonic()
        # In a folder of its own: the peer leaves logs where it runs.
        self.child = subprocess.Popen(command, cwd=tempfile.gettempdir(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.returncode is None:
            self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    @property
    def output(self):
        return "".join(self.lines)

    def line(self):
        """The next line of its output; empty when there is no more."""
        line = self.child.stdout.readline()
        if self.mark and self.marked is None and self.mark in line:
            self.marked = time.monotonic() - self.begin
        self.lines.append(line.decode(errors="replace"))
        return self.lines[-1]

    def row(self):
        """The next line of JSON that it prints; None when it has ended well."""
        while line := self.line():
            if line.startswith("{"):
                return json.loads(line)
        self.finish()
        return None

    def finish(self):
        while self.line():
            pass
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        self.peak = usage.ru_maxrss * 1024
        if self.child.returncode != 0 or (self.mark and self.marked is None):
            sys.exit(f"failed with exit code {self.child.returncode}:\n" + "".join(self.lines[-20:]))
        return self

    def stop(self):
        os.kill(self.child.pid, signal.SIGSTOP)  # send_signal() would take the status of one that ended, and its peak with it
        # All of its threads have stopped, or it ended before; either way finish() still gets its status.
        os.waitid(os.P_PID, self.child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on(self):
        os.kill(self.child.pid, signal.SIGCONT)

    def find(self, pattern):
        found = re.search(pattern, self.output)
        if not found:
            sys.exit(f"{self.command[0]}: expected {pattern!r} in its output, found:\n{self.output[-2000:]}")
        return found


def finished(command, mark=None):
    with Process(command, mark) as process:
        return process.finish()


def rows_in_turn(commands, memory_speed, apart):
    """Runs commands that print rows of JSON; each is stopped after a row until the others have printed one, or, `apart`, runs to its
    end before the next is started. Returns for each of them its process and its rows, each with the readings of memory_speed()
    before and after its turn."""
    processes, rows = [None] * len(commands), [[] for _ in commands]
    with contextlib.ExitStack() as stack:
        running = list(range(len(commands)))
        before = memory_speed()
        while running:
            for i in list(running):
                if processes[i]:
                    processes[i].go_on()
                else:
                    processes[i] = stack.enter_context(Process(commands[i]))
                turn = [processes[i].row()]
                while apart and turn[-1]:
                    turn.append(processes[i].row())
                if turn[-1]:
                    processes[i].stop()
                else:
                    running.remove(i)
                if turn[0]:
                    after = memory_speed()
                    rows[i] += [(row, (before, after)) for row in turn if row]
                    before = after
    return list(zip(processes, rows))


def memory_probe(folder, threads):
    """A function that measures GB/s read from memory by `threads` threads together; None without the program for it."""
    program = folder / "memory_speed"
    if not program.exists():
        return None

    def measure():
        run = subprocess.run([str(program), str(threads)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        found = re.match(r"([\d.]+) GB/s", run.stdout)
        if run.returncode != 0 or not found:
            sys.exit(f"{program} failed with exit code {run.returncode}:\n{run.stdout[-2000:]}")
        return float(found.group(1))

    return measure
