#!/usr/bin/env python3
"""Measures Tessera beside ik_llama.cpp on whole models in many weight formats, and prints one table in tokens/s.

    bench/peers/formats.py --make-gguf make_gguf.py --peer IK_LLAMA/build/bin --library IK_LLAMA/build/ggml/src/libggml.so
        [--types q4_0,q4_K,...] [--threads 2] [--out formats]

For each type it writes a model of random weights in DeepSeek-V3's shape, cut to two layers and sixteen experts, whose rows the peer's own
library has encoded, and has compare.py run both sides on it: a prompt of 512 and 128 generated tokens. --make-gguf is the generator of
random models; it brings shapes, vocabulary and metadata. --out NAME writes NAME.md. Needs numpy; about a minute a type.
"""
import argparse
import ctypes
import importlib.util
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Name and number in files of every type that has kernels, from the list of types.
ROW = re.compile(r'M\(X, \w+, \w+, (\d+), \d+, (\w+),')
TYPES = {name: int(number) for number, name in ROW.findall((ROOT / "sdk/include/tessera/types.h").read_text())
         if name != "f32" and int(number) < 65536}
CUT = dict(layers=2, dense=1, experts=16, vocab=16384)
ROWS = 64  # encoded of each length; a weight repeats them
ALIGN = 32


class Encoder:
    """Rows of random weights as the peer's library encodes them."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.ggml_row_size.restype = ctypes.c_size_t
        self.lib.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]
        self.lib.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                                 ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        self.rng, self.pools = np.random.default_rng(1), {}

    def row_bytes(self, kind, elements):
        return 4 * elements if kind == "f32" else self.lib.ggml_row_size(TYPES[kind], elements)

    def rows(self, kind, elements, deviation):
        """ROWS rows, one after another."""
        key = kind, elements, deviation
        if key not in self.pools:
            values = (self.rng.standard_normal((ROWS, elements)) * deviation).astype(np.float32)
            out = values
            if kind != "f32":
                importance = np.ones(elements, np.float32)
                out = np.zeros(ROWS * self.row_bytes(kind, elements), np.uint8)
                self.lib.ggml_quantize_chunk(TYPES[kind], values.ctypes.data, out.ctypes.data, 0, ROWS, elements, importance.ctypes.data, None)
            self.pools[key] = out.tobytes()
        return self.pools[key]


def write_model(path, kind, generator, encoder):
    shape = {**generator.PRESETS["v3"], **CUT}
    blocks = 1 if kind in ("f16", "bf16") else 256
    generator.TYPES[kind], generator.FTYPE[kind] = (TYPES[kind], blocks, 0), generator.FTYPE.get(kind, 0)
    items = [(name, dims, "f32" if want == "f32" else kind) for name, dims, want in generator.tensors(shape, kind, "joint")]
    metadata = generator.metadata(shape, kind, "joint", f"random v3 cut {kind}")
    sizes = [encoder.row_bytes(want, dims[0]) * int(np.prod(dims[1:], dtype=np.int64)) for _, dims, want in items]
    head, offset = bytearray(struct.pack("<IIQQ", 0x46554747, 3, len(items), metadata.count)) + metadata.kv, 0
    for (name, dims, want), size in zip(items, sizes):
        head += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
        head += struct.pack("<IQ", 0 if want == "f32" else TYPES[want], offset)
        offset += -(-size // ALIGN) * ALIGN
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGN))
        for (name, dims, want), size in zip(items, sizes):
            if len(dims) == 1:
                mean = 1 if name.endswith("_norm.weight") else 0
                file.write((mean + 0.05 * encoder.rng.standard_normal(dims[0])).astype(np.float32).tobytes())
            else:
                pool = encoder.rows(want, dims[0], 1 if name == "token_embd.weight" else 1 / np.sqrt(dims[0]))
                for done in range(0, size, len(pool)):
                    file.write(pool[:size - done])
            file.write(b"\0" * (-size % ALIGN))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make-gguf", type=pathlib.Path, required=True)
    parser.add_argument("--peer", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--types", type=lambda text: text.split(","), default=list(TYPES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out")
    args = parser.parse_args()
    if unknown := set(args.types) - set(TYPES):
        parser.error(f"--types: expected some of {', '.join(TYPES)}, found {', '.join(sorted(unknown))}")
    sys.path.insert(0, str(pathlib.Path(args.make_gguf).resolve().parent))  # beside it lie the presets
    spec = importlib.util.spec_from_file_location("make_gguf", args.make_gguf)
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    lines = ["| format | prompt 512 | peer | ratio | generation 128 | peer | ratio |", "| --- | --- | --- | --- | --- | --- | --- |"]
    compare = pathlib.Path(__file__).with_name("compare.py")
    with tempfile.TemporaryDirectory() as folder:
        model, results = pathlib.Path(folder, "model.gguf"), pathlib.Path(folder, "results")
        for kind in args.types:
            write_model(model, kind, generator, Encoder(args.library))
            run = subprocess.run([sys.executable, compare, model, "--peer", args.peer, "--threads", str(args.threads), "--depths", "0", "--rounds", "1",
                                  "--measure", "speed", "--out", results], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if run.returncode:
                lines.append(f"| {kind} | failed | | | | | |")
                print(run.stderr[-2000:], file=sys.stderr, flush=True)
                continue
            speeds = {(r["row"].split()[0], r["side"]): r["value"] for r in json.loads(pathlib.Path(f"{results}.json").read_text())["runs"]}
            cells = [kind]
            for work in ("prompt", "generation"):
                ours, peer = speeds[work, "tessera"], speeds[work, "ik_llama.cpp"]
                cells += [f"{ours:.1f}", f"{peer:.1f}", f"{ours / peer:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))
    if args.out:
        pathlib.Path(args.out + ".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
