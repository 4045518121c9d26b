"""Kernels: wrappers bit by bit, then every kernel and the devices against the reference, then the sanitizer."""

import collections
import os
import re
import shutil
import xml.etree.ElementTree

from . import random_model
from .process import timed_out
from .report import last_lines, table
from .scale import TINY
from .steps import FAILED, LEFT_OUT, NO_TIME, Outcome, Part, Step, failure

# Element types that occur in names of cases.
TYPE = re.compile(r"\b(f32|f16|bf16|mxfp4|i?q\d\w*)\b")
# Groups of cases of ops that the reference plugin does not have, and the plugin of the CPU that they are compared with instead.
FUSED = re.compile(r"matmul_group|_ffn")
FUSED_REFERENCE = "tessera_cpu_avx2.toml"


def wrappers(machine, scale):
    """Whether all wrappers do what they should on the cards of each plugin: nothing that is built on one that does not can be trusted."""

    def step(name):
        def do(call):
            outcome, done = call.judged([machine.program(f"cuda_wrappers_{name.removeprefix('cuda_')}_test")], scale.wrapper_seconds)
            if outcome.verdict != FAILED:
                outcome.rows = [[name, " ".join(last_lines(done.out, 3).split()), f"{done.seconds:.1f}"]]
            return outcome

        return Step(name, do)

    return Part("wrappers", "Wrappers of simt.hpp", lambda: [step(name) for name in machine.owners()], most=60, head=("plugin", "", "s"))


def case_type(name):
    found = TYPE.search(name)
    return found.group(1) if found else "-"


def summary(file):
    """Counts by (op, type) of a JUnit report, the texts of failures, and why the first case that was not claimed was not."""
    counts, failures, unclaimed = collections.defaultdict(collections.Counter), [], ""
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        group, name = case.get("classname", "").partition(".")[2], case.get("name", "")
        kind = "failed" if case.find("failure") is not None else "not claimed" if case.find("skipped") is not None else "passed"
        if group == "table" and kind == "passed":
            continue  # of each process, however few cases it has
        op = group.split(" on ")[0].removesuffix(".cuda")
        counts[op, case_type(name)][kind] += 1
        if kind == "failed":
            failures.append(f"{group}/{name}: {case.find('failure').get('message') or case.find('failure').text or ''}")
        elif kind == "not claimed" and not unclaimed:
            unclaimed = f"{name}: {case.find('skipped').get('message') or case.find('skipped').text or ''}"
    return counts, failures, unclaimed


class Groups:
    """plugin-test of one plugin on its first card, a process a group of cases: the device's own, and one a kernel."""

    def __init__(self, machine, scale, name):
        self.machine, self.scale, self.name = machine, scale, name
        self.plugin, self.card = machine.plugins[name], machine.card(name)["card"]

    def steps(self, wanted):
        """Of the groups for which `wanted` is true."""
        machine = self.machine
        done = machine.done(machine.tessera("plugin-test", f"{self.plugin}.toml", "--device", self.card, "--list"), 120)
        groups = [group for group in re.findall(r"(?m)^group: (.*)$", done.out)
                  if not self.scale.kernels or group.startswith("device ") or group.split(" on ")[0] in self.scale.kernels]
        if not groups:
            raise RuntimeError(f"plugin-test lists no groups of cases:\n{done.all}")
        return [Step(group, lambda call, group=group: self.test(call, group)) for group in groups if wanted(group)]

    def test(self, call, group):
        machine, scale = self.machine, self.scale
        fused_reference = self.plugin.parent / FUSED_REFERENCE
        if FUSED.search(group) and not fused_reference.exists():
            return Outcome(LEFT_OUT, f"there is no {FUSED_REFERENCE} to compare it with")
        file = machine.work / f"{self.name}-{group.replace(' ', '-')}.xml"
        words = ["--device", self.card, "--group", group, "--timeout", scale.case_seconds, "--junit", file]
        for part in scale.cases.get(group.split(" on ")[0], ()):
            words += ["--case", part]
        if FUSED.search(group):
            words += ["--reference", fused_reference]
        done, late = call.command(machine.tessera("plugin-test", f"{self.plugin}.toml", *words), scale.kernel_seconds)
        if late:
            return Outcome(LEFT_OUT, NO_TIME)
        if not file.exists():
            outcome = failure(done)
            outcome.why = f"it did not finish\n{outcome.why}"
            return outcome
        counts, failures, unclaimed = summary(file)
        data = {"counts": [[op, of, dict(counter)] for (op, of), counter in counts.items()], "seconds": done.seconds}
        if failures or done.status != 0:
            return Outcome(FAILED, "\n".join(failures[:12]) or done.all[-1500:], data=data)
        if not any(counter["passed"] for counter in counts.values()):
            return Outcome(FAILED, f"not one case passed; the first that it does not claim: {unclaimed or 'none'}", data=data)
        return Outcome(data=data)


def counted(entries):
    """A table of the cases of all groups, by kernel."""
    by_op = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    longest = ("none", 0.0)
    for entry in entries:
        data = entry.get("data", {})
        longest = max(longest, (entry["step"], data.get("seconds", 0)), key=lambda pair: pair[1])
        for op, of, counter in data.get("counts", []):
            by_op[op][of].update(counter)
    rows = []
    for op in sorted(by_op):
        total = sum(by_op[op].values(), collections.Counter())
        passed = sorted(of for of, counter in by_op[op].items() if counter["passed"] and of != "-")
        never = sorted(of for of, counter in by_op[op].items() if counter["not claimed"] and not counter["passed"] and of != "-")
        rows.append([op, total["passed"], total["failed"], total["not claimed"], " ".join(passed), " ".join(never)])
    return [f"Against the reference plugin, and fused kernels against cpu_avx2; the longest: {longest[0]}, {longest[1]:.0f} s.", "",
            table(["kernel", "passed", "failed", "not claimed", "types", "types not offered"], rows)]


def plugin_test(machine, scale, name, most):
    """The device first and alone, since it looks at the memory that is free; then the kernels, several at once."""
    groups = Groups(machine, scale, name)
    card = machine.card(name)["card"]
    return [Part(f"device of {name}", f"Device: {name} on {card}", lambda: groups.steps(lambda group: group.startswith("device ")), most=20, render=counted),
            Part(f"kernels of {name}", f"Kernels: {name} on {card}", lambda: groups.steps(lambda group: not group.startswith("device ")), most=most,
                 at_once=machine.at_once(), render=counted)]


def find_tool(machine, name, *patterns):
    """A profiler: the machine's own fits its driver, and comes before one that was carried."""
    found = shutil.which(name)
    if found:
        return found
    for root, pattern in [(machine.toolkits, pattern) for pattern in patterns] + [(machine.folder, f"*/{name}")]:
        paths = sorted(path for path in root.glob(pattern) if os.access(path, os.X_OK))
        if paths:
            return paths[-1]
    return None


def carried_libraries(machine, words):
    """The words of a program that a profiler starts: the profiler itself runs with the machine's own libraries."""
    return ["/usr/bin/env", f"LD_LIBRARY_PATH={machine.environment.get('LD_LIBRARY_PATH', '')}", *words]


def sanitizer_verdict(done):
    """(whether it passed, or None if it says nothing; why). Status 9 is what it was told to exit with for an error that it has found."""
    if timed_out(done):
        return None, f"it was ended after {done.seconds:.0f} s"
    # Of hazards those that are mere warnings do not count.
    summaries = [int(count) for count in re.findall(r"(?m)^=+ (?:ERROR SUMMARY: |RACECHECK SUMMARY: \d+ hazards? displayed \()(\d+) error", done.all)]
    if done.status == 9 or any(summaries):
        return False, done.all
    if not summaries:
        return None, "it did not run: " + " ".join(last_lines(done.all, 3).split())[:300]
    return done.status == 0, done.all


def sanitizer(machine):
    """compute-sanitizer on each kernel with few rows (measure_card --small) and on a tiny model. Not for emulated cards: the emulator checks each
    access itself. Processes at once, since each takes one core."""

    def steps():
        if machine.emulated:
            return []
        path = machine.work / "sanitized.gguf"
        random_model.write(path, TINY, "q8_0")
        tried = []
        for name in machine.owners():
            every_kernel = [machine.program("measure_card"), f"{machine.plugins[name]}.so", "--card", machine.card(name)["card"], "--small"]
            model = machine.tessera("run", "--config", machine.configuration(name), "-m", path, "--temp", "0", "-n", "2", "-p", "abc")
            tried += [(f"memcheck, each kernel of {name}", "memcheck", every_kernel), (f"racecheck, each kernel of {name}", "racecheck", every_kernel),
                      (f"memcheck, a tiny model on {name}", "memcheck", model)]
        return [Step(title, lambda call, tool=tool, words=words: check(call, tool, words)) for title, tool, words in tried]

    def check(call, tool, words):
        program = find_tool(machine, "compute-sanitizer", "cuda*/bin/compute-sanitizer", "cuda*/compute-sanitizer/compute-sanitizer")
        if not program:
            return Outcome(LEFT_OUT, "compute-sanitizer is neither installed nor carried")
        # measure_card asks drivers for functions that not every module has.
        api = ["--report-api-errors", "no"] if tool == "memcheck" else []
        done, late = call.command([program, "--target-processes", "all", "--tool", tool, *api, "--error-exitcode", "9",
                                   *carried_libraries(machine, words)], 120, machine.own_environment)
        if late:
            return Outcome(LEFT_OUT, NO_TIME)
        passed, why = sanitizer_verdict(done)
        if passed is None:
            return Outcome(LEFT_OUT, why)
        return Outcome() if passed else Outcome(FAILED, why)

    return Part("sanitizer", "compute-sanitizer", steps, most=60, at_once=machine.at_once())
