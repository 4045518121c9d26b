#!/usr/bin/env python3
"""Record what the public `gguf` package makes of blocks of every format, and how it quantises rows.

    record_blocks.py --out tests/goldens/blocks.gguf

TYPE.blocks holds the bytes of blocks, TYPE.values the f32 values of the same blocks. Bytes are random but for
the scales, which run from zero over the least subnormal to the largest f16. `rows` holds f32 rows,
TYPE.quantized the same rows in that format.
"""
import argparse
import os
from importlib.metadata import version

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

# Where a block keeps its f16 scales.
SCALES = {
    Kind.Q8_0: (0,), Kind.Q4_0: (0,), Kind.Q4_1: (0, 2), Kind.Q5_0: (0,), Kind.Q5_1: (0, 2),
    Kind.Q2_K: (80, 82), Kind.Q3_K: (108,), Kind.Q4_K: (0, 2), Kind.Q5_K: (0, 2), Kind.Q6_K: (208,),
    Kind.IQ4_NL: (0,), Kind.IQ4_XS: (0,), Kind.IQ2_XXS: (0,), Kind.IQ2_XS: (0,), Kind.IQ2_S: (0,),
    Kind.IQ3_XXS: (0,), Kind.IQ3_S: (0,), Kind.IQ1_S: (0,), Kind.IQ1_M: (), Kind.MXFP4: (),
}
# Recorded after the others, whose random bytes therefore stay as they are.
LATER = {Kind.TQ1_0: (52,), Kind.TQ2_0: (64,), Kind.NVFP4: ()}
# f16 bits: zero, minus zero, least and largest subnormal, least normal, one, minus one, largest, minus largest
EXTREMES = [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0xfbff]
QUANTIZED = [Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.BF16]


def type_name(kind):
    """Names as the runtime spells them: q4_0, q4_K, iq4_xs."""
    return kind.name.lower().replace("_k", "_K")


def random_scales(rng, count):
    return (rng.choice([-1, 1], count) * np.exp2(rng.uniform(-14, 4, count))).astype(np.float16).view(np.uint16)


def random_blocks(kind, rng):
    per, size = gguf.GGML_QUANT_SIZES[kind]
    random = 31 if per == 32 else 3
    count = random + len(EXTREMES)
    b = rng.integers(0, 256, (count, size), dtype=np.uint8)
    b[1], b[2] = 0x00, 0xff
    for i, at in enumerate({**SCALES, **LATER}[kind]):
        bits = random_scales(rng, count)
        bits[random:] = np.roll(EXTREMES, i)
        b[:, at:at + 2] = bits.astype("<u2").view(np.uint8).reshape(-1, 2)
    if kind == Kind.IQ1_M:  # the scale lies in the top four bits of the last four 16-bit words
        bits = random_scales(rng, count)
        bits[random:] = EXTREMES
        words = b[:, 48:56].copy().view("<u2")
        words &= 0x0fff
        for i in range(4):
            words[:, i] |= ((bits >> (4 * i)) & 15) << 12
        b[:, 48:56] = words.view(np.uint8)
    if kind == Kind.MXFP4:  # one power of two; above 252 the largest values overflow f32
        b[:, 0] = rng.integers(96, 160, count)
        b[random:, 0] = [0, 1, 2, 3, 126, 127, 128, 251, 252]
    return b


def float_blocks(kind, rng):
    if kind == Kind.F32:
        return rng.integers(0, 0x7f800000, 128, dtype=np.uint32).view(np.uint8).reshape(4, -1)
    top = 0x7c00 if kind == Kind.F16 else 0x7f80  # infinity, taken along; what lies above is NaN
    edges = np.array([0, 1, 2, 0x7f, 0x80, 0x3ff, 0x400, 0x401, top - 1, top], np.uint16)
    bits = np.concatenate([edges, rng.integers(0, top, 246, dtype=np.uint16)])
    bits = np.concatenate([bits, bits | 0x8000])
    return bits.view(np.uint8).reshape(16, -1)


def rows_to_quantize(rng):
    """Eight rows of 128: what weights look like, large, small, zeros, constants, ties, one outlier, subnormal scales."""
    rows = rng.standard_normal((8, 128))
    rows[1] *= 1e4
    rows[2] *= 1e-4
    rows[3, :32] = 0
    rows[3, 32:64], rows[3, 64:96], rows[3, 96:] = 1.0, -0.75, -0.0
    rows[4] = np.tile(np.arange(-16, 16) / 2, 4) * np.repeat([1.0, 0.5, 2.0, -1.0], 32)
    rows[5, 37] = -300.0
    rows[5, 99] = 300.0
    rows[6] *= 1e-6
    rows[7] = np.abs(rows[7]) + 5.0
    return rows.astype(np.float32)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True, metavar="FILE.gguf")
    o = ap.parse_args()
    rng = np.random.default_rng(20)
    w = gguf.GGUFWriter(o.out, "tessera-golden")
    w.add_string("golden.made_with", f"gguf {version('gguf')}, numpy {np.__version__}")
    kinds = [Kind.F32, Kind.F16, Kind.BF16, *SCALES]
    w.add_array("golden.types", [type_name(k) for k in [*kinds, *LATER]])
    with np.errstate(over="raise", invalid="raise"):
        def record(kind, b, v):
            assert not np.isnan(v).any(), kind
            w.add_tensor(f"{type_name(kind)}.blocks", b.view(np.int8))
            w.add_tensor(f"{type_name(kind)}.values", np.ascontiguousarray(v, dtype=np.float32))

        def record_blocks(kind):
            b = random_blocks(kind, rng)
            record(kind, b, gguf.quants.dequantize(b, kind))

        for kind in kinds:
            if kind in SCALES:
                record_blocks(kind)
                continue
            b = float_blocks(kind, rng)
            record(kind, b, b.view(np.float32) if kind == Kind.F32
                   else b.view(np.float16).astype(np.float32) if kind == Kind.F16 else gguf.quants.dequantize(b, kind))
        rows = rows_to_quantize(rng)
        w.add_tensor("rows", rows)
        for kind in QUANTIZED:
            q = gguf.quants.quantize(rows, kind)
            w.add_tensor(f"{type_name(kind)}.quantized", np.ascontiguousarray(q).view(np.int8))
        for kind in LATER:
            record_blocks(kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(f"{len(kinds) + len(LATER)} formats, {os.path.getsize(o.out)} bytes")


if __name__ == "__main__":
    main()
