"""The report, in Markdown, and the time that is left."""

import os
import pathlib
import time

from .process import Done


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows])


def last_lines(count):
    return lambda output: "\n".join(output.strip().splitlines()[-count:])


class Report:
    """Steps as they come. A step passes, fails, is refused (the program says that it cannot, and why) or is left out."""

    def __init__(self, seconds):
        self.lines = []
        self.failed = []
        self.refused = []
        self.left_out = []
        self.goals = []  # name, what was measured, aim, whether it was met
        self.started = time.monotonic()
        self.seconds = seconds

    def left(self):
        return self.seconds - (time.monotonic() - self.started)

    def text(self, text=""):
        self.lines.append(text)

    def heading(self, title):
        self.lines += [f"## {title}", ""]
        print(f"-- {title} ({self.seconds - self.left():.0f} s)", flush=True)

    def fail(self, what, why=""):
        self.failed.append(what)
        print(f"   FAILED: {what}", flush=True)
        self.lines += [f"FAILED: {what}" + (":" if why else ""), ""]
        if why:
            self.lines += ["```", why.strip()[-4000:], "```", ""]

    def leave_out(self, what):
        """Something that was not done for want of time; True if so."""
        self.left_out.append(what)
        self.lines += [f"Left out: {what}.", ""]
        print(f"   left out: {what}", flush=True)

    def run(self, what, words, environment=None, limit=540, judge=lambda done: done.status == 0):
        """Runs a command within the time that is left; reports it only if it failed."""
        done = Done(words, environment, min(limit, self.left()))
        if not judge(done):
            command = " ".join(pathlib.Path(w).name if os.sep in w else w for w in done.words)
            self.fail(what, f"{command}\nstatus {done.status}\n{done.all}")
        return done

    def step(self, title, words, environment=None, keep=lambda text: text, judge=lambda done: done.status == 0, limit=540):
        """The same with a heading and what it printed."""
        self.heading(title)
        failed = len(self.failed)
        done = self.run(title, words, environment, limit, judge)
        if len(self.failed) == failed:
            self.lines += [f"Passed in {done.seconds:.1f} s:", "", "```", keep(done.all).strip(), "```", ""]
        return done

    def goal(self, name, value, minimum, aim, text):
        self.goals.append((name, value, minimum, aim, text))

    def result(self):
        lines = ["## Result", ""]
        if self.goals:
            lines += [table(["goal", "measured", "at least", "aim", ""],
                            [[name, f"{value:.2f}", f"{minimum:g}", f"{aim:g}" if aim else "", text + ("" if value >= minimum else " MISSED")]
                             for name, value, minimum, aim, text in self.goals]), ""]
        lines += ["All steps passed." if not self.failed else "FAILED: " + "; ".join(self.failed), ""]
        if self.refused:
            lines += ["Refused by the program: " + "; ".join(self.refused), ""]
        if self.left_out:
            lines += ["Left out for want of time: " + "; ".join(self.left_out), ""]
        return lines
