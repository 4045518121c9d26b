#!/usr/bin/env python3
"""Change a model of make_gguf.py with layers of prediction so that both know what comes: to measure drafts that are right.

Layers add nothing (their last matrices are 0), and the output matrix has the embedding of each token in the row of the
next one, so that a text goes on as numbers do. eh_proj passes on the embedding alone, with which the layer of prediction
gives the token behind its own. Kernels compute with all of that as with other weights. For f16, bf16, q8_0 and q4_0.

    make_predictable.py FILE.gguf
"""
import argparse

import gguf
import numpy as np

FIRST = 256  # tokens before it may end a text


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file", metavar="FILE.gguf", help="is changed")
    o = ap.parse_args()
    tensors = {t.name: t for t in gguf.GGUFReader(o.file, "r+").tensors}
    embeddings = tensors["token_embd.weight"]
    width, tokens = (int(n) for n in embeddings.shape)
    random = np.random.default_rng(1)
    for name, t in tensors.items():
        part = ".".join(name.split(".")[2:])
        if part == "attn_output.weight" or part.startswith("ffn_down"):
            t.data[...] = 0
        elif name == "output_norm.weight" or part.startswith("nextn.") and part.endswith("norm.weight"):
            t.data[...] = 1
        elif part == "nextn.eh_proj.weight":
            for first in range(0, width, 512):
                rows = np.eye(min(512, width - first), 2 * width, first, dtype=np.float32)
                t.data[first:first + len(rows)] = gguf.quants.quantize(rows, t.tensor_type).view(t.data.dtype)
    for first in range(0, tokens, 4096):
        rows = random.standard_normal((min(4096, tokens - first), width), np.float32)
        embeddings.data[first:first + len(rows)] = gguf.quants.quantize(rows, embeddings.tensor_type).view(embeddings.data.dtype)
        output = tensors["output.weight"]
        packed = gguf.quants.quantize(rows, output.tensor_type).view(output.data.dtype)
        after = np.arange(first, first + len(rows)) + 1
        after[after == tokens] = FIRST
        known = after > FIRST if first == 0 else np.ones(len(rows), bool)
        output.data[after[known]] = packed[known]
    tensors["output.weight"].data[:FIRST] = 0


if __name__ == "__main__":
    main()
