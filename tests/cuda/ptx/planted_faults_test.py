#!/usr/bin/env python3
"""Plants mistakes in the PTX that the build made of kernels, one at a time, and sees that running it finds each.

    planted_faults_test.py TOOL BUILD [TEXT ...]     only mistakes whose description contains one of the texts

TOOL: tools/with_emulated_gpus. A mistake is an edit of the text of one kernel, or of all kernels of a module whose names a pattern matches; the
command must succeed without it and fail with it, and say what is expected.
"""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WRONG = r"FAILED|Failure"  # a difference from what the host, or the reference, computes


@dataclasses.dataclass
class Mistake:
    what: str
    kernel: str  # a pattern
    edit: tuple  # pattern, replacement; of each place where it matches
    expected: str = WRONG


@dataclasses.dataclass
class Group:
    card: str
    module: str
    command: list
    mistakes: list


def wrappers(plugin, card, mistakes):
    return Group(card, f"cuda_wrappers_{plugin}_test__wrappers", [f"bin/cuda_wrappers_{plugin}_test"], mistakes)


def plugin_test(plugin, card, module, arguments, mistakes):
    return Group(card, f"cuda_{plugin}__{module}", ["bin/tessera", "plugin-test", f"lib/tessera/plugins/tessera_cuda_{plugin}.toml",
                                                    "--device", "CUDA0", "--timeout", "120", *arguments], mistakes)


ACCUMULATED = r"(mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16.*?\}, \{)(%r\d+), (%r\d+), (%r\d+), (%r\d+)"
GROUPS = [
    wrappers("ampere", "8.6:1GiB", [
        Mistake("mma: registers of a exchanged", "wrapper_tensor", (ACCUMULATED, r"\1\2, \4, \3, \5")),
        Mistake("mma: registers of b exchanged", "wrapper_tensor", (r"(m16n8k32.*?\}, \{.*?\}, \{)(%r\d+), (%r\d+)\}", r"\1\3, \2}")),
        Mistake("mma: int8 without signs", "wrapper_tensor", (r"m16n8k16\.row\.col\.s32\.s8\.s8", "m16n8k16.row.col.s32.u8.u8")),
        Mistake("mma: bf16 taken for f16", "wrapper_tensor", (r"bf16\.bf16", "f16.f16")),
        Mistake("ldmatrix: .trans left out", "wrapper_tensor", (r"\.trans", "")),
        Mistake("ldmatrix: .trans too much", "wrapper_tensor", (r"x4\.shared", "x4.trans.shared")),
        Mistake("cp.async: no zeros behind what is read", "wrapper_tensor", (r"\], 16, %r\d+;", "], 16;")),
        Mistake("cp.async: one group too few is waited for", "wrapper_tensor", (r"wait_group 0", "wait_group 1"), "has not been waited for"),
        Mistake("cp.async: not waited for", "wrapper_tensor", (r"cp\.async\.wait_group 0;", ""), "has not been waited for"),
        Mistake("cp.async: not committed", "wrapper_tensor", (r"cp\.async\.commit_group;", ""), "has not been waited for"),
        Mistake("dp4a without signs", "wrapper_dp4a", (r"dp4a\.s32\.s32", "dp4a.u32.u32")),
        Mistake("dp4a: one operand without signs", "wrapper_dp4a", (r"dp4a\.s32\.s32", "dp4a.s32.u32")),
        Mistake("fma of halves: operands in another order", "wrapper_halves", (r"(fma\.rn\.f16x2 %r\d+), (%r\d+), (%r\d+), (%r\d+)", r"\1, \2, \4, \3")),
        Mistake("bar.arrive with another count", "wrapper_named_barriers", (r"(bar\.arrive %r\d+), %r\d+", r"\1, 64"), "expect"),
        Mistake("bar.sync of another barrier", "wrapper_named_barriers", (r"bar\.sync %r\d+", "bar.sync 2"), "deadlock"),
        Mistake("no barrier before reading", "wrapper_shared", (r"bar\.sync\s+0;", ""), "unwritten shared memory|" + WRONG),
        Mistake("an instruction that is not known", "wrapper_shared", (r"bar\.sync\s+0;", "frobnicate.b32 %r1;"),
                r"CUDA_ERROR_INVALID_PTX.*line \d+ of the PTX: unknown or unsupported instruction frobnicate\.b32"),
        Mistake("a barrier for half the block", "wrapper_shared", (r"bar\.sync\s+0;", "bar.sync 0, 64;"), "more threads arrive|" + WRONG),
        Mistake("shared memory past the end", "wrapper_shared", (r"st\.shared\.u32 \t\[(%rd\d+)\]", r"st.shared.u32 [\1+4]"), "after the end|" + WRONG),
        Mistake("shfl without half of its members", "wrapper_warp", (r"mov\.u32 \t(%r\d+), -1;", r"mov.u32 \1, 65535;"), "not in its own mask"),
        Mistake("shfl.bfly for shfl.down", "wrapper_warp", (r"shfl\.sync\.down", "shfl.sync.bfly")),
        Mistake("shfl from the wrong half of the warp", "wrapper_warp", (r"and\.b32  \t(%r\d+), (%r\d+), 31;", r"and.b32 \1, \2, 15;")),
        Mistake("vote of the contrary", "wrapper_warp", (r"vote\.sync\.ballot\.b32 \t(%r\d+), (%p\d+)", r"vote.sync.ballot.b32 \1, !\2")),
        Mistake("prmt: operands exchanged", "wrapper_warp", (r"prmt\.b32 (%r\d+), (%r\d+), (%r\d+)", r"prmt.b32 \1, \3, \2")),
        Mistake("mul.hi with signs", "wrapper_warp", (r"mul\.hi\.u32", "mul.hi.s32")),
        Mistake("f16 rounded to zero", "wrapper_floats", (r"cvt\.rn\.f16", "cvt.rz.f16")),
        Mistake("to an integer by leaving out digits", "wrapper_arithmetic", (r"cvt\.rni\.s32", "cvt.rzi.s32")),
        Mistake("atomic maximum without signs", "wrapper_atomics", (r"(atom|red)\.global\.max\.s32", r"\1.global.max.u32")),
        Mistake("an atomic addition as load and store", "wrapper_atomics",
                (r"(?:atom|red)\.global\.add\.u32 \t(?:%r\d+, )?\[%rd(\d+)\], 1;", r"ld.global.u32 %r2, [%rd\1]; add.u32 %r2, %r2, 1; st.global.u32 [%rd\1], %r2;")),
        Mistake("a load that is not aligned", "wrapper_memory", (r"(ld\.global\.nc\.v4\.u32 \{.*?\}, \[%rd\d+)\]", r"\1+4]"), "no multiple of it"),
        Mistake("a load past the end", "wrapper_memory", (r"(ld\.global\.nc\.v4\.u32 \{.*?\}, \[%rd\d+)\]", r"\1+16]"), "after the end"),
    ]),
    plugin_test("ampere", "8.6:1GiB", "rms_norm", ["--kernel", "rms_norm", "--case", "in place"], [
        Mistake(".nc of what the kernel writes", "rms_norm", (r"ld\.global\.(v4\.)?f32", r"ld.global.nc.\1f32"), "read-only"),
    ]),
    plugin_test("ampere", "8.6:1GiB", "flash_mla", ["--kernel", "flash_attention", "--case", "prefix 576/512 cache f16, 2 sequences"], [
        Mistake("attention: .trans left out", ".*", (r"\.trans", "")),
        Mistake("attention: a group too few is waited for", ".*", (r"wait_group \t?(\d)", lambda m: f"wait_group {int(m[1]) + 1}"), "has not been waited for"),
        Mistake("attention: no barriers", ".*", (r"bar\.sync\s+0;", ""), "has not been waited for|unwritten shared memory|" + WRONG),
        Mistake("attention: the least score for the greatest", ".*", (r"max\.f32", "min.f32")),
        Mistake("attention: no zeros behind what is read", ".*", (r"(cp\.async\.cg\.shared\.global \[%r\d+\], \[%rd\d+\], 16), %r\d+;", r"\1;")),
        Mistake("attention: registers of b exchanged", ".*", (r"(mma\.sync.*?\}, \{.*?\}, \{)(%r\d+), (%r\d+)\}", r"\1\3, \2}")),
    ]),
    plugin_test("ampere", "8.0:1GiB", "staged_small", ["--kernel", "matmul.cuda", "--case", "q8_0 signs"], [
        Mistake("products: one group too few is waited for", ".*", (r"wait_group \t?(\d)", lambda m: f"wait_group {int(m[1]) + 1}"), "has not been waited for"),
        Mistake("products: int8 without signs", ".*", (r"s32\.s8\.s8", "s32.u8.s8")),
        Mistake("products: no barriers", ".*", (r"bar\.sync\s+0;", ""), "has not been waited for|unwritten shared memory|" + WRONG),
    ]),
    plugin_test("legacy", "6.1:1GiB", "few_rows_small", ["--kernel", "matmul.cuda", "--case", "q8_0 k=1408 n=37"], [
        Mistake("one row: dp4a without signs", ".*", (r"dp4a\.s32\.s32", "dp4a.u32.u32")),
        Mistake("one row: a shuffle less", ".*", (r"shfl\.sync\.bfly\.b32 \t(%r\d+)\|%p\d+, (%r\d+), %r\d+, %r\d+, %r\d+;", r"mov.b32 \1, \2;")),
        Mistake("one row: loads of the neighbour", ".*", (r"(ld\.global\.nc\.v4\.u32 \{.*?\}, \[%rd\d+)\]", r"\1+16]"), "out of bounds|nobody has written|" + WRONG),
    ]),
]


class Planting:
    def __init__(self, tool, build):
        self.tool, self.build = tool, build
        self.modules = build / "lib/tessera/emulated"

    def run(self, group, folder=None):
        kernels = f"ptx:{folder}:{self.modules}" if folder else f"ptx:{self.modules}"
        command = [self.tool, "--build", self.build, "--gpu", group.card, "--", "env", f"TESSERA_EMULATED_KERNELS={kernels}",
                   self.build / group.command[0], *[self.build / word if word.endswith(".toml") else word for word in group.command[1:]]]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, env={**os.environ, "TESSERA_EMULATED_LOG": "/dev/null"})
        return done.returncode, done.stdout + done.stderr

    def edited(self, path, mistake):
        text = path.read_text(encoding="latin1")
        places = 0

        def edit(match):
            nonlocal places
            if not re.fullmatch(mistake.kernel, match.group(1)):
                return match.group(0)
            made, count = re.subn(*mistake.edit, match.group(0))
            places += count
            return made

        return re.sub(r"\.entry (\w+)\(.*?^\}", edit, text, flags=re.S | re.M), places

    def check(self, group, mistake):
        """What is wrong; empty if the mistake is found."""
        paths = list(self.modules.glob(f"{group.module}.*.ptx"))
        if len(paths) < 1:
            return f"no PTX of {group.module}"
        with tempfile.TemporaryDirectory() as folder:
            places = 0
            for path in paths:
                text, count = self.edited(path, mistake)
                places += count
                (pathlib.Path(folder) / path.name).write_text(text, encoding="latin1")
            if places == 0:
                return "the edit matches nothing"
            status, output = self.run(group, folder)
        if status == 0:
            return "not found"
        if not re.search(mistake.expected, output):
            return f"found, but not as {mistake.expected}:\n{output[-2000:]}"
        return ""


def main():
    planting = Planting(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
    found = failed = 0
    for group in GROUPS:
        chosen = [m for m in group.mistakes if not sys.argv[3:] or any(text in m.what for text in sys.argv[3:])]
        if not chosen:
            continue
        status, output = planting.run(group)
        if status != 0:
            print(f"{group.module} fails without a mistake:\n{output[-2000:]}")
            failed += 1
            continue
        for mistake in chosen:
            trouble = planting.check(group, mistake)
            print(f"{'FAILED' if trouble else 'found '} {group.module}: {mistake.what}{': ' if trouble else ''}{trouble}", flush=True)
            found, failed = found + (not trouble), failed + bool(trouble)
    print(f"{found} found, {failed} failed")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
