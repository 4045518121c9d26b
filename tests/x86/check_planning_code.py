#!/usr/bin/env python3
"""Checks that a plugin for x86 can be mapped and asked for plans on every x86-64 processor.

usage: check_planning_code.py LIBRARY --any OBJECT... --kernels OBJECT...

--any: objects whose code runs on every processor. They must hold no instruction that the architecture's first processors lacked,
and where the linker chose between their copy of an inline function and a kernel's, it must have chosen theirs.
--kernels: the other objects. They must not initialise anything when the library is mapped.
"""
import argparse
import re
import subprocess
import sys

# VEX and EVEX encodings are all that begins with v, but for two old instructions; the rest are BMI1, BMI2, ABM, SSE3 to SSE4.2 and AMX.
# Not tzcnt: compilers write it where bsf, as which older processors execute it, gives the same.
NEW = re.compile(
    r"(v(?!er[rw]\b)\w+|andn|bextr|blsi|blsr|blsmsk|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|popcnt|movbe|crc32\w?|"
    r"k(mov|ortest|test|and|or|xor|not|unpck|shift)\w+|p(shufb|abs[bwd]|alignr|hadd\w+|max(sb|sd|ud|uw)|min(sb|sd|ud|uw)|mulld|blend\w+|"
    r"insr[bdq]|extr[bdq]|movzx\w+|movsx\w+|test|cmpeqq|cmpgtq)|blendv?p[sd]|dpp[sd]|round[sp][sd]|h(add|sub)p[sd]|addsubp[sd]|"
    r"mov(ddup|sldup|shdup)|lddqu|extractps|insertps|tile\w+|(ld|st)tilecfg|tdp\w+)$"
)
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\t(?:(?:rep|repz|repnz|lock|data16|cs|notrack|bnd)\s+)*(\S+)")


def run(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def new_instructions(file: str) -> dict[str, str]:
    """Functions of an object or a library that hold such an instruction, each with the first one."""
    found: dict[str, str] = {}
    function = "?"
    for line in run("objdump", "-d", "--no-show-raw-insn", file):
        if match := FUNCTION.match(line):
            function = match[1]
        elif (match := INSTRUCTION.match(line)) and NEW.match(match[1]):
            found.setdefault(function, match[1])
    return found


def inline_functions(file: str) -> set[str]:
    """Weak symbols: of those in several objects the linker keeps one."""
    return {line.split()[-1] for line in run("nm", "--defined-only", file) if line.split()[-2] in "WVu"}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--any", nargs="+", required=True)
    parser.add_argument("--kernels", nargs="+", required=True)
    arguments = parser.parse_args()
    for files in (arguments.any, arguments.kernels):
        files[:] = [file for file in files if file.endswith(".o")]  # precompiled headers are listed, too
    faults: list[str] = []
    shared: set[str] = set()
    for file in arguments.any:
        faults += [f"{file}: {function} holds {what}" for function, what in new_instructions(file).items()]
        shared |= inline_functions(file)
    library = new_instructions(arguments.library)
    faults += [f"{arguments.library}: {name} is a kernel's copy, with {library[name]}" for name in sorted(shared & set(library))]
    kernels: set[str] = set()
    for file in arguments.kernels:
        kernels |= inline_functions(file)
        if any(".init_array" in line or ".ctors" in line for line in run("objdump", "-h", file)):
            faults.append(f"{file}: initialises something when the library is mapped")
    if not library:
        faults.append(f"{arguments.library}: no new instruction at all: what is a kernel?")
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    if len(faults) > 20:
        print(f"and {len(faults) - 20} more", file=sys.stderr)
    print(f"{len(arguments.any)} objects for every processor, {len(arguments.kernels)} of kernels; "
          f"{len(shared & kernels)} inline functions in both")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
