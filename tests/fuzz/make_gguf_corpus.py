#!/usr/bin/env python3
"""Writes the seeds of the GGUF fuzzer: small files that reach each part of the reader, right ones and near misses.

    tests/fuzz/make_gguf_corpus.py tests/fuzz/gguf_corpus
"""
import pathlib
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q", F64: "<d"}


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind, value):
    return text(value) if kind == STR else struct.pack(PACK[kind], value)


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array(key, kind, values, count=None):
    head = struct.pack("<IIQ", ARR, kind, len(values) if count is None else count)
    return text(key) + head + b"".join(scalar(kind, v) for v in values)


def tensor(name, dims, kind, offset):
    return text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)


def file(pairs=(), tensors=(), data=0, version=3, align=32):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % align) + bytes(data) if tensors else head


def split(number, count, tensors, names):
    pairs = [pair("split.no", U16, number), pair("split.count", U16, count), pair("split.tensors.count", I32, tensors)]
    return file(pairs, [tensor(n, [8], 0, 32 * i) for i, n in enumerate(names)], 32 * len(names))


SEEDS = {
    "empty": file(),
    "v2": file([pair("general.architecture", STR, "deepseek2")], version=2),
    "v1": file(version=1),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "scalars": file([pair(f"k{kind}", kind, 1) for kind in PACK] + [pair("text", STR, "gr\u00fc\u00df")]),
    "arrays": file([array(f"a{kind}", kind, [1, 0]) for kind in PACK]),
    "strings": file([array("tokenizer.ggml.tokens", STR, ["a", "", b"\xff\x00", "bc"])]),
    "layers": file([pair("general.architecture", STR, "m"), pair("m.block_count", U32, 3), array("m.attention.head_count_kv", U32, [1, 2, 2]),
                    array("m.attention.sliding_window_pattern", BOOL, [0, 1, 1]), pair("m.attention.sliding_window", U32, 128),
                    array("m.feed_forward_length", I32, [64, -1, 0]), array("m.rope.freq_base", F32, [1e4, float("nan"), 0])],
                   [tensor("blk.0.attn_sinks.weight", [4], 0, 0), tensor("blk.1.ffn_gate_exps.weight", [32, 2, 2], 39, 32)], 128),
    "nested": file([array("a", ARR, [], 1)]),
    "bad-bool": file([pair("b", BOOL, 2)]),
    "huge-array": file([array("a", U64, [1], 1 << 61)]),
    "twice": file([pair("a", U8, 1), pair("a", U8, 1)]),
    "tensors": file([], [tensor("a", [64, 2], 2, 0), tensor("b", [256], 12, 96), tensor("c", [3, 1, 2, 1], 0, 256)], 288),
    "types": file([], [tensor(f"t{kind}", [256], kind, 2048 * i) for i, kind in enumerate((0, 1, 8, 14, 16, 20, 23, 24, 28, 30, 39))]),
    "alignment": file([pair("general.alignment", U32, 64)], [tensor("a", [1], 0, 0), tensor("b", [1], 0, 64)], 128, align=64),
    "odd-alignment": file([pair("general.alignment", U32, 48)]),
    "overlap": file([], [tensor("a", [16], 0, 0), tensor("b", [8], 0, 32)], 64),
    "overflow": file([], [tensor("a", [1 << 32, 1 << 31], 0, 0)], 32),
    "zero-dimension": file([], [tensor("a", [4, 0], 0, 0)], 32),
    "rank": file([], [tensor("a", [1] * 5, 0, 0)], 32),
    "bad-name": file([], [tensor(b"a\xc3", [1], 0, 0)], 32),
    "split": split(0, 2, 3, ["a", "b"]) + split(1, 2, 3, ["c"]),
    "split-wrong": split(0, 2, 2, ["a"]) + split(0, 2, 2, ["a"]),
    "override-int": b"key=int:-5",
    "override-float": b"key=float:1e-6",
    "override-bool": b"key=bool:true",
    "override-str": b"key=str:text",
    "split-name": b"model-00001-of-00003.gguf",
}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)
