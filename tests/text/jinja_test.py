#!/usr/bin/env python3
"""The interpreter of templates against Python's Jinja: small templates, one or more for each feature (jinja_cases.py).

    jinja_test.py RENDER_CHAT
Exits with 77 (skipped) without jinja2."""
import sys

import jinja_cases
from jinja_reference import Renderer, environment, rendered

# What Python does and Tessera refuses.
MISSING = {"{{ 10 ** 30 }}"}  # integers beyond 64 bits


def main():
    renderer, reference = Renderer(sys.argv[1]), environment()
    variables = __import__("json").dumps(jinja_cases.VARIABLES)
    equal = refused = 0
    faults = []
    for program in jinja_cases.programs():
        try:
            wanted = rendered(reference.from_string(program), jinja_cases.VARIABLES)
        except Exception:  # not Jinja
            wanted = None
        got = renderer.ask(program=program)
        if "error" not in got:
            got = renderer.ask(variables=variables, may_change=False)
        if "error" in got and "line " not in got["error"]:
            faults.append((program, "an error without its line", got["error"]))
        if "text" in got and got["text"] == wanted:
            equal += 1
        elif "error" in got and (wanted is None or program in MISSING):
            refused += 1
        else:
            faults.append((program, got, wanted))
    for fault in faults:
        print("WRONG:", *map(repr, fault), sep="\n  ")
    print(f"{equal} equal, {refused} refused by both, {len(faults)} faults")
    return 1 if faults or equal < 800 or refused < 150 else 0


if __name__ == "__main__":
    sys.exit(main())
