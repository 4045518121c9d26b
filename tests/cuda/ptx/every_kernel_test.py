#!/usr/bin/env python3
"""Fails if a kernel of the modules, of any architecture that they were compiled for, was launched by none of the runs whose counters lie in a folder.

    every_kernel_test.py BUILD COUNTERS MODULE...

PTX of other modules in the build folder, which earlier builds left there, does not count.
"""

import pathlib
import re
import sys

build, counters = map(pathlib.Path, sys.argv[1:3])
compiled, ran, instructions = set(), set(), 0
for module in sys.argv[3:]:
    files = sorted((build / "lib/tessera/emulated").glob(f"{module}.*.ptx"))
    if not files:
        sys.exit(f"{build}/lib/tessera/emulated has no PTX of {module}: build the target tessera_plugins")
    for path in files:
        arch = path.name.split(".")[1]
        compiled |= {f"{module}.{name} for {arch}" for name in re.findall(r"\.entry (\w+)", path.read_text(encoding="latin1"))}
for path in counters.iterdir():
    header, *lines = [line.split("\t") for line in path.read_text().splitlines()]
    for values in (dict(zip(header, line)) for line in lines):
        if ran_here := int(values["instructions of PTX"]):
            ran.add(f"{values['kernel']} for {values['virtual architecture']}")
            instructions += ran_here
missing = sorted(compiled - ran)
print(f"{len(compiled) - len(missing)} of {len(compiled)} kernels have run from PTX, with {instructions * 32 / 1e9:.1f} G instructions of lanes")
for kernel in missing:
    print(f"never launched: {kernel}")
sys.exit(1 if missing or not compiled else 0)
