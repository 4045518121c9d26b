#!/usr/bin/env python3
"""Fails if a kernel of the CUDA plugins was launched by none of the runs whose counters lie in a folder.

    every_kernel_test.py BUILD COUNTERS
"""

import pathlib
import re
import sys

# Kernels that no case asks for, and why.
UNUSED = {
    r".*\.(matmul_id|down|gate_up)_q4_K(_by8)?|.*\.matmul_q4_K_tile1": "rows of q4_K begin at multiples of 16 bytes wherever weights are aligned",
    r".*\.(matmul_id|down|gate_up)_iq4_xs|.*\.matmul_iq4_xs_tile1": "rows of iq4_xs begin at multiples of 8 bytes wherever weights are aligned",
    r"cuda_legacy__product_parts\.make_(blocks|halves_.*)": "compiled for both plugins, launched by cuda_ampere",
    r"cuda_ampere__flash_.*_large(_wide)?_bf16": "no case has so many rows with a cache of bf16",
    r".*__matmul_float\.matmul_.*_tile2": "no case has two rows",
}

build, counters = map(pathlib.Path, sys.argv[1:3])
compiled, ran, instructions = set(), set(), 0
for path in (build / "lib/tessera/emulated").glob("cuda_*__*.ptx"):
    module = path.name.split(".")[0]
    if re.match(r"cuda_(legacy|ampere)__", module):
        compiled |= {f"{module}.{name}" for name in re.findall(r"\.entry (\w+)", path.read_text(encoding="latin1"))}
for path in counters.iterdir():
    for line in path.read_text().splitlines()[1:]:
        values = line.split("\t")
        ran.add(values[0])
        instructions += int(values[-1])
missing = sorted(compiled - ran)
unused = {kernel for kernel in missing if any(re.fullmatch(pattern, kernel) for pattern in UNUSED)}
print(f"{len(compiled) - len(missing)} of {len(compiled)} kernels have run from PTX, with {instructions * 32 / 1e9:.1f} G instructions of lanes")
for kernel in missing:
    print(f"{'no case: ' if kernel in unused else 'never launched: '}{kernel}")
stale = [pattern for pattern in UNUSED if not any(re.fullmatch(pattern, kernel) for kernel in missing)]
if stale:
    print(f"launched, though said to be unused: {stale}")
sys.exit(1 if stale or set(missing) - unused or not compiled else 0)
