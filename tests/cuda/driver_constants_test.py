#!/usr/bin/env python3
"""Holds the numbers of the CUDA Driver API that are written down in the kit and in the emulated driver against cuda.h.

    driver_constants_test.py SOURCE CUDA_H
"""

import pathlib
import re
import sys

# file, what the number stands behind, name in cuda.h
CONSTANTS = [
    ("sdk/cuda/host/device.cpp", "kComputeMajor = ", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"),
    ("sdk/cuda/host/device.cpp", "kComputeMinor = ", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"),
    ("sdk/cuda/host/launch.cpp", "kMaximumDynamicShared = ", "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"),
    ("sdk/cuda/host/memory.cpp", "kPortable = ", "CU_MEMHOSTALLOC_PORTABLE"),
    ("sdk/cuda/host/memory.cpp", "kPortable = ", "CU_MEMHOSTREGISTER_PORTABLE"),
    ("sdk/cuda/host/memory.cpp", "kMemoryType = ", "CU_POINTER_ATTRIBUTE_MEMORY_TYPE"),
    ("sdk/cuda/host/memory.cpp", "kHostMemory = ", "CU_MEMORYTYPE_HOST"),
    ("sdk/cuda/host/queues.cpp", "kNonBlocking = ", "CU_STREAM_NON_BLOCKING"),
    ("sdk/cuda/host/queues.cpp", "kDisableTiming = ", "CU_EVENT_DISABLE_TIMING"),
    ("sdk/cuda/host/recordings.cpp", "kThreadLocal = ", "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL"),
    ("sdk/cuda/host/include/tessera/cuda/driver.hpp", "kSuccess = ", "CUDA_SUCCESS"),
    ("sdk/cuda/host/include/tessera/cuda/driver.hpp", "kInvalidValue = ", "CUDA_ERROR_INVALID_VALUE"),
    ("sdk/cuda/host/include/tessera/cuda/driver.hpp", "kOutOfMemory = ", "CUDA_ERROR_OUT_OF_MEMORY"),
    ("sdk/cuda/host/include/tessera/cuda/driver.hpp", "kNotReady = ", "CUDA_ERROR_NOT_READY"),
    ("sdk/cuda/host/include/tessera/cuda/driver.hpp", "kPeerAccessAlreadyEnabled = ", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
    ("testing/emulated_cuda/driver/capture.cpp", "kGlobal = ", "CU_STREAM_CAPTURE_MODE_GLOBAL"),
    ("testing/emulated_cuda/driver/capture.cpp", "kThreadLocal = ", "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL"),
    ("testing/emulated_cuda/driver/capture.cpp", "kRelaxed = ", "CU_STREAM_CAPTURE_MODE_RELAXED"),
    ("testing/emulated_cuda/driver/capture.cpp", "kTopology = ", "CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED"),
    ("testing/emulated_cuda/driver/capture.cpp", "kNodeType = ", "CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED"),
    ("testing/emulated_cuda/driver/capture.cpp", "kFunction = ", "CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED"),
    ("testing/emulated_cuda/driver/capture.cpp", "kParameters = ", "CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED"),
    ("testing/emulated_cuda/driver/launch.cpp", "kMaximumDynamicShared = ", "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"),
    ("testing/emulated_cuda/driver/launch.cpp", "kCarveout = ", "CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT"),
    ("testing/emulated_cuda/driver/memory_calls.cpp", "kMemoryType = ", "CU_POINTER_ATTRIBUTE_MEMORY_TYPE"),
    ("testing/emulated_cuda/driver/memory_calls.cpp", "kOrdinal = ", "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL"),
    ("testing/emulated_cuda/driver/memory_calls.cpp", "kTypeHost = ", "CU_MEMORYTYPE_HOST"),
    ("testing/emulated_cuda/driver/memory_calls.cpp", "kTypeDevice = ", "CU_MEMORYTYPE_DEVICE"),
    ("testing/emulated_cuda/driver/stream.cpp", "kBlocking = ", "CU_EVENT_BLOCKING_SYNC"),
    ("testing/emulated_cuda/driver/stream.cpp", "kWithoutTiming = ", "CU_EVENT_DISABLE_TIMING"),
]
# What the emulated driver answers for numbers of CUdevice_attribute, and of CUfunction_attribute: a part of the answer, name in cuda.h.
ANSWERS = {
    "testing/emulated_cuda/driver/contexts.cpp": ("CU_DEVICE_ATTRIBUTE_", [
        ("48 << 10", "MAX_SHARED_MEMORY_PER_BLOCK"), ("64 << 10", "TOTAL_CONSTANT_MEMORY"), ("32;", "WARP_SIZE"),
        ("limits.registers_per_block", "MAX_REGISTERS_PER_BLOCK"), ("c.clock_khz", "CLOCK_RATE"), ("c.processors", "MULTIPROCESSOR_COUNT"),
        ("// integrated", "INTEGRATED"), ("host memory can be mapped", "CAN_MAP_HOST_MEMORY"), ("compute mode", "COMPUTE_MODE"),
        ("concurrent kernels", "CONCURRENT_KERNELS"), ("// ECC", "ECC_ENABLED"), ("PCI bus", "PCI_BUS_ID"), ("PCI device", "PCI_DEVICE_ID"),
        ("memory_clock_khz", "MEMORY_CLOCK_RATE"), ("bus_bits", "GLOBAL_MEMORY_BUS_WIDTH"), ("l2_bytes", "L2_CACHE_SIZE"),
        ("threads_per_processor", "MAX_THREADS_PER_MULTIPROCESSOR"), ("copy engines", "ASYNC_ENGINE_COUNT"),
        ("unified addresses", "UNIFIED_ADDRESSING"), ("PCI domain", "PCI_DOMAIN_ID"), ("c.capability / 100", "COMPUTE_CAPABILITY_MAJOR"),
        ("c.capability / 10 % 10", "COMPUTE_CAPABILITY_MINOR"), ("shared_per_processor", "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        ("registers_per_processor", "MAX_REGISTERS_PER_MULTIPROCESSOR"), ("shared_per_block", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        ("blocks_per_processor", "MAX_BLOCKS_PER_MULTIPROCESSOR"), ("shared_reserved", "RESERVED_SHARED_MEMORY_PER_BLOCK")]),
    "testing/emulated_cuda/driver/launch.cpp": ("CU_FUNC_ATTRIBUTE_", [
        ("maximum_threads(kernel", "MAX_THREADS_PER_BLOCK"), ("kernel.static_shared", "SHARED_SIZE_BYTES"), ("constant memory", "CONST_SIZE_BYTES"),
        ("kernel.local", "LOCAL_SIZE_BYTES"), ("kernel.registers", "NUM_REGS"), ("virtual_arch / 10", "PTX_VERSION"),
        ("image.capability / 10", "BINARY_VERSION"), ("maximum_dynamic_shared)", "MAX_DYNAMIC_SHARED_SIZE_BYTES")]),
}


def numbers_of(header):
    """Enumerators and macros; an enumerator without a number follows the one before it."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(encoding="latin1"), flags=re.S)
    found = {name: int(value, 0) for name, value in re.findall(r"^#define (CU\w+)\s+(0x[0-9A-Fa-f]+|\d+)\s*$", text, re.M)}
    for body in re.findall(r"enum\s+\w*\s*\{(.*?)\}", text, re.S):
        last = -1
        for item in body.split(","):
            match = re.match(r"\s*(CU\w+)\s*(?:=\s*(.+?))?\s*$", item, re.S)
            if not match:
                continue
            name, value = match.groups()
            if value is None:
                last += 1
            elif re.fullmatch(r"0x[0-9A-Fa-f]+|\d+", value):
                last = int(value, 0)
            elif value in found:
                last = found[value]
            else:
                continue
            found[name] = last
    return found


def main():
    source, header = map(pathlib.Path, sys.argv[1:3])
    known, held, wrong = numbers_of(header), 0, []

    def hold(where, name, number):
        nonlocal held
        held += 1
        if known.get(name) != number:
            wrong.append(f"{where}: {number} for {name}, which cuda.h gives {known.get(name)}")

    for name, number in re.findall(r"RESULT\((\w+), (\d+),", (source / "testing/emulated_cuda/driver/result.hpp").read_text()):
        hold("testing/emulated_cuda/driver/result.hpp", f"CUDA_{name}", int(number))
    for file, behind, name in CONSTANTS:
        found = re.search(re.escape(behind) + r"(\d+)", (source / file).read_text())
        hold(file, name, int(found[1]) if found else f"no \"{behind}\"")
    for file, (prefix, answers) in ANSWERS.items():
        cases = re.findall(r"case (\d+):\s*\n((?:(?!case ).*\n)*?.*(?:return|\*value).*)", (source / file).read_text())
        for part, name in answers:
            found = [int(number) for number, answer in cases if part in answer]
            hold(file, prefix + name, found[0] if len(found) == 1 else f"the answers {found}")
    print("\n".join(wrong + [f"{held} numbers held against {header}, {len(wrong)} wrong"]))
    return 1 if wrong or held < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
