"""The report, in Markdown, the time that is left, and the verdict."""

import contextlib
import os
import pathlib
import time

from .process import Done, timed_out

PASSED, FAILED, INCOMPLETE = 0, 1, 3  # exit statuses
EMULATED = "emulated: says nothing about a card"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows])


def last_lines(count):
    return lambda output: "\n".join(output.strip().splitlines()[-count:])


class Report:
    """Steps as they come. A step passes, fails, is refused (the program says that it cannot, and why) or is left out."""

    def __init__(self, seconds, emulated=False):
        self.lines = []
        self.failed = []
        self.refused = []
        self.left_out = []
        self.goals = []  # name, what was measured, at least, aim or None, text
        self.emulated = emulated
        self.started = time.monotonic()
        self.ends = [self.started + seconds]

    def left(self):
        """Seconds that are left to what is being done."""
        return self.ends[-1] - time.monotonic()

    def spent(self):
        return time.monotonic() - self.started

    @contextlib.contextmanager
    def within(self, seconds):
        """What is done inside has this many seconds, and no more than what is around it."""
        self.ends.append(min(self.ends[-1], time.monotonic() + seconds))
        try:
            yield
        finally:
            self.ends.pop()

    def in_turn(self, items, weight=lambda item: 1):
        """The items, each with its share of the time that is left when its turn comes: what one does not need is left to those after it."""
        items = list(items)
        for at, item in enumerate(items):
            with self.within(self.left() * weight(item) / sum(map(weight, items[at:]))):
                yield item

    def text(self, text=""):
        self.lines.append(text)

    def heading(self, title):
        self.lines += [f"## {title}", ""]
        print(f"-- {title} ({self.spent():.0f} s)", flush=True)

    def fail(self, what, why=""):
        self.failed.append(what)
        print(f"   FAILED: {what}", flush=True)
        self.lines += [f"FAILED: {what}" + (":" if why else ""), ""]
        if why:
            self.lines += ["```", why.strip()[-4000:], "```", ""]

    def leave_out(self, what, why="no time was left"):
        """Something that belongs to a whole run and was not done."""
        self.left_out.append(f"{what} ({why})")
        self.lines += [f"Left out: {what}: {why}.", ""]
        print(f"   left out: {what}: {why}", flush=True)

    def command(self, words, environment=None, limit=540):
        """Runs a command; returns what came of it, and whether it was ended because the time was up, not because it took longer than it may."""
        left = self.left()
        done = Done(words, environment, min(limit, left))
        return done, timed_out(done) and left <= limit

    def run(self, what, words, environment=None, limit=540, judge=lambda done: done.status == 0):
        """Runs a command within the time that is left; reports it only if it failed, or there was no time for it."""
        done, late = self.command(words, environment, limit)
        if late:
            self.leave_out(what)
        elif not judge(done):
            command = " ".join(pathlib.Path(w).name if os.sep in w else w for w in done.words)
            self.fail(what, f"{command}\nstatus {done.status}\n{done.all}")
        return done

    def step(self, title, words, environment=None, keep=lambda text: text, limit=540):
        """The same with a heading and what it printed. Whether it passed."""
        self.heading(title)
        done = self.run(title, words, environment, limit)
        if done.status == 0:
            self.lines += [f"Passed in {done.seconds:.1f} s:", "", "```", keep(done.all).strip(), "```", ""]
        return done.status == 0

    def goal(self, name, value, minimum, aim, text):
        self.goals.append((name, value, minimum, aim, text))

    def missed(self):
        """Names of the goals that a card has missed."""
        return [] if self.emulated else [name for name, value, minimum, _, _ in self.goals if value < minimum]

    def status(self):
        return FAILED if self.failed or self.missed() else INCOMPLETE if self.left_out else PASSED

    def verdict(self):
        """One line: what failed comes before what was missed, and that before what was left out."""
        found = []
        if self.failed:
            found.append("FAILED: " + "; ".join(self.failed))
        if self.missed():
            found.append("goals MISSED: " + "; ".join(self.missed()))
        if self.left_out:
            found.append(f"incomplete, {len(self.left_out)} left out: " + "; ".join(self.left_out))
        return ". ".join(found) or "all passed"

    def result(self):
        lines = ["## Result", "", self.verdict() + ".", ""]
        if self.goals:
            mark = {True: "MISSED", False: "met"}
            lines += [table(["goal", "measured", "at least", "aim", "", "verdict"],
                            [[name, f"{value:.2f}" if minimum < 0.95 else f"{value:.4f}", f"{minimum:g}", f"{aim:g}" if aim else "", text,
                              mark[value < minimum] + (f" ({EMULATED})" if self.emulated else "")]
                             for name, value, minimum, aim, text in self.goals]), ""]
        if self.refused:
            lines += ["Refused by the program: " + "; ".join(self.refused) + ".", ""]
        return lines + [f"{self.spent():.0f} s in all.", ""]
