"""Kernels: wrappers bit by bit, then every kernel and the devices against the reference, then the sanitizer."""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import xml.etree.ElementTree

from .process import Done
from .report import last_lines, table

# Element types that occur in names of cases.
TYPE = re.compile(r"\b(f32|f16|bf16|mxfp4|i?q\d\w*)\b")
# Those that --small tries: small cases, of different kinds.
SMALL_KERNELS = ("rms_norm.cuda", "weighted_sum.cuda")


def wrappers(machine, report):
    for test in sorted((machine.folder / "bin").glob("cuda_wrappers_*_test")):
        report.step(f"Wrappers: {test.name}", [test], machine.environment, keep=last_lines(3), limit=90)


def case_type(name):
    found = TYPE.search(name)
    return found.group(1) if found else "-"


def summary(file):
    """Counts by (op, type) of a JUnit report, and the texts of failures."""
    counts, failures = collections.defaultdict(collections.Counter), []
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        group, name = case.get("classname", "").partition(".")[2], case.get("name", "")
        kind = "failed" if case.find("failure") is not None else "not claimed" if case.find("skipped") is not None else "passed"
        op = group.split(" on ")[0].removesuffix(".cuda")
        counts[op, case_type(name)][kind] += 1
        if kind == "failed":
            failures.append(f"{group}/{name}: {case.find('failure').get('message') or case.find('failure').text or ''}")
    return counts, failures


def groups_of(machine, name):
    """Names of the groups of cases that plugin-test has for the plugin's first card: the device's own, and one a kernel."""
    done = Done(machine.tessera("plugin-test", f"{machine.plugins[name]}.toml", "--device", machine.cards[name][0]["card"], "--list"),
                machine.environment, 120)
    return re.findall(r"(?m)^group: (.*)$", done.out)


def plugin_test(machine, report, name, small):
    """Every kernel of the plugin on the first card that it owns, each in a process of its own and several at once."""
    plugin, card = machine.plugins[name], machine.cards[name][0]["card"]
    report.heading(f"Kernels and devices: {name} on {card}")
    groups = [group for group in groups_of(machine, name) if not small or group.split(" on ")[0] in SMALL_KERNELS]
    if not groups:
        report.fail(f"kernels of {name}", "plugin-test lists none")
        return
    at_once = 2 if machine.emulated else max(2, min(8, (os.cpu_count() or 2) // 2))
    limit = min(report.left() / 2, 75)

    def one(group):
        file = machine.work / f"{name}-{group.replace(' ', '-')}.xml"
        return group, file, Done(machine.tessera("plugin-test", f"{plugin}.toml", "--device", card, "--group", group, "--timeout", "60",
                                                 "--junit", file), machine.environment, limit)

    counts, rows = collections.defaultdict(collections.Counter), []
    longest = ("", 0.0)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for group, file, done in pool.map(one, groups):
            what = f"{group} of {name}"
            if not file.exists():
                report.fail(what, f"it did not finish: status {done.status}\n{done.all[-1500:]}")
                continue
            longest = max(longest, (group, done.seconds), key=lambda pair: pair[1])
            found, failures = summary(file)
            for key, counter in found.items():
                counts[key].update(counter)
            if failures or done.status != 0:
                report.fail(what, "\n".join(failures[:12]) or done.all[-1500:])
    by_op = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for (op, of), counter in counts.items():
        by_op[op][of].update(counter)
    for op in sorted(by_op):
        total = sum(by_op[op].values(), collections.Counter())
        passed = sorted(of for of, counter in by_op[op].items() if counter["passed"] and of != "-")
        never = sorted(of for of, counter in by_op[op].items() if counter["not claimed"] and not counter["passed"] and of != "-")
        rows.append([op, total["passed"], total["failed"], total["not claimed"], " ".join(passed), " ".join(never)])
    report.text(f"Against the reference plugin; the longest: {longest[0]}, {longest[1]:.0f} s.\n")
    report.text(table(["kernel", "passed", "failed", "not claimed", "types", "types not offered"], rows))
    report.text()


def sanitizer_program():
    found = shutil.which("compute-sanitizer")
    if found:
        return found
    for folder in sorted(pathlib.Path("/usr/local").glob("cuda*/bin/compute-sanitizer")) + sorted(
            pathlib.Path("/usr/local").glob("cuda*/compute-sanitizer/compute-sanitizer")):
        return str(folder)
    return None


def sanitizer(machine, report):
    program = sanitizer_program()
    if not program or machine.emulated:
        report.heading("compute-sanitizer")
        report.text("It is not on this machine.\n" if not machine.emulated else "Not for emulated cards: the emulator checks each access itself.\n")
        return
    for name in machine.owners():
        for tool in ("memcheck", "racecheck"):
            report.step(f"compute-sanitizer {tool}: {name}",
                        [program, "--tool", tool, "--error-exitcode", "9", *machine.tessera(
                            "run", "--config", machine.configuration(name), "-m", machine.model, "--temp", "0", "-n", "2", "-p", "Count")],
                        machine.environment, keep=last_lines(4), limit=45)
