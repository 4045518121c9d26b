#!/usr/bin/env python3
"""Compute recorded logits again, with numpy in f64 from the GGUF files alone, and compare.

    verify.py tests/goldens              every pair of model and golden; fails if one is off by more than 1e-4
    verify.py --faults tests/goldens     also how far each fault put in on purpose moves the logits
"""
import argparse
import glob
import os
import sys

import numpy as np

from numpy_models import File, layer_count, logits

ALLOWED = 1e-4  # of the largest logit, a tenth of the tolerance: `transformers` computes rope angles in f32,
# which moves logits past 4,096 tokens by some 2e-5
# Held against `transformers` alone.
NOT_COMPUTED = ("gemma3", "mimo2", "step35")


def faults(f):
    layers = range(layer_count(f))
    yield from (f"no-attention-{i}" for i in layers)
    yield from (f"no-ffn-{i}" for i in layers)
    yield from ("uniform-attention", "no-rope", "other-rope-pairs")
    if f.arch == "minicpm3":
        yield from ("no-embedding-scale", "no-residual-scale", "no-logit-scale")
    if {"rope_freqs.weight", "rope_factors_short.weight"} & set(f.tensors):
        yield "no-rope-factors"
    if f.key("rope.scaling.type") == "yarn":
        yield from ("no-yarn", "linear-for-yarn", "no-mscale")
    if f.key("attention.temperature_scale"):
        yield "no-temperature"
    if any(name.endswith("attn_q_norm.weight") for name in f.tensors):
        yield "no-qk-norm"
    if f.key("attention.sliding_window"):
        yield "no-window"
    if f.key("expert_count"):
        yield from ("other-experts", "other-gating", "other-weight-norm", "experts-beside-norm")
        if f.key("expert_weights_scale", 1.0) != 1.0:
            yield "no-weight-scale"
        if f.key("expert_group_count", 1) > 1:
            yield from ("no-groups", "other-group-score")
        if any(name.endswith("exp_probs_b.bias") for name in f.tensors):
            yield from ("no-selection-bias", "bias-in-weights")
        if f.key("expert_shared_count"):
            yield "no-shared-experts"


def further_prediction(f, name):
    """Whether the tensor serves what the logits do not go through."""
    block = name.split(".")[1] if name.startswith("blk.") else ""
    return ".indexer." in name or block.isdigit() and int(block) >= layer_count(f)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--faults", action="store_true")
    ap.add_argument("folder")
    ap.add_argument("cases", nargs="*", help="prefixes of file names; all if none is given")
    o = ap.parse_args()
    worst = 0.0
    for path in sorted(glob.glob(os.path.join(o.folder, "*.golden.gguf"))):
        name = os.path.basename(path).removesuffix(".golden.gguf")
        if name.endswith(".prediction"):  # numpy has recorded it
            continue
        if o.cases and not name.startswith(tuple(o.cases)):
            continue
        golden = File(path)
        g = golden.tensors
        model = File(os.path.join(o.folder, golden.keys["golden.model"].replace(".gguf", ".seeded.gguf")))
        at, largest = g["positions"], np.abs(g["logits"]).max()
        if model.arch in NOT_COMPUTED:
            print(f"{name}: not one of the models that are computed here")
            continue
        got, hidden, experts = logits(model, g["tokens"])
        unread = {name.split(".", 2)[-1] for name in model.tensors.unread if not further_prediction(model, name)}
        if unread:
            print(f"{name}: not one of the models that are computed here: nothing reads {', '.join(sorted(unread))}")
            continue
        off = np.abs(got[at] - g["logits"]).max() / largest
        hidden_off = np.abs(hidden[g["hidden_positions"]] - g["hidden"]).max() / np.abs(g["hidden"]).max()
        clear = g["margin"] > 1e-4 * largest
        assert np.array_equal(got.argmax(-1)[clear], g["top1"][clear]), name
        if experts is not None:
            assert np.array_equal(experts[at], g["experts"]), name
        ordered = np.sort(got, -1)
        margin_off = np.abs(ordered[:, -1] - ordered[:, -2] - g["margin"]).max() / largest
        print(f"{name}: logits off by {off:.1e} of the largest, hidden rows {hidden_off:.1e}, margins {margin_off:.1e}")
        worst = max(worst, off, hidden_off, margin_off)
        for change in faults(model) if o.faults else ():
            moved = np.abs(logits(model, g["tokens"], change)[0][at] - g["logits"]).max(-1) / largest
            print(f"    {change:20} largest {moved.max():.1e}, median of positions {np.median(moved):.1e}")
    if worst > ALLOWED:
        sys.exit(f"off by {worst:.1e}, allowed are {ALLOWED:.0e}")


if __name__ == "__main__":
    main()
