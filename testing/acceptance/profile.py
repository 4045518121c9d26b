"""Nsight Compute (ncu) on six kernels, where it is installed: what of the card each keeps busy."""

import csv
import io

from .kernels import carried_libraries, find_tool
from .speeds import measure_card
from .steps import LEFT_OUT, MEASURED, NO_TIME, Outcome, Part, Step, failure

# Name of the kernel, and what measure_card does to start it: topic, part of a line's description.
KERNELS = {
    "cuda_ampere": (("flash_mla_small.*_f16", "attention", "576/512, 16 heads, 61439 cached, f16, 1 row"),
                    ("flash_mla_large.*_f16", "attention", "576/512, 16 heads, 16384 cached, f16, 512 rows"),
                    ("combine", "attention", "576/512, 16 heads, 61439 cached, f16, 1 row"),
                    ("matmul_q4_0_tile1.*", "products", "2048 to .*, q4_0, 1 row"),
                    ("product_q4_0_.*", "products", "7168 to 4096, q4_0, 512 rows"),
                    ("gate_up_q4_0.*", "experts", "moe_ffn, q4_0, 1 row")),
    "cuda_legacy": (("flash_mla_small_halves", "attention", "576/512, 16 heads, 61439 cached, tiled, f16, 1 row"),
                    ("flash_mla_large_halves", "attention", "576/512, 16 heads, 16384 cached, tiled, f16, 512 rows"),
                    ("combine", "attention", "576/512, 16 heads, 61439 cached, tiled, f16, 1 row"),
                    ("matmul_q4_0_tile1.*", "products", "2048 to .*, q4_0, 1 row"),
                    ("product_q4_0_.*", "products", "7168 to 4096, q4_0, 512 rows"),
                    ("gate_up_q4_0.*", "experts", "moe_ffn, q4_0, 1 row")),
}
SECTIONS = ("SpeedOfLight", "Occupancy", "LaunchStats", "SchedulerStats", "WarpStateStats")
METRICS = {"Duration": "time", "DRAM Throughput": "memory", "L2 Cache Throughput": "L2", "Compute (SM) Throughput": "multiprocessors",
           "Registers Per Thread": "registers", "Grid Size": "blocks", "Achieved Occupancy": "occupancy", "No Eligible": "no warp ready",
           "Warp Cycles Per Issued Instruction": "clocks an instruction"}


def metrics(text):
    """(kernel, {metric: value with its unit}) of the first kernel in what ncu --csv printed; (None, {}) if there is none."""
    begin = text.find('"ID"')
    kernel, found = None, {}
    for row in csv.DictReader(io.StringIO(text[begin:])) if begin >= 0 else ():
        kernel = kernel or row.get("Kernel Name")
        if row.get("Metric Name") in METRICS and row.get("Kernel Name") == kernel:
            found.setdefault(row["Metric Name"], f"{row.get('Metric Value', '')} {row.get('Metric Unit', '')}".strip())
    return kernel, found


def profiles(machine):
    def profile(call, name, pattern, topic, what):
        program = find_tool(machine, "ncu", "cuda*/bin/ncu", "../../opt/nvidia/nsight-compute/*/ncu")
        if not program:
            return Outcome(LEFT_OUT, "ncu is neither installed nor carried")
        words = [program, "--clock-control", "none", "--csv", "--kernel-name-base", "function", "--kernel-name", f"regex:^{pattern}$", "--launch-count", "1"]
        for section in SECTIONS:
            words += ["--section", section]
        done, late = call.command([*words, *carried_libraries(machine, measure_card(machine, name, "--topics", topic, "--what", what))], 60,
                                  machine.own_environment)
        if late:
            return Outcome(LEFT_OUT, NO_TIME)
        kernel, found = metrics(done.out)
        if not kernel:
            # A machine that does not let programs read its counters is no fault of what is measured.
            return Outcome(LEFT_OUT, "it measured nothing: " + " ".join(failure(done).why.split())[-300:])
        return Outcome(MEASURED, rows=[[kernel, what, *(found.get(metric, "") for metric in METRICS)]])

    def steps():
        name = machine.owners()[0]
        return [] if machine.emulated else [
            Step(f"{pattern}: {what}", lambda call, words=(pattern, topic, what): profile(call, name, *words)) for pattern, topic, what in KERNELS[name]]

    return Part("profile", "Nsight Compute", steps, most=60, head=("kernel", "in", *METRICS.values()))
