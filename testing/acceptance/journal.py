"""What a run has found, a JSON object a line, written as it comes: a run that is killed leaves what it had, and the next one goes on from there."""

import json
import os
import threading

ALL_STEPS = "all of it"  # the step of a part whose steps could not be listed, or were not for want of time


class Journal:
    """Entries: {"part", "step", "verdict", "seconds", "call", ...} of a step that has ended, {"part", "step", "begun"} of one that has begun,
    {"part", "listed"}: how many steps it has, and {"call", ...}, the first of each call of gpu_acceptance. `paths`: each gets all of it."""

    def __init__(self, paths, entries=()):
        self.lock = threading.Lock()
        self.entries = list(entries)
        self.paths = [os.fspath(path) for path in paths]
        for path in self.paths:
            with open(path, "w") as file:
                file.writelines(json.dumps(entry) + "\n" for entry in self.entries)

    @staticmethod
    def read(path):
        """The entries of a journal; a last line that was not finished is left out."""
        entries = []
        with open(path) as file:
            for line in file:
                try:
                    entries.append(json.loads(line))
                except ValueError:
                    break
        return entries

    def add(self, entry):
        with self.lock:
            self.entries.append(entry)
            for path in self.paths:
                with open(path, "a") as file:
                    file.write(json.dumps(entry) + "\n")

    def calls(self):
        return [entry for entry in self.entries if "part" not in entry]

    def results(self):
        """The last entry of each step that has ended, by (part, step), in the order in which they ended first."""
        found = {}
        with self.lock:
            for entry in self.entries:
                if "verdict" in entry:
                    found[entry["part"], entry["step"]] = entry
                elif "listed" in entry:
                    found.pop((entry["part"], ALL_STEPS), None)
        return found

    def unfinished(self):
        """Steps that began in a call before and did not end."""
        with self.lock:
            begun = set()
            for entry in self.entries:
                if "begun" in entry:
                    begun.add((entry["part"], entry["step"]))
                elif "verdict" in entry:
                    begun.discard((entry["part"], entry["step"]))
            return begun
