"""The report, in Markdown: made anew from the journal after each step."""

import os
import threading

from .steps import FAILED, LEFT_OUT, MEASURED, PASSED, REFUSED

ALL_PASSED, A_FAILURE, INCOMPLETE = 0, 1, 3  # exit statuses


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in row) + " |" for row in rows])


def last_lines(text, count):
    return "\n".join(text.strip().splitlines()[-count:])


class Report:
    """`parts`: all of a run, in the order of the report."""

    def __init__(self, title, journal, parts):
        self.title, self.journal, self.parts, self.lock = title, journal, parts, threading.Lock()

    def entries(self, part):
        return [entry for (key, _), entry in self.journal.results().items() if key == part.key]

    def of(self, verdict):
        return [entry for part in self.parts for entry in self.entries(part) if entry["verdict"] == verdict]

    def status(self):
        return A_FAILURE if self.of(FAILED) else INCOMPLETE if self.of(LEFT_OUT) else ALL_PASSED

    def verdict(self):
        """One line: what failed comes before what was left out."""
        found = []
        for verdict, name in ((FAILED, "FAILED"), (LEFT_OUT, "incomplete, left out")):
            by_part = {}
            for entry in self.of(verdict):
                by_part.setdefault(entry["part"], []).append(entry["step"])
            if by_part:
                named = [f"{part}: {', '.join(steps[:6])}{f' and {len(steps) - 6} more' * (len(steps) > 6)}" for part, steps in by_part.items()]
                found.append(f"{name}: {'; '.join(named)}")
        return ". ".join(found) or "all passed"

    def summary(self):
        rows = []
        for part in self.parts:
            entries = self.entries(part)
            if entries:
                count = {verdict: sum(entry["verdict"] == verdict for entry in entries) for verdict in (PASSED, MEASURED, REFUSED, FAILED, LEFT_OUT)}
                rows.append([part.title, *count.values(), f"{sum(entry['seconds'] for entry in entries):.0f}",
                             " ".join(map(str, sorted({entry["call"] for entry in entries})))])
        return table(["part", "passed", "measured", "refused", "failed", "left out", "s, of all its processes", "in call"], rows)

    def lines(self, unfinished=""):
        lines = [f"# {self.title}", "", "Written by `tools/gpu_acceptance`.", "", f"**{self.verdict()}.**", ""]
        if unfinished:
            lines += [f"**{unfinished}**", ""]
        calls = self.journal.calls()
        lines += [*calls[-1].get("lines", []), ""]
        lines += [f"Call {call['call']}: {call.get('minutes', 0):g} minutes, `run {' '.join(map(os.path.basename, call.get('words', [])))}`.  "
                  for call in calls]
        lines += ["", self.summary(), ""]
        for part in self.parts:
            lines += self.part_lines(part)
        return lines

    def part_lines(self, part):
        entries = self.entries(part)
        if not entries:
            return []
        lines = [f"## {part.title}", ""]
        rows = [row for entry in entries for row in entry.get("rows", [])]
        if part.head and rows:
            lines += [table(part.head, rows), ""]
        if part.render:
            lines += [*part.render(entries), ""]
        for entry in entries:
            lines += entry.get("text", []) + [""] * bool(entry.get("text"))
        for entry in entries:
            if entry["verdict"] == FAILED:
                lines += [f"FAILED: {entry['step']}:", "", "```", entry.get("why", "").strip()[-4000:], "```", ""]
        reasons = {}
        for entry in entries:
            if entry["verdict"] in (LEFT_OUT, REFUSED):
                reasons.setdefault((entry["verdict"], entry.get("why", "").strip()), []).append(entry["step"])
        for (verdict, why), steps in reasons.items():
            lines += [f"{verdict.capitalize()}: {', '.join(steps)}: {why}.", ""]
        return lines

    def write(self, path, unfinished=""):
        """Whole or not at all, so that one that is killed while it writes leaves the report of before. Several steps may end at once."""
        unwritten = f"{path}.unfinished"
        with self.lock:
            with open(unwritten, "w") as file:
                file.write("\n".join(self.lines(unfinished)))
                file.flush()
                os.fsync(file.fileno())
            os.replace(unwritten, path)
