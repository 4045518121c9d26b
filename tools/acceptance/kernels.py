"""Kernels: wrappers bit by bit, then every kernel and the devices against the reference, then the sanitizer."""

import collections
import concurrent.futures
import os
import re
import shutil
import xml.etree.ElementTree

from . import random_model
from .process import timed_out
from .report import last_lines, table
from .scale import TINY

# Element types that occur in names of cases.
TYPE = re.compile(r"\b(f32|f16|bf16|mxfp4|i?q\d\w*)\b")
# Groups of cases of ops that the reference plugin does not have, and the plugin of the CPU that they are compared with instead.
FUSED = re.compile(r"matmul_group|_ffn")
FUSED_REFERENCE = "tessera_cpu_avx2.toml"


def wrappers(machine, report):
    """Whether all wrappers do what they should on the cards of each plugin: nothing can be trusted after one that does not."""
    passed = []
    for name in machine.owners():
        test = machine.program(f"cuda_wrappers_{name.removeprefix('cuda_')}_test")
        limit = 90 if not machine.emulated else 900
        passed.append(report.step(f"Wrappers: {name}", [test], machine.environment, keep=last_lines(3), limit=limit))
    return all(passed)


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


def groups_of(machine, report, name):
    """Names of the groups of cases that plugin-test has for the plugin's first card: the device's own, and one a kernel."""
    done, _ = report.command(machine.tessera("plugin-test", f"{machine.plugins[name]}.toml", "--device", machine.cards[name][0]["card"], "--list"),
                             machine.environment, 120)
    return re.findall(r"(?m)^group: (.*)$", done.out)


def plugin_test(machine, report, name, scale):
    """Every kernel of the plugin on the first card that it owns, each in a process of its own and several at once."""
    plugin, card = machine.plugins[name], machine.cards[name][0]["card"]
    report.heading(f"Kernels and devices: {name} on {card}")
    groups = [group for group in groups_of(machine, report, name)
              if not scale.kernels or group.startswith("device ") or group.split(" on ")[0] in scale.kernels]
    if not groups:
        report.fail(f"kernels of {name}", "plugin-test lists none")
        return
    fused_reference = plugin.parent / FUSED_REFERENCE
    if not fused_reference.exists():
        report.leave_out(f"fused kernels of {name}", f"there is no {FUSED_REFERENCE} to compare them with")
        groups = [group for group in groups if not FUSED.search(group)]

    def one(group):
        file = machine.work / f"{name}-{group.replace(' ', '-')}.xml"
        words = ["--device", card, "--group", group, "--timeout", scale.case_seconds, "--junit", file]
        for part in scale.cases.get(group.split(" on ")[0], ()):
            words += ["--case", part]
        if FUSED.search(group):
            words += ["--reference", fused_reference]
        return group, file, *report.command(machine.tessera("plugin-test", f"{plugin}.toml", *words), machine.environment, scale.kernel_seconds)

    counts, rows = collections.defaultdict(collections.Counter), []
    longest = ("", 0.0)
    with concurrent.futures.ThreadPoolExecutor(machine.at_once()) as pool:
        for group, file, done, late in pool.map(one, groups):
            what = f"{group} of {name}"
            if late:
                report.leave_out(what)
                continue
            if not file.exists():
                report.fail(what, f"it did not finish: status {done.status}\n{done.all[-1500:]}")
                continue
            longest = max(longest, (group, done.seconds), key=lambda pair: pair[1])
            found, failures, unclaimed = summary(file)
            for key, counter in found.items():
                counts[key].update(counter)
            if failures or done.status != 0:
                report.fail(what, "\n".join(failures[:12]) or done.all[-1500:])
            elif not any(counter["passed"] for counter in found.values()):
                report.fail(what, f"not one case passed; the first that it does not claim: {unclaimed or 'none'}")
    by_op = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for (op, of), counter in counts.items():
        by_op[op][of].update(counter)
    for op in sorted(by_op):
        total = sum(by_op[op].values(), collections.Counter())
        passed = sorted(of for of, counter in by_op[op].items() if counter["passed"] and of != "-")
        never = sorted(of for of, counter in by_op[op].items() if counter["not claimed"] and not counter["passed"] and of != "-")
        rows.append([op, total["passed"], total["failed"], total["not claimed"], " ".join(passed), " ".join(never)])
    report.text(f"Against the reference plugin, and fused kernels against cpu_avx2; the longest: {longest[0]}, {longest[1]:.0f} s.\n")
    report.text(table(["kernel", "passed", "failed", "not claimed", "types", "types not offered"], rows))
    report.text()


def sanitizer_program(machine):
    carried = machine.folder / "compute-sanitizer" / "compute-sanitizer"
    if os.access(carried, os.X_OK):
        return carried
    found = shutil.which("compute-sanitizer")
    if found:
        return found
    root = machine.toolkits
    return next((path for path in sorted(root.glob("cuda*/bin/compute-sanitizer")) + sorted(root.glob("cuda*/compute-sanitizer/compute-sanitizer"))), None)


def sanitizer_verdict(done):
    """(whether it passed, or None if it says nothing; why). Status 9 is what it was told to exit with for an error that it has found."""
    if timed_out(done):
        return None, f"it was ended after {done.seconds:.0f} s"
    # Of hazards those that are mere warnings do not count.
    summaries = [int(count) for count in re.findall(r"(?m)^=+ (?:ERROR SUMMARY: |RACECHECK SUMMARY: \d+ hazards? displayed \()(\d+) error", done.all)]
    if done.status == 9 or any(summaries):
        return False, done.all
    if not summaries:
        return None, "it did not run: " + " ".join(last_lines(3)(done.all).split())[:300]
    return done.status == 0, done.all


def sanitizer(machine, report):
    """compute-sanitizer on each kernel with few rows (measure_card --small) and on a tiny model. Processes at once, since each takes one core."""
    report.heading("compute-sanitizer")
    if machine.emulated:
        report.text("Not for emulated cards: the emulator checks each access itself.\n")
        return
    program = sanitizer_program(machine)
    if not program:
        report.leave_out("compute-sanitizer", "it is neither carried nor installed")
        return
    path = machine.work / "sanitized.gguf"
    random_model.write(path, TINY, "q8_0")
    tried = []
    for name in machine.owners():
        every_kernel = [machine.program("measure_card"), f"{machine.plugins[name]}.so", "--card", machine.cards[name][0]["card"], "--small"]
        model = machine.tessera("run", "--config", machine.configuration(name), "-m", path, "--temp", "0", "-n", "2", "-p", "abc")
        tried += [(f"memcheck, each kernel of {name}", "memcheck", every_kernel), (f"racecheck, each kernel of {name}", "racecheck", every_kernel),
                  (f"memcheck, a tiny model on {name}", "memcheck", model)]

    def one(case):
        title, tool, words = case
        done, _ = report.command([program, "--tool", tool, "--error-exitcode", "9", *words], machine.environment, 120)
        return title, done

    rows = []
    with concurrent.futures.ThreadPoolExecutor(machine.at_once()) as pool:
        for title, done in pool.map(one, tried):
            passed, why = sanitizer_verdict(done)
            rows.append([title, {True: "passed", False: "FAILED", None: "left out"}[passed], f"{done.seconds:.1f}"])
            if passed is None:
                report.leave_out(f"compute-sanitizer: {title}", why)
            elif not passed:
                report.fail(f"compute-sanitizer: {title}", why)
    report.text(table(["what", "", "s"], rows))
    report.text()
