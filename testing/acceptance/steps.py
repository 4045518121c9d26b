"""Steps of a run: each is one process or a few, and stands for itself. What fails, hangs or loses the card ends its own step."""

import concurrent.futures
import dataclasses
import os
import re
import threading
import time
import traceback
import typing

from .journal import ALL_STEPS
from .process import Done, timed_out

PASSED, MEASURED, REFUSED, FAILED, LEFT_OUT = "passed", "measured", "refused", "FAILED", "left out"
NO_TIME = "no time was left"
# Said by Tessera where a device has to do without recordings (core/run/recordings.cpp).
UNRECORDED = re.compile(r"(?m)^.*refuses to record.*$")
LOST = re.compile(r"\b(is|was|device) lost\b|CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_FAILED|ECC_UNCORRECTABLE|HARDWARE_STACK_ERROR|DEVICE_UNAVAILABLE)")


@dataclasses.dataclass
class Outcome:
    verdict: str = PASSED
    why: str = ""
    rows: list = dataclasses.field(default_factory=list)  # of the part's table
    text: list = dataclasses.field(default_factory=list)  # Markdown, a line each
    data: dict = dataclasses.field(default_factory=dict)  # what other steps, and the report's summary, make use of


@dataclasses.dataclass
class Step:
    name: str
    do: typing.Callable  # of a Call; gives an Outcome


@dataclasses.dataclass
class Part:
    key: str
    title: str
    steps: typing.Callable           # gives the list of Steps; asked when it is the part's turn
    most: float                      # seconds after which it begins no further step until all other parts have had their turn
    head: tuple = ()                 # of the table of rows
    at_once: int = 1
    render: typing.Callable = None   # of the entries of its steps that ended: further lines of the report


class Call:
    """What a step runs commands with."""

    def __init__(self, run, end):
        self.run, self.end = run, end
        self.machine, self.scale = run.machine, run.scale
        self.lost = False
        self.unrecorded = ""

    def left(self):
        return self.end - time.monotonic()

    def command(self, words, limit=540, environment=None):
        """What came of it, and whether it was ended because the time was up, not because it took longer than it may."""
        left = self.left()
        done = Done(words, environment or self.machine.environment, max(min(limit, left), 0.1))
        self.lost = self.lost or bool(LOST.search(done.all))
        found = UNRECORDED.search(done.all)
        self.unrecorded = self.unrecorded or (found.group(0) if found else "")
        return done, timed_out(done) and left <= limit

    def judged(self, words, limit=540, judge=lambda done: done.status == 0, environment=None):
        """(outcome, what came of the command): failed with all that it printed if it is not as it should be."""
        done, late = self.command(words, limit, environment)
        if late:
            return Outcome(LEFT_OUT, NO_TIME), done
        return (Outcome() if judge(done) else failure(done)), done


def failure(done):
    command = " ".join(os.path.basename(word) if os.sep in word else word for word in done.words)
    return Outcome(FAILED, f"{command}\nstatus {done.status}\n{done.all[-4000:]}")


class Run:
    """Parts in their order, each for as long as it may, then what is left of them as long as there is time. `changed` is called after each step."""

    def __init__(self, machine, scale, journal, seconds, changed=lambda: None):
        self.machine, self.scale, self.journal, self.changed = machine, scale, journal, changed
        self.begun = time.monotonic()
        self.end = self.begun + seconds
        self.gone = ""  # why nothing more can be run
        self.call = len(journal.calls())
        self.before = journal.unfinished()
        self.lock = threading.Lock()

    def left(self):
        return self.end - time.monotonic()

    def data(self, part, step):
        """What a step of this call or of one before has found; {} if it has not ended."""
        return self.journal.results().get((part, step), {}).get("data", {})

    def do(self, parts):
        waiting = []
        for part in parts:
            steps = self.wanted(part)
            # One that was under way when a call before was killed might do so again, and comes last.
            first = [step for step in steps if (part.key, step.name) not in self.before]
            waiting.append((part, self.turn(part, first, min(self.end, time.monotonic() + part.most)), [step for step in steps if step not in first]))
        for steps_of in ((lambda first, last: first), (lambda first, last: last)):
            for part, first, last in waiting:
                for step in self.turn(part, steps_of(first, last), self.end):
                    self.record(part, step, Outcome(LEFT_OUT, self.gone or NO_TIME), 0)

    def wanted(self, part):
        """Steps that have not ended."""
        if self.left() <= 0 or self.gone:
            # All that was listed in a call before is left out by name.
            named = any(key == part.key for key, _ in self.journal.results())
            if not named:
                self.record(part, Step(ALL_STEPS, None), Outcome(LEFT_OUT, self.gone or NO_TIME), 0)
            return []
        try:
            steps = part.steps()
        except Exception:
            self.record(part, Step(ALL_STEPS, None), Outcome(FAILED, traceback.format_exc()), 0)
            return []
        self.journal.add({"part": part.key, "listed": len(steps)})
        results = self.journal.results()
        return [step for step in steps if results.get((part.key, step.name), {}).get("verdict", LEFT_OUT) == LEFT_OUT]

    def turn(self, part, steps, end):
        """Begins steps until `end`, several at once; gives those that did not end in the time of the run."""
        if not steps:
            return []
        print(f"-- {part.title} ({time.monotonic() - self.begun:.0f} s)", flush=True)
        waiting, late = list(steps), []

        def work():
            while True:
                with self.lock:
                    if not waiting or self.gone or time.monotonic() >= end:
                        return
                    step = waiting.pop(0)
                if not self.one(part, step):
                    late.append(step)

        with concurrent.futures.ThreadPoolExecutor(part.at_once) as pool:
            for worker in [pool.submit(work) for _ in range(part.at_once)]:
                worker.result()
        return [step for step in steps if step in late or step in waiting]

    def one(self, part, step):
        """False if there was no time for it."""
        self.journal.add({"part": part.key, "step": step.name, "begun": round(time.time())})
        call, begin = Call(self, self.end), time.monotonic()
        try:
            outcome = step.do(call)
        except Exception:
            outcome = Outcome(FAILED, traceback.format_exc())
        if outcome.verdict == LEFT_OUT and outcome.why == NO_TIME:
            return False
        if call.unrecorded and outcome.verdict != FAILED:
            outcome = dataclasses.replace(outcome, verdict=FAILED, why=call.unrecorded)
        self.record(part, step, outcome, time.monotonic() - begin)
        if call.lost and not self.gone:
            self.gone = self.machine.why_gone()
        return True

    def record(self, part, step, outcome, seconds):
        entry = {"part": part.key, "step": step.name, "verdict": outcome.verdict, "seconds": round(seconds, 2), "call": self.call}
        entry |= {name: value for name in ("why", "rows", "text", "data") if (value := getattr(outcome, name))}
        self.journal.add(entry)
        if outcome.verdict in (FAILED, LEFT_OUT):
            print(f"   {outcome.verdict}: {part.key}: {step.name}: {outcome.why.strip().splitlines()[-1:]}", flush=True)
        self.changed()
