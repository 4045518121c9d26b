#!/usr/bin/env python3
"""Record what layers of prediction of the golden models give, computed in f64 with numpy.

Written from section 2.2 of the DeepSeek-V3 report (arXiv 2412.19437): the embedding of a token and the state that the
model gives before it, each behind its own norm, side by side (the embedding first, as the published matrices have it)
times eh_proj, then a layer with a cache of its own, then the layer's norm and the model's output matrix. The state is
that behind the final norm, and of the layer itself that behind its own norm. Nothing here is Tessera's.

    record_predictions.py tests/goldens [CASE ...]
"""
import argparse
import os

import gguf
import numpy as np

from numpy_models import File, attention_mla, attention_plain, feed_forward, layer_count, logits, rms_norm

CASES = ("v3-ungrouped", "glm-flash", "glm-dsa", "glm4moe")
CHAINED = 3    # tokens that are drafted behind the text
POSITIONS = 24


def predicted(f, tokens, states):
    """Logits behind each of `tokens`, before which the model, or the layer, has given `states`; the layer's states;
    the smallest distance of a chosen expert from one that was not, of each token."""
    t, eps, b = f.tensors, f.key("attention.layer_norm_rms_epsilon"), f"blk.{layer_count(f)}."
    embeddings = t["token_embd.weight"][tokens]
    both = [rms_norm(embeddings, t[b + "nextn.enorm.weight"], eps), rms_norm(states, t[b + "nextn.hnorm.weight"], eps)]
    x = np.concatenate(both, -1) @ t[b + "nextn.eh_proj.weight"].T
    attention = attention_mla if f.key("attention.kv_lora_rank") else attention_plain
    x = x + attention(f, b, rms_norm(x, t[b + "attn_norm.weight"], eps), None)
    before = "ffn_norm" if b + "ffn_norm.weight" in t else "post_attention_norm"
    y = rms_norm(x, t[b + before + ".weight"], eps)
    scores = 1 / (1 + np.exp(-y @ t[b + "ffn_gate_inp.weight"].T)) + t[b + "exp_probs_b.bias"]
    ranked, used = np.sort(scores, -1)[:, ::-1], f.key("expert_used_count")
    x = x + feed_forward(f, b, y, None, [])
    given = rms_norm(x, t[b + "nextn.shared_head_norm.weight"], eps)
    return given @ t["output.weight"].T, given, ranked[:, used - 1] - ranked[:, used]


def record(folder, name):
    f = File(os.path.join(folder, f"{name}.seeded.gguf"))
    golden = File(os.path.join(folder, f"{name}.short.golden.gguf")).tensors
    text = golden["tokens"].astype(np.int64)
    states = logits(f, text)[1][:, -1]
    tokens, given = text[1:], states[:-1]
    got, own, margin = predicted(f, tokens, given)
    # The layer's own choices, each from its own state.
    for _ in range(CHAINED):
        tokens, given = np.append(tokens, got[-1].argmax()), np.concatenate([given, own[-1:]])
        got, own, margin = predicted(f, tokens, given)
    at = np.unique(np.concatenate([np.linspace(0, len(text) - 2, POSITIONS).round(), np.arange(len(text) - 2, len(got))])).astype(np.int32)
    before = np.minimum.accumulate(np.minimum(margin, np.append(golden["router_margin"][:-1], np.ones(CHAINED))))
    path = os.path.join(folder, f"{name}.prediction.golden.gguf")
    w = gguf.GGUFWriter(path, "tessera-golden")
    w.add_string("golden.model", f"{name}.gguf")
    w.add_string("golden.made_with", f"numpy {np.__version__}, gguf")
    w.add_tensor("text", text.astype(np.int32))
    w.add_tensor("tokens", tokens.astype(np.int32))
    w.add_tensor("positions", at)
    w.add_tensor("logits", got[at].astype(np.float32))
    w.add_tensor("states", own[at].astype(np.float32))
    w.add_tensor("margin", before[at].astype(np.float32))
    for write in (w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close):
        write()
    print(f"{name}: {len(tokens)} tokens, largest logit {np.abs(got).max():.2f}, least margin of a router {margin.min():.1e}, "
          f"{os.path.getsize(path)} bytes")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder")
    ap.add_argument("cases", nargs="*", metavar="CASE", help="all if none is named")
    o = ap.parse_args()
    for name in o.cases or CASES:
        record(o.folder, name)


if __name__ == "__main__":
    main()
