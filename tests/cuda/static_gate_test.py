"""The static gate finds what is worse than its bounds: static_gate_test.py SOURCE [COMPILER TOOLKIT].

Most builds here are made up: statistics as the compiler of kernels writes them, and listings of machine code in place of cubins. With a compiler one
kernel of the plugins is made worse and compiled.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])
COMPILER, TOOLKIT = sys.argv[2:4] if len(sys.argv) > 2 else (None, None)

# module, architecture, kernel, threads, registers, bytes of stores and loads that spill, shared memory, stack
KERNELS = {
    ("cuda_ampere__few_rows_small", 80, "matmul_q4_0_tile1_by16"): [128, 126, 0, 0, 18432, 0],
    ("cuda_ampere__flash_mla", 80, "flash_mla_small_f16"): [128, 200, 0, 0, 0, 0],
    ("cuda_ampere__flash_mla", 80, "flash_mla_large_f16"): [256, 255, 0, 0, 0, 0],
    ("cuda_ampere__flash_mla_wide", 80, "flash_mla_small_wide_f16"): [128, 200, 0, 0, 0, 0],
    ("cuda_legacy__few_rows_small", 61, "matmul_q4_0_tile1_by16"): [128, 120, 0, 0, 18432, 0],
}
SHAPES = {"HMMA.16816.F32": "HMMA.16816.F32 R4, R8, R12, R4", "IMMA.16832.S8.S8": "IMMA.16832.S8.S8 R4, R8, R12, R4", "FFMA": "FFMA R1, R2, R3, R1",
          "IMAD.HI.U32": "IMAD.HI.U32 R1, R2, R3, RZ", "BAR.SYNC": "BAR.SYNC 0x0", "EXIT": "EXIT", "IDP.4A.S8.S8": "IDP.4A.S8.S8 R1, R2, R3, R1", "IADD3": "IADD3 R1, R2, R3, RZ", "LDG.E.128": "LDG.E.128 R4, desc[UR4][R2.64]",
          "LDSM.16.MT88.4": "LDSM.16.MT88.4 R4, [R2]", "LDGSTS.E.BYPASS.128": "LDGSTS.E.BYPASS.128 [R2], desc[UR4][R4.64]"}
LOADS = {"LDSM.16.MT88.4": 1, "LDGSTS.E.BYPASS.128": 1}
# module, kernel: instructions of the loop
LOOPS = {
    ("cuda_ampere__flash_mla", "flash_mla_large_f16"): {"HMMA.16816.F32": 32, "FFMA": 100, **LOADS},
    ("cuda_ampere__flash_mla_wide", "flash_mla_large_wide_f16"): {"HMMA.16816.F32": 32, "FFMA": 100, **LOADS},
    ("cuda_ampere__products_small", "product_q4_0_128"): {"IMMA.16832.S8.S8": 32, "FFMA": 250},
    ("cuda_ampere__few_rows_small", "matmul_q4_0_tile1_by16"): {"IDP.4A.S8.S8": 64, "IADD3": 100},
}


def listing(name, instructions, behind=()):
    """A kernel with a loop of these instructions, and others behind it."""
    lines = [f"//--------------------- .text.{name} --------------------------", ".L_x_0:"]
    for operation, count in instructions.items():
        lines += [f"        /*0000*/                   {SHAPES[operation]} ;"] * count
    lines += ["        /*0010*/              @!P0 BRA `(.L_x_0) ;"]
    lines += [f"        /*0020*/                   {SHAPES[operation]} ;" for operation in behind]
    lines += ["        /*0020*/                   EXIT ;"]
    return "\n".join(lines) + "\n"


class Gate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # It prints the listing that lies in place of a cubin.
        self.nvdisasm = self.folder / "nvdisasm"
        self.nvdisasm.write_text('#!/bin/sh\ncat "$2"\n')
        self.nvdisasm.chmod(0o755)
        self.bounds = self.folder / "bounds.toml"
        self.bounds.write_text((SOURCE / "testing/cuda_code/cuda_bounds.toml").read_text())
        self.build(KERNELS, LOOPS)
        self.assertEqual(self.gate("--record"), (0, ""))

    def build(self, kernels, loops):
        for old in [*self.folder.glob("build/plugins/*/cuda/*/*")]:
            old.unlink()
        for (module, arch, name), numbers in kernels.items():
            path = self.module(module) / f"{module}.statistics"
            with path.open("a") as out:
                out.write(" ".join(map(str, [module, arch, name, *numbers])) + "\n")
        for (module, name), instructions in loops.items():
            (self.module(module) / f"{module}.80.0123456789abcdef.cubin").write_text(listing(name, instructions))

    def module(self, module):
        folder = self.folder / "build/plugins" / module.split("__")[0] / "cuda" / module
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def gate(self, how):
        done = subprocess.run([sys.executable, SOURCE / "testing/cuda_code/cuda_static", self.folder / "build", how, "--bounds", self.bounds, "--nvdisasm",
                               self.nvdisasm], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def assert_fails(self, *words):
        status, text = self.gate("--check")
        self.assertEqual(status, 1, text)
        for word in words:
            self.assertIn(word, text)

    def with_kernel(self, which, column, value):
        kernels = {key: list(numbers) for key, numbers in KERNELS.items()}
        kernels[which][column] = value
        self.build(kernels, LOOPS)

    def with_loop(self, which, operation, count):
        loops = {key: dict(instructions) for key, instructions in LOOPS.items()}
        loops[which][operation] = count
        self.build(KERNELS, loops)

    def test_what_was_recorded_passes(self):
        status, text = self.gate("--check")
        self.assertEqual(status, 0, text)
        self.assertIn("5 kernels, none spills", text)

    def test_better_figures_pass(self):
        kernels = {key: [numbers[0], numbers[1] - 16, *numbers[2:]] for key, numbers in KERNELS.items()}
        loops = {key: {op: max(1, count - (op in ("FFMA", "IADD3")) * 40) for op, count in of.items()} for key, of in LOOPS.items()}
        self.build(kernels, loops)
        status, text = self.gate("--check")
        self.assertEqual(status, 0, text)

    def test_attention_without_its_instructions(self):
        for operation in ("HMMA.16816.F32", *LOADS):
            self.with_loop(("cuda_ampere__flash_mla_wide", "flash_mla_large_wide_f16"), operation, 0)
            self.assert_fails("flash_mla_large_wide_f16, sm_80: no instruction " + operation.split(".")[0])

    def test_a_spill(self):
        self.with_kernel(("cuda_ampere__flash_mla", 80, "flash_mla_large_f16"), 3, 4)
        self.assert_fails("flash_mla_large_f16, sm_80: spills registers: 0 bytes of stores, 4 of loads")

    def test_registers(self):
        which = ("cuda_legacy__few_rows_small", 61, "matmul_q4_0_tile1_by16")
        self.with_kernel(which, 1, 128)
        self.assertEqual(self.gate("--check")[0], 0)
        self.with_kernel(which, 1, 129)
        self.assert_fails("sm_61: 129 registers; recorded: 120")

    def test_blocks_that_registers_cost(self):
        # Within the tolerance of registers, but past the step at which a block less fits.
        self.with_kernel(("cuda_ampere__few_rows_small", 80, "matmul_q4_0_tile1_by16"), 1, 130)
        self.assert_fails("sm_80: 3 blocks a multiprocessor; recorded: 4")

    def test_blocks_that_shared_memory_costs(self):
        self.with_kernel(("cuda_ampere__few_rows_small", 80, "matmul_q4_0_tile1_by16"), 4, 44000)
        self.assert_fails("sm_80: 3 blocks a multiprocessor; recorded: 4")

    def test_bytes_in_flight(self):
        self.with_kernel(("cuda_ampere__few_rows_small", 80, "matmul_q4_0_tile1_by16"), 4, 16384)
        self.assert_fails("in_flight: matmul_q4_0_tile1_by16, A100 80 GB: 5.79; recorded: 6.51")

    def test_bytes_in_flight_of_attention(self):
        # One block instead of two: dynamic shared memory allows two, registers do not.
        self.with_kernel(("cuda_ampere__flash_mla", 80, "flash_mla_small_f16"), 0, 288)
        self.assert_fails("in_flight: flash_mla_small_f16, RTX 3090: 2.69; recorded: 5.38")

    def test_bytes_in_flight_that_are_required(self):
        self.with_kernel(("cuda_ampere__few_rows_small", 80, "matmul_q4_0_tile1_by16"), 4, 2048)
        self.gate("--record")
        self.assert_fails("matmul_q4_0_tile1_by16, A100 80 GB: bytes in flight are 0.72 of what the card needs; required: 1.00")

    def test_the_tensor_rate_of_attention(self):
        self.with_loop(("cuda_ampere__flash_mla_wide", "flash_mla_large_wide_f16"), "FFMA", 200)
        self.gate("--record")
        self.assert_fails("flash_mla_large_wide_f16, A100: 0.64 of the tensor rate; required: 0.80")

    def test_the_tensor_rate_of_products(self):
        which = ("cuda_ampere__products_small", "product_q4_0_128")
        self.with_loop(which, "FFMA", 270)
        self.assert_fails("tensor_products: q4_0 128, A100: 0.47; recorded: 0.51")
        self.with_loop(which, "FFMA", 400)
        self.gate("--record")
        self.assert_fails("product_q4_0_128, A100: 0.32 of the int8 rate; required: 0.4")

    def test_the_rate_of_mma_sync_is_what_counts_where_it_is_less(self):
        # Of the vendor's rate; 0.4 of mma.sync's is 0.248 and 0.124 of it.
        for arch, card, allowed, lost, least in ((90, "H200", "0.30", "0.20", "0.248"), (100, "B200", "0.15", "0.10", "0.124")):
            module = "cuda_ampere__products_small"
            cubin = self.module(module) / f"{module}.{arch}.0123456789abcdef.cubin"
            for ffma, share, status in ((393, allowed, 0), (600, lost, 1)):
                cubin.write_text(listing("product_q4_0_128", {"IMMA.16832.S8.S8": 32, "FFMA": ffma}))
                self.gate("--record")
                self.assertIn(f"{card} = {share.rstrip('0')}", self.bounds.read_text())
                self.assertEqual(self.gate("--check")[0], status)
            self.assert_fails(f"product_q4_0_128, {card}: {lost} of the int8 rate; required: {least}")
            cubin.unlink()

    def test_instructions_of_one_row(self):
        which = ("cuda_ampere__few_rows_small", "matmul_q4_0_tile1_by16")
        self.with_loop(which, "IADD3", 200)
        self.assert_fails("one_row_instructions: matmul_q4_0_tile1_by16, A100: ")
        self.with_loop(which, "IADD3", 2000)
        self.gate("--record")
        self.assert_fails("matmul_q4_0_tile1_by16, A100: instructions take", "required: at most 1.00")

    def test_instructions_of_one_row_that_are_known_to_miss(self):
        self.build({**KERNELS, ("cuda_ampere__few_rows_small", 80, "matmul_iq4_xs_tile1_by16"): [128, 126, 0, 0, 18432, 0]},
                   {**LOOPS, ("cuda_ampere__few_rows_small", "matmul_iq4_xs_tile1_by16"): {"IDP.4A.S8.S8": 64, "IADD3": 1000}})
        self.gate("--record")
        self.assert_fails("matmul_iq4_xs_tile1_by16, A100: instructions take 1.76 of the memory's time; required: at most 1.00")
        text, section = self.bounds.read_text(), "[required.attention_in_flight]"
        self.assertIn(section, text)
        known = "[required.one_row.known]\nmatmul_iq4_xs_tile1_by16 = { A100 = 1.8 }\n"
        self.bounds.write_text(text.replace(section, known + section))
        status, text = self.gate("--check")
        self.assertEqual(status, 0, text)

    def test_instructions_of_one_row_by_mma(self):
        def row(instructions, behind=()):
            return self.machine_code("matmul_iq4_xs_tile1_by16", {"IMMA.16832.S8.S8": 32, **instructions}, "--one-row", behind=behind).splitlines()[2]
        # A block's 16 rows in 8 trips of all its warps, for which an A100's memory takes 10401 clocks of a scheduler.
        self.assertEqual(row({"IADD3": 300}), "| matmul_iq4_xs_tile1_by16 | A100 | 2176 | alu | 0.46 |")
        self.assertEqual(row({"IMAD.HI.U32": 300}), "| matmul_iq4_xs_tile1_by16 | A100 | 2176 | fma | 0.92 |")
        # What all four warps do, and what one of them does behind the barrier.
        self.assertEqual(row({"IADD3": 300}, ["IADD3"] * 600 + ["BAR.SYNC"]), "| matmul_iq4_xs_tile1_by16 | A100 | 2176 | alu | 0.92 |")
        self.assertEqual(row({"IADD3": 300}, ["BAR.SYNC", "EXIT"] + ["IADD3"] * 600), "| matmul_iq4_xs_tile1_by16 | A100 | 2176 | alu | 0.58 |")

    def test_a_kernel_that_is_gone_and_one_that_is_new(self):
        kernels = dict(KERNELS)
        kernels["cuda_legacy__few_rows_small", 61, "matmul_q4_0"] = kernels.pop(("cuda_legacy__few_rows_small", 61, "matmul_q4_0_tile1_by16"))
        self.build(kernels, LOOPS)
        self.assert_fails("cuda_legacy__few_rows_small.matmul_q4_0, sm_61: has no bound",
                          "cuda_legacy__few_rows_small.matmul_q4_0_tile1_by16, sm_61: is recorded, and not in the build")

    def test_other_architectures_keep_their_bounds(self):
        legacy = {key: numbers for key, numbers in KERNELS.items() if key[1] == 61}
        self.build(legacy, {})
        self.assertEqual(self.gate("--check")[0], 0)
        self.gate("--record")
        self.with_kernel(("cuda_ampere__flash_mla", 80, "flash_mla_large_f16"), 0, 512)
        self.assert_fails("flash_mla_large_f16, sm_80: 0 blocks")

    def test_an_architecture_without_bounds_is_named(self):
        kernels = dict(KERNELS)
        kernels["cuda_legacy__few_rows_small", 70, "matmul_q4_0_tile1_by16"] = [128, 255, 0, 0, 18432, 0]
        self.build(kernels, LOOPS)
        status, text = self.gate("--check")
        self.assertEqual(status, 0, text)
        self.assertIn("no bounds are recorded: cuda_legacy for sm_70, in_flight of T4, in_flight of V100", text)

    def machine_code(self, kernel, instructions, *words, arch="80", behind=()):
        """What cuda_sass says of the build of a plugin of somebody else's."""
        folder = self.folder / "theirs/cuda/theirs__module"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"theirs__module.{arch}.0123456789abcdef.cubin").write_text(listing(kernel, instructions, behind))
        done = subprocess.run([sys.executable, SOURCE / "testing/cuda_code/cuda_sass", self.folder / "theirs", "--nvdisasm", self.nvdisasm, *words],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_bounds_a_kernel_without_mma(self):
        text = self.machine_code("scale", {"LDG.E.128": 2, "IADD3": 10})
        self.assertIn("scale (sm_80), loop at 0x0: 13 instructions, ldg 2, alu 10, other 1\n", text)
        # 1024 bytes of a warp, of which the card moves 3.35 a clock and scheduler.
        self.assertIn("A100: clocks issue 13, shared 0, alu 20, special 0, fma 0, memory 306; bound by memory\n", text)
        text = self.machine_code("scale", {"LDG.E.128": 2, "IADD3": 200})
        self.assertIn("alu 400, special 0, fma 0, memory 306; bound by alu\n", text)

    def test_what_bounds_products_by_dp4a(self):
        text = self.machine_code("product_x_64", {"IDP.4A.S8.S8": 64, "IADD3": 36}, "--products", arch="75@61")
        # On 6.1 all share 32 lanes, of which integers have half; on 7.0 and 7.5 dp4a has 16 of its own.
        self.assertEqual(text.splitlines()[-1], "| x | 0.47 | 0.47 | 1.00 | 1.00 |")
        self.assertEqual(text.splitlines()[0], "| format | GTX 1080 Ti | P40 | V100 | T4 |")

    @unittest.skipUnless(COMPILER, "built without TSR_CUDA: there is no compiler")
    def test_a_kernel_that_is_compiled(self):
        text = (SOURCE / "kernels/cuda/elementwise/rms_norm.cu").read_text()
        array = "SIMT_SHARED(float, sums, kWarps)"
        self.assertIn(array, text)
        self.build({}, {})
        for source, how, expected in ((text, "--record", 0), (text, "--check", 0), (text.replace(array, "SIMT_SHARED(float, sums, 11 * 1024)"), "--check", 1)):
            self.compile(source)
            status, out = self.gate(how)
            self.assertEqual(status, expected, out)
        self.assertRegex(out, r"cuda_legacy__rms_norm.rms_norm, sm_61: 2 blocks a multiprocessor; recorded: \d+")

    def compile(self, source):
        name = "cuda_legacy__rms_norm"
        (self.folder / "rms_norm.cu").write_text(source)
        includes = ["kernels/cuda/elementwise", "sdk/cuda/include", "sdk/formats/include", "sdk/include"]
        subprocess.run([COMPILER, "--name", name, "--toolkit", TOOLKIT, "--cache", self.folder / "cache", "--output", self.module(name) / f"{name}.cpp",
                        "--dependencies", self.folder / "rule", "--statistics", self.module(name) / f"{name}.statistics", "--target", "61", "--source",
                        self.folder / "rms_norm.cu", *(word for i in includes for word in ("--include", SOURCE / i))], check=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
