#!/usr/bin/env python3
"""Record what ik_llama.cpp's own code makes of rows of its formats.

    record_ik_rows.py --library .../libggml.so --made-with "ik_llama.cpp COMMIT" --out tests/formats/ik_rows.gguf

The library is called through ctypes. For each type of `golden.types`, TYPE.random holds rows of random bits with sane
scales (i8 [rows, bytes of a row]; interleaved types: one group) and TYPE.values the f32 values that the library's
dequantisation gives. For interleaved types TYPE.interleaved is a group that the library's quantiser wrote and TYPE.rows
the same rows as the quantiser of the plain type writes them.
"""
import argparse
import ctypes as c
import os

import gguf
import numpy as np

# name: (number, elements of a block, bytes of a block, bytes of a row before its blocks, what the prefix or else the
# block begins with, how many; "at": where the scales lie in a block if not at its start)
PLAIN = {
    "q6_0": (133, 32, 26, 0, "f2", 1), "iq2_k": (137, 256, 76, 0, "f2", 1), "iq3_k": (138, 256, 110, 0, "f2", 1),
    "iq4_k": (139, 256, 144, 0, "f2", 1), "iq5_k": (140, 256, 176, 0, "f2", 1), "iq6_k": (141, 256, 212, 0, "f2", 1),
    "iq4_ks": (144, 256, 136, 4, "f4", 1), "iq2_ks": (145, 256, 70, 2, "f2", 1), "iq5_ks": (152, 256, 168, 4, "f4", 1),
    "iq3_ks": (156, 256, 102, 2, "f2", 1),
}
LATER = {
    "q1_0": (41, 128, 18, 0, "f2", 1), "iq1_bn": (134, 64, 13, 2, "f2", 1), "iq2_bn": (135, 64, 16, 4, "f4", 1),
    "iq4_kss": (146, 256, 128, 4, "f4", 1), "q8_KV": (151, 32, 32, 8, "f4", 1), "iq2_kt": (153, 256, 68, 4, "f4", 1),
    "iq3_kt": (154, 256, 100, 4, "f4", 1), "iq4_kt": (155, 256, 128, 4, "f4", 1), "iq2_kl": (157, 256, 86, 2, "f2", 1),
    "iq1_kt": (158, 256, 56, 4, "f4", 1),
}
# Names of functions that are not those of the types.
FUNCTIONS = {"q1_0": "q1_0_g128"}
# Dequantisation that is handed what follows the scale of a row, and does not multiply with it: products do.
WITHOUT_SCALE = {"iq1_bn", "iq2_bn"}
# name: (number, number of the plain type or None, rows, elements, bytes of a block of one row, bytes of the prefix of one
# row, kind and count of the scales that the group's prefix or each of its blocks begins with)
INTERLEAVED = {
    "q4_0_r8": (202, 2, 8, 32, 18, 0, "f2", 8), "q5_0_r4": (206, 6, 4, 32, 22, 0, "f2", 4),
    "q8_0_r8": (208, 8, 8, 32, 34, 0, "f2", 8), "q2_k_r4": (210, 10, 4, 256, 84, 0, "f2", 8),
    "q3_k_r4": (211, 11, 4, 256, 110, 0, "f2", 4), "q4_k_r4": (212, 12, 4, 256, 144, 0, "f2", 8),
    "q5_k_r4": (213, 13, 4, 256, 176, 0, "f2", 8), "q6_k_r4": (214, 14, 4, 256, 210, 0, "f2", 4),
    "iq2_xxs_r4": (216, 16, 4, 256, 66, 0, "f2", 4), "iq2_xs_r4": (217, 17, 4, 256, 74, 0, "f2", 4),
    "iq3_xxs_r4": (218, 18, 4, 256, 98, 0, "f2", 4), "iq1_s_r4": (219, None, 4, 32, 6, 2, "f2", 4),
    "iq4_nl_r4": (220, 20, 4, 32, 18, 0, "f2", 4), "iq3_s_r4": (221, 21, 4, 256, 110, 0, "f2", 4),
    "iq2_s_r4": (222, 22, 4, 256, 82, 0, "f2", 4), "iq4_xs_r8": (223, 23, 8, 256, 136, 0, "f2", 8),
    "iq1_m_r4": (229, None, 4, 32, 7, 2, "f2", 4), "q6_0_r4": (233, 133, 4, 32, 26, 0, "f2", 4),
    "iq2_k_r4": (337, 137, 4, 256, 76, 0, "f2", 4), "iq3_k_r4": (338, 138, 4, 256, 110, 0, "f2", 4),
    "iq4_k_r4": (339, 139, 4, 256, 144, 0, "f2", 4), "iq5_k_r4": (340, 140, 4, 256, 176, 0, "f2", 4),
    "iq4_ks_r4": (344, 144, 4, 256, 136, 4, "f4", 4), "iq5_ks_r4": (352, 152, 4, 256, 168, 4, "f4", 4),
    "mxfp4_r8": (353, 39, 8, 32, 17, 0, "e8m0", 8), "q8_k_r16": (397, None, 16, 256, 258, 0, "f2", 16),
    "q8_KV_r8": (398, None, 8, 32, 32, 4, "f4", 8), "q8_k_r8": (399, None, 8, 256, 258, 0, "f2", 8),
}
# Dequantisation that counts the blocks of a group as those of a row and writes past its output: not called.
BROKEN = {"mxfp4_r8"}
ELEMENTS = 256  # of a row; short, because the values take four bytes each


def scales(rng, kind, count):
    if kind == "e8m0":
        return rng.integers(96, 160, count, dtype=np.uint8)
    d = rng.choice([-1, 1], count) * np.exp2(rng.uniform(-14, 2, count))
    return d.astype("<" + kind).view(np.uint8)


def random_rows(rng, elements, blocks, block_bytes, prefix_bytes, kind, count):
    """One row, or one group of them: its prefix and blocks, of `count` scales each where there is no prefix."""
    b = rng.integers(0, 256, prefix_bytes + blocks * block_bytes, dtype=np.uint8)
    at = [0] if prefix_bytes else range(0, b.size, block_bytes)
    for i in at:
        s = scales(rng, kind, count)
        b[i:i + s.size] = s
    return b


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--library", required=True)
    ap.add_argument("--made-with", required=True)
    ap.add_argument("--out", required=True)
    o = ap.parse_args()
    ggml = c.CDLL(o.library)
    ggml.ggml_quantize_chunk.restype = c.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [c.c_int, c.c_void_p, c.c_void_p, c.c_int64, c.c_int64, c.c_int64, c.c_void_p, c.c_void_p]
    # Fills the library's tables of f16.
    params = type("Params", (c.Structure,), {"_fields_": [("size", c.c_size_t), ("buffer", c.c_void_p), ("no_alloc", c.c_bool)]})
    ggml.ggml_init.restype = c.c_void_p
    assert ggml.ggml_init(params(1 << 20, None, False))
    rng = np.random.default_rng(31)

    def decode(name, data, count):
        out = np.zeros(count, np.float32)
        data = np.ascontiguousarray(data)
        getattr(ggml, "dequantize_row_" + FUNCTIONS.get(name, name))(data.ctypes.data_as(c.c_void_p), out.ctypes.data_as(c.c_void_p), c.c_int64(count))
        assert np.isfinite(out).all(), name
        return out

    def quantize(number, x, row_bytes):
        out = np.zeros((x.shape[0], row_bytes), np.uint8)
        weights = np.ones(x.shape[1], np.float32)
        n = ggml.ggml_quantize_chunk(number, x.ctypes.data, out.ctypes.data, 0, x.shape[0], x.shape[1], weights.ctypes.data, None)
        assert n == out.size, (number, n, out.size)
        return out

    def record_random(name, rows, group):
        add(f"{name}.random", group.reshape(rows, -1))
        add(f"{name}.values", decode(name, group, rows * ELEMENTS).reshape(rows, ELEMENTS))

    def add(name, a):
        w.add_tensor(name, a if a.dtype == np.float32 else np.ascontiguousarray(a).view(np.int8))

    w = gguf.GGUFWriter(o.out, "tessera-golden")
    w.add_string("golden.made_with", o.made_with)
    def decode_row(name, row, prefix, kind):
        if name not in WITHOUT_SCALE:
            return decode(name, row, 512)
        return row[:prefix].view("<" + kind).astype(np.float32) * decode(name, row[prefix:], 512)

    def record_plain(name, elements, size, prefix, kind, count):
        rows = np.stack([random_rows(rng, elements, 512 // elements, size, prefix, kind, count) for _ in range(3)])
        add(f"{name}.random", rows)
        add(f"{name}.values", np.stack([decode_row(name, row, prefix, kind) for row in rows]))

    w.add_array("golden.types", [*PLAIN, *INTERLEAVED, "bf16_r16", *LATER])
    for name, (_, *layout) in PLAIN.items():
        record_plain(name, *layout)
    for name, (number, plain, rows, elements, size, prefix, kind, count) in INTERLEAVED.items():
        blocks = ELEMENTS // elements
        if name not in BROKEN:
            record_random(name, rows, random_rows(rng, elements, blocks, rows * size, rows * prefix, kind, count))
        if plain is None:
            continue
        x = rng.standard_normal((rows, 512)).astype(np.float32)
        row_bytes = prefix + 512 // elements * size
        add(f"{name}.interleaved", quantize(number, x, row_bytes))
        add(f"{name}.rows", quantize(plain, x, row_bytes))
    x = rng.standard_normal((16, 64)).astype(np.float32).view(np.uint32) >> 16  # bf16 numbers, exact in f32
    x = (x << 16).view(np.float32)
    y = np.zeros((16, 64), np.uint16)
    ggml.repack_f32_bf16_r16(x.ctypes.data_as(c.c_void_p), y.ctypes.data_as(c.c_void_p), c.c_int64(16), c.c_int64(64))
    add("bf16_r16.random", y.view(np.uint8))
    add("bf16_r16.values", x)
    for name, (_, *layout) in LATER.items():
        record_plain(name, *layout)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(f"{len(PLAIN) + len(INTERLEAVED) + 1 + len(LATER)} types, {os.path.getsize(o.out)} bytes")


if __name__ == "__main__":
    main()
