#!/usr/bin/env python3
"""Checks who includes whom, and what may stand where: the rules of docs/architecture.md that a compiler does not see.

    check_layering.py [ROOT]

Prints one line a violation, FILE:LINE: what is wrong, and exits with 1 if there are any.
"""

import pathlib
import re
import sys

SOURCES = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
AREAS = ["sdk", "core", "kernels", "plugins", "apps", "testing", "tests", "bench", "models", "tools"]

# The two parts of the core. The engine knows nothing of language models.
ENGINE = {"base", "graph", "hardware", "registry", "plan", "run", "cache"}
LANGUAGE = {"gguf", "text", "model", "session", "setup"}

# A plan is pure data that is computed: what plans starts no thread and opens nothing.
PLANNING_HEADER = re.compile(r"^(thread|atomic|mutex|shared_mutex|condition_variable|future|barrier|latch|semaphore|stop_token|"
                             r"fstream|sys/.*|unistd\.h|fcntl\.h|sched\.h|pthread\.h|oneapi/.*|tbb/.*)$")

# Bodies of kernels that several plugins are made of, and which.
SHARED_BY_PLUGINS = {
    ("kernels", "x86"): {"cpu_avx2", "cpu_avx512"},
    ("kernels", "cuda"): {"cuda_legacy", "cuda_ampere"},
    ("kernels", "plain"): {"reference"},
}

MAX_LINES = 800
MAX_LINES_GPU = 1200

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
INTRINSICS_HEADER = re.compile(r"^(\w*intrin|arm_\w+)\.h$")
CUDA_HEADER = re.compile(r"^(cuda|cublas|cudnn|nccl|nvml|nvrtc|cub/|cutlass/|cooperative_groups)")
INTRINSIC = re.compile(r"\b(_mm\d*_\w+|__m(128|256|512)\w*)\b")
ISA_MACRO = re.compile(r"\b__(AVX|SSE|SSSE|FMA|F16C|BMI|AMX)\w*__\b")
MLA = re.compile(r"(?<![a-z])mla(?![a-z])", re.IGNORECASE)
# Peers are named after a model; speaking of them is no knowledge of models.
MODEL_NAME = re.compile(r"deepseek|qwen|kimi|mixtral|gemma(?!\.cpp)|llama(?!\.cpp)", re.IGNORECASE)
ENDS_PROCESS = re.compile(r"(?<![\w.>])(std::)?(abort|exit|_exit|quick_exit|terminate|assert)\s*\(")
PRINTS = re.compile(r"(?<![\w.>])(std::)?(f?printf|f?puts|putchar)\s*\(|std::(cout|cerr|clog)\b")

# What a command line is made of, in a text of the core: flags, the program's commands, the project's scripts.
LITERAL = re.compile(r'"((?:[^"\\\\]|\\\\.)*)"')
COMMAND_LINE = re.compile(r"(?:^|[\s('`=,;:])(--?[a-z][\w-]*|tessera [a-z]+ |tools/\w+|ulimit)")
NO_FLAGS = {"-infinity", "-of-"}
# One row holds all of a sampling parameter, with the spelling of its flags.
HOLDS_FLAGS = ("core", "session", "sampling_parameters.hpp")

C_HEADERS = {"stdint.h", "stddef.h"}
# All that formats include from outside, in the one file that shields NVRTC from it.
WRITTEN_BY_THE_BUILD = {"tessera/formats/every_type.hpp"}  # from headers in sdk/formats
FREESTANDING = ("sdk", "formats", "include", "tessera", "formats", "freestanding.hpp")
FREESTANDING_HEADERS = C_HEADERS | {"math.h", "string.h"}


class Checker:
    def __init__(self, root: pathlib.Path):
        self.root = root
        self.violations = []
        self.core_edges = {}  # (from folder, to folder) -> place of one include

    def report(self, path, line, text):
        self.violations.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def run(self):
        for area in AREAS:
            for path in sorted((self.root / area).rglob("*")):
                if path.is_file() and path.suffix in SOURCES | {".py"}:
                    self.check_file(path)
        self.check_cycles()
        return self.violations

    def check_file(self, path):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        most = MAX_LINES_GPU if path.suffix in {".cu", ".cuh"} else MAX_LINES
        if len(lines) > most:
            self.report(path, len(lines), f"{len(lines)} lines; files end at {most}")
        if path.suffix not in SOURCES:
            return
        parts = path.relative_to(self.root).parts
        for number, line in enumerate(lines, 1):
            include = INCLUDE.match(line)
            if include:
                self.check_include(path, number, parts, include.group(1) == '"', include.group(2))
            else:
                self.check_line(path, number, parts, line, line.split("//")[0])

    # What an include leads to, as a path below the root; None for a header from outside.
    def resolve(self, path, name):
        candidates = [path.parent / name, self.root / name]
        parts = path.relative_to(self.root).parts
        if parts[0] in {"plugins", "tests", "apps", "bench"} and len(parts) > 2:
            candidates.append(self.root / parts[0] / parts[1] / name)
        for kit in ("include", "c/include", "cpp/include", "formats/include", "cpu/include", "cuda/include", "cuda/host/include"):
            candidates.append(self.root / "sdk" / kit / name)
        for candidate in candidates:
            if candidate.is_file():
                try:
                    return candidate.resolve().relative_to(self.root).parts
                except ValueError:
                    return None
        return None

    def check_include(self, path, line, parts, quoted, name):
        area = parts[0]
        target = self.resolve(path, name)
        if target is None:
            # The name tells where it would be, also where the file is not there (yet).
            first = name.split("/")[0]
            if first in {"core", "kernels", "plugins", "apps", "testing"}:
                target = tuple(name.split("/"))
            elif quoted and area in {"sdk", "core", "kernels"}:
                self.report(path, line, f'"{name}" is not in the tree')
                return
            else:
                self.check_outside_header(path, line, parts, name)
                return

        where = "/".join(target)
        if area == "sdk" and target[0] != "sdk":
            self.report(path, line, f"the SDK is the ground floor: it must not include {where}")
        if parts[:2] == ("sdk", "include") and target[:2] != ("sdk", "include"):
            self.report(path, line, f"the C ABI must not include {where}")
        if parts[:2] == ("sdk", "formats") and target[:2] not in {("sdk", "formats"), ("sdk", "include")}:
            self.report(path, line, f"formats include the C ABI and themselves only, not {where}")
        if area == "core":
            if target[0] not in {"core", "sdk"}:
                self.report(path, line, f"the core includes itself and the SDK only, not {where}")
            # What checks files decodes their rows.
            elif target[0] == "sdk" and target[1] not in {"include", "cpp"} and (parts[1], target[1]) != ("setup", "formats"):
                self.report(path, line, f"the core knows no kernels: it must not include {where}")
            elif target[0] == "core" and len(parts) > 2 and len(target) > 2:
                if parts[1] in ENGINE and target[1] in LANGUAGE:
                    self.report(path, line, f"the engine ({parts[1]}) must not include the language part: {where}")
                if parts[1] == "plan" and target[1] == "run":
                    self.report(path, line, f"a plan knows nothing of how it is run: {where}")
                if parts[1] != target[1]:
                    self.core_edges.setdefault((parts[1], target[1]), (path, line))
        if area == "plugins":
            own = target[:2] == parts[:2]
            shared = any(target[:len(folder)] == folder and parts[1] in plugins
                         for folder, plugins in SHARED_BY_PLUGINS.items())
            if not own and not shared and target[0] != "sdk":
                self.report(path, line, f"a plugin includes the SDK and itself only, not {where}")
        if area == "kernels" and target[0] != "sdk" and target[:2] != parts[:2]:
            self.report(path, line, f"kernels include the SDK and their own kind only, not {where}")
        if parts[:2] == ("apps", "server") and target[:2] == ("apps", "tessera"):
            self.report(path, line, f"the server is a library that the program uses: it must not include {where}")
        if area == "apps" and target[0] in {"kernels", "plugins"}:
            self.report(path, line, f"applications reach plugins through the registry only, not by {where}")

    def check_outside_header(self, path, line, parts, name):
        if parts[0] == "core":
            if INTRINSICS_HEADER.match(name):
                self.report(path, line, f"no intrinsics in the core: <{name}>")
            if CUDA_HEADER.match(name):
                self.report(path, line, f"no CUDA in the core: <{name}>")
            if parts[1] == "plan" and PLANNING_HEADER.match(name):
                self.report(path, line, f"a plan is computed without threads, files and memory of its own: <{name}>")
        if parts[:2] == ("sdk", "include") and name not in C_HEADERS and not name.startswith("tessera/"):
            self.report(path, line, f"the C ABI includes {', '.join(sorted(C_HEADERS))} only, not <{name}>")
        if name in WRITTEN_BY_THE_BUILD:
            return
        if parts[:2] == ("sdk", "formats") and (parts != FREESTANDING or name not in FREESTANDING_HEADERS):
            self.report(path, line, f"formats are compiled by NVRTC too, which has no <{name}>")
        if parts[:2] == ("sdk", "cpp") and ("/" in name or "." in name) and not name.startswith("tessera/"):
            self.report(path, line, f"the SDK's C++ comfort stands on the standard library only, not on <{name}>")

    def check_line(self, path, number, parts, line, code):
        area = parts[0]
        if area == "core":
            if INTRINSIC.search(code):
                self.report(path, number, "no intrinsics in the core")
            if parts != HOLDS_FLAGS:
                for literal in LITERAL.findall(code):
                    for found in COMMAND_LINE.findall(literal):
                        if found not in NO_FLAGS:
                            self.report(path, number, f'the core speaks no command line ("{found}"): a code of notice.hpp')
            if len(parts) > 2 and parts[1] not in {"model", "text"}:
                # Above the engine, comments may speak of it.
                if MLA.search(line if parts[1] in ENGINE else code):
                    self.report(path, number, '"mla" is known to its plugin and to core/model only')
                if found := MODEL_NAME.search(line):
                    self.report(path, number, f'names of models ("{found.group()}") stand in core/model and core/text only')
        if area in {"core", "sdk", "kernels", "plugins", "testing"} and ISA_MACRO.search(code):
            self.report(path, number, "no instruction-set macros: a plugin's flags decide, in a namespace of its own")
        # A template is for copying; the compiler of kernels and what lists a plugin's ops are programs.
        template = parts[:2] in (("sdk", "template"), ("sdk", "manifest")) or parts == ("sdk", "cuda", "compiler", "main.cpp")
        if area in {"core", "kernels", "plugins"} or (area == "sdk" and not template):
            if found := ENDS_PROCESS.search(code):
                self.report(path, number, f"nothing but an application ends the process: {found.group(2)}")
            if PRINTS.search(code):
                self.report(path, number, "nothing but an application prints: return a text, or log")

    def check_cycles(self):
        """Folders of the core lean on each other in one direction."""
        graph = {}
        for source, target in self.core_edges:
            graph.setdefault(source, set()).add(target)
        done = set()

        def visit(folder, trail):
            if folder in trail:
                cycle = trail[trail.index(folder):] + [folder]
                path, line = self.core_edges[(cycle[-2], cycle[-1])]
                self.report(path, line, "folders of the core lean on each other in a circle: " + " -> ".join(cycle))
                return
            if folder in done:
                return
            for target in sorted(graph.get(folder, ())):
                visit(target, trail + [folder])
            done.add(folder)

        for folder in sorted(graph):
            visit(folder, [])


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    violations = Checker(root).run()
    for violation in violations:
        print(violation)
    if violations:
        print(f"{len(violations)} violations of the layering", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
