#!/usr/bin/env python3
"""Write a GGUF v3 model of a preset of gguf_presets.py, with random weights.

Nothing in it was trained: it exists to time a runtime at the real tensor shapes, to compare two
runtimes on the same file, and to give a loader real files to read. Needs numpy only
(Debian: python3-numpy). The byte layouts follow the public GGUF v3 specification and the public
block formats Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, F16, BF16 and F32.

    make_gguf.py --preset tiny --type q4_0 -o tiny.gguf
    make_gguf.py --preset lite --type q4_0 -o lite.gguf            # DeepSeek-V2-Lite, 15.7 B weights
    make_gguf.py --preset v3 --layers 3 --dense 1 --experts 24 --type q4_K -o v3-cut.gguf
    make_gguf.py --preset tiny --layout absorbed ...               # kv_b already split: attn_k_b, attn_v_b (3-D)
    make_gguf.py --preset tiny --layout all ...                    # attn_kv_b and, in two dimensions, attn_k_b and attn_v_b
    make_gguf.py --preset tiny --split 3 -o tiny.gguf              # tiny-00001-of-00003.gguf ...
    make_gguf.py --preset v3 --type q4_K --sparse -o r1.gguf       # right sizes, holes for data: for planning
"""
import argparse
import math
import os
import struct
import sys

import numpy as np

from gguf_presets import PRESETS, has_indexer, of_layer

ALIGN = 32
# ggml type id, weights a block, bytes a block
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "bf16": (30, 1, 2), "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22),
         "q5_1": (7, 32, 24), "q8_0": (8, 32, 34), "mxfp4": (39, 32, 17), "iq4_nl": (20, 32, 18), "iq4_xs": (23, 256, 136),
         "q2_K": (10, 256, 84), "q3_K": (11, 256, 110), "q4_K": (12, 256, 144), "q5_K": (13, 256, 176), "q6_K": (14, 256, 210)}
FTYPE = {"f32": 0, "f16": 1, "bf16": 32, "q4_0": 2, "q4_1": 3, "q5_0": 8, "q5_1": 9, "q8_0": 7, "mxfp4": 38, "iq4_nl": 25, "iq4_xs": 30, "q2_K": 10, "q3_K": 12, "q4_K": 15, "q5_K": 17, "q6_K": 18}
SPREAD = {"q4_0": 4.6, "q4_1": 4.6, "q5_0": 9.2, "q5_1": 9.2, "iq4_xs": 68.0 * 18, "q8_0": 73.0, "iq4_nl": 68.0, "q2_K": 1.1 * 8, "q3_K": 2.3 * 18, "q4_K": 4.6 * 36, "q5_K": 9.2 * 36, "q6_K": 18.5 * 73}


def block_pool(kind, n_in, rng, blocks=1 << 16):
    """Random blocks of one format, scaled so that a row of n_in weights has about unit gain."""
    _, _, size = TYPES[kind]
    std = 1.0 / math.sqrt(n_in)
    if kind == "f32":
        return (rng.standard_normal(1 << 20).astype(np.float32) * np.float32(std)).view(np.uint8)
    if kind == "f16":
        return (rng.standard_normal(1 << 20) * std).astype(np.float16).view(np.uint8)
    if kind == "bf16":
        w = (rng.standard_normal(1 << 20) * std).astype(np.float32).view(np.uint32)
        return ((w + 0x8000) >> 16).astype(np.uint16).view(np.uint8)
    b = rng.integers(0, 256, (blocks, size), dtype=np.uint8)
    if kind == "mxfp4":  # exponent qs[16]; a code's root mean square is 2.93
        b[:, 0] = 127 + round(math.log2(std / 2.93))
        return b.reshape(-1)
    d = (std / SPREAD[kind] * rng.uniform(0.8, 1.2, blocks)).astype(np.float16).view(np.uint8).reshape(blocks, 2)
    if kind in ("q4_0", "q5_0", "iq4_nl", "iq4_xs", "q8_0"):
        b[:, 0:2] = d
    elif kind in ("q4_1", "q5_1"):  # d m ...: m centres the block
        m = (-d.view(np.float16).astype(np.float32) * (7.5 if kind == "q4_1" else 15.5)).astype(np.float16).view(np.uint8).reshape(blocks, 2)
        b[:, 0:2], b[:, 2:4] = d, m
    elif kind == "q2_K":          # scales[16] qs[64] d dmin
        dmin = (std / SPREAD[kind] * 1.5 * rng.uniform(0.9, 1.1, blocks)).astype(np.float16).view(np.uint8).reshape(blocks, 2)
        b[:, 80:82], b[:, 82:84] = d, dmin
    elif kind == "q3_K":          # hmask[32] qs[64] scales[12] d
        b[:, 108:110] = d
    elif kind in ("q4_K", "q5_K"):  # d dmin scales[12] ...
        mid = 7.5 if kind == "q4_K" else 15.5
        dmin = (std / SPREAD[kind] * mid * rng.uniform(0.95, 1.05, blocks)).astype(np.float16).view(np.uint8).reshape(blocks, 2)
        b[:, 0:2], b[:, 2:4] = d, dmin
    elif kind == "q6_K":          # ql[128] qh[64] scales[16] d
        b[:, 208:210] = d
    return b.reshape(-1)


def byte_alphabet():
    """The 256 printable stand-ins for bytes that byte-level BPE vocabularies use."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    out, n = {}, 0
    for b in range(256):
        if b in keep:
            out[b] = chr(b)
        else:
            out[b] = chr(256 + n)
            n += 1
    return [out[b] for b in range(256)]


def vocabulary(size):
    """A byte-level BPE vocabulary: specials, the bytes, then merges that are all reachable."""
    tokens = ["<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"]
    types = [3, 3, 3, 3]
    alphabet = byte_alphabet()
    tokens += alphabet
    types += [1] * 256
    seen, merges = set(tokens), []
    letters = [alphabet[b] for b in b"etaoinshrdlcumwfgypbvkjxqzETAOINSHRDLCUMWFGYPBVKJXQZ0123456789"] + [alphabet[32]]
    grown = list(letters)
    at = 0
    while len(tokens) < size:
        left = grown[at % len(grown)]
        for right in letters:
            if right == alphabet[32] or len(tokens) >= size:
                continue
            word = left + right
            if word in seen:
                continue
            seen.add(word)
            tokens.append(word)
            types.append(1)
            merges.append(left + " " + right)
            grown.append(word)
        at += 1
    return tokens[:size], types[:size], merges


def encode(w, kind):
    """Rows of float32 as bytes of one of the plain formats."""
    if kind == "f32":
        return w.astype(np.float32).tobytes()
    if kind == "f16":
        return w.astype(np.float16).tobytes()
    if kind == "bf16":
        return ((w.astype(np.float32).view(np.uint32) + 0x8000) >> 16).astype(np.uint16).tobytes()
    assert kind == "q8_0"
    x = w.astype(np.float32).reshape(-1, 32)
    d = (np.abs(x).max(axis=1) / 127.0).astype(np.float16)
    q = np.rint(x / np.maximum(d.astype(np.float32), 1e-12)[:, None]).clip(-127, 127).astype(np.int8)
    out = np.empty((len(x), 34), np.uint8)
    out[:, 0:2], out[:, 2:34] = d.view(np.uint8).reshape(-1, 2), q.view(np.uint8)
    return out.tobytes()


class Writer:
    def __init__(self):
        self.kv, self.count = bytearray(), 0

    def _str(self, s):
        raw = s.encode()
        return struct.pack("<Q", len(raw)) + raw

    def add(self, key, kind, value):
        ids = dict(u8="<B", i8="<b", u16="<H", i16="<h", u32="<I", i32="<i", f32="<f", bool="<?", u64="<Q", i64="<q", f64="<d")
        num = dict(u8=0, i8=1, u16=2, i16=3, u32=4, i32=5, f32=6, bool=7, str=8, arr=9, u64=10, i64=11, f64=12)
        self.kv += self._str(key)
        if kind == "str":
            self.kv += struct.pack("<I", 8) + self._str(value)
        elif kind.startswith("arr:"):
            of = kind[4:]
            self.kv += struct.pack("<IIQ", 9, num[of], len(value))
            for v in value:
                self.kv += self._str(v) if of == "str" else struct.pack(ids[of], v)
        else:
            self.kv += struct.pack("<I", num[kind]) + struct.pack(ids[kind], value)
        self.count += 1


def feed_forward_tensors(p, i, kind, best):
    """Of layer i, dense or with experts, without its norm: names, shapes and types."""
    b, e = f"blk.{i}.", p["embd"]
    if i < p["dense"] or (i + 1) % p.get("step", 1):
        if not p.get("fused_up"):
            yield b + "ffn_gate.weight", (e, p["ff"]), best(e, kind)
        yield b + "ffn_up.weight", (e, p["ff"] * (2 if p.get("fused_up") else 1)), best(e, kind)
        yield b + "ffn_down.weight", (p["ff"], e), best(p["ff"], kind)
    else:
        yield b + "ffn_gate_inp.weight", (e, p["experts"]), "f32"
        if p["bias"]:
            yield b + "exp_probs_b.bias", (p["experts"],), "f32"
        if p.get("biased"):
            yield b + "ffn_gate_inp.bias", (p["experts"],), "f32"
            for part, n in (("gate", p["ff_exp"]), ("up", p["ff_exp"]), ("down", e)):
                yield b + f"ffn_{part}_exps.bias", (n, p["experts"]), "f32"
        f, s = p["ff_exp"], p["ff_exp"] * p["shared"]
        yield b + "ffn_gate_exps.weight", (e, f, p["experts"]), best(e, kind)
        yield b + "ffn_down_exps.weight", (f, e, p["experts"]), best(f, kind)
        yield b + "ffn_up_exps.weight", (e, f, p["experts"]), best(e, kind)
        if s:
            yield b + "ffn_gate_shexp.weight", (e, s), best(e, kind)
            yield b + "ffn_down_shexp.weight", (s, e), best(s, kind)
            yield b + "ffn_up_shexp.weight", (e, s), best(e, kind)
        if p.get("shared_gate"):
            yield b + "ffn_gate_inp_shexp.weight", (e,), "f32"


def prediction_tensors(p, i, kind, best):
    """What layer i has beside, if it predicts further tokens."""
    b, e = f"blk.{i}.", p["embd"]
    if i >= p["layers"]:
        yield b + "nextn.eh_proj.weight", (2 * e, e), best(2 * e, kind)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            yield b + f"nextn.{name}.weight", (e,), "f32"


def output_tensors(p, kind, best):
    e = p["embd"]
    yield "output_norm.weight", (e,), "f32"
    if not p["tied"]:
        yield "output.weight", (e, p["vocab"]), best(e, "q6_K" if kind.endswith("_K") else kind)


def tensors(p, kind, layout):
    """Yield (name, shape fastest first, type) in file order."""
    if kind == "mxfp4":  # experts alone are
        for name, shape, other in tensors(p, "q8_0", layout):
            yield name, shape, kind if name.endswith("_exps.weight") else other
        return
    def best(n_in, want):
        return want if n_in % TYPES[want][1] == 0 else ("q8_0" if n_in % 32 == 0 else "f16")
    if "kv_heads" in p:
        yield from grouped_tensors(p, kind, best)
        return
    e, h = p["embd"], p["heads"]
    qk = p["nope"] + p["rope"]
    yield "token_embd.weight", (e, p["vocab"]), best(e, kind)
    for length in ("short", "long") if p["factors"] else ():
        yield f"rope_factors_{length}.weight", (p["rope"] // 2,), "f32"
    for i in range(p["layers"] + p["nextn"]):
        b = f"blk.{i}."
        yield b + "attn_norm.weight", (e,), "f32"
        if p["q_lora"]:
            yield b + "attn_q_a.weight", (e, p["q_lora"]), best(e, kind)
            yield b + "attn_q_a_norm.weight", (p["q_lora"],), "f32"
            yield b + "attn_q_b.weight", (p["q_lora"], h * qk), best(p["q_lora"], kind)
        else:
            yield b + "attn_q.weight", (e, h * qk), best(e, kind)
        yield b + "attn_kv_a_mqa.weight", (e, p["kv_lora"] + p["rope"]), best(e, kind)
        yield b + "attn_kv_a_norm.weight", (p["kv_lora"],), "f32"
        if layout in ("joint", "all"):
            yield b + "attn_kv_b.weight", (p["kv_lora"], h * (p["nope"] + p["v"])), best(p["kv_lora"], kind)
        if layout == "all":
            yield b + "attn_k_b.weight", (p["nope"], p["kv_lora"] * h), best(p["nope"], "q8_0" if kind not in ("f32", "f16", "bf16") else kind)
            yield b + "attn_v_b.weight", (p["kv_lora"], p["v"] * h), best(p["kv_lora"], kind)
        elif layout == "absorbed":
            yield b + "attn_k_b.weight", (p["nope"], p["kv_lora"], h), best(p["nope"], "q8_0" if kind not in ("f32", "f16", "bf16") else kind)
            yield b + "attn_v_b.weight", (p["kv_lora"], p["v"], h), best(p["kv_lora"], kind)
        yield b + "attn_output.weight", (h * p["v"], e), best(h * p["v"], kind)
        if has_indexer(p, i):
            n, length, _, _ = p["indexer"]
            yield b + "indexer.attn_q_b.weight", (p["q_lora"], n * length), best(p["q_lora"], kind)
            yield b + "indexer.attn_k.weight", (e, length), best(e, kind)
            yield b + "indexer.k_norm.weight", (length,), "f32"
            yield b + "indexer.k_norm.bias", (length,), "f32"
            yield b + "indexer.proj.weight", (e, n), best(e, kind)
        yield b + "ffn_norm.weight", (e,), "f32"
        yield from feed_forward_tensors(p, i, kind, best)
        yield from prediction_tensors(p, i, kind, best)
    yield from output_tensors(p, kind, best)


def grouped_tensors(p, kind, best):
    """The same of a model whose queries are grouped."""
    e, value = p["embd"], p["value"] or p["head"]
    yield "token_embd.weight", (e, p["vocab"]), best(e, kind)
    if p["factors"]:
        yield "rope_freqs.weight", (p["factors"],), "f32"
    for i in range(p["layers"] + p["nextn"]):
        b = f"blk.{i}."
        heads, kv_heads = of_layer(p, "heads", i), of_layer(p, "kv_heads", i)
        q, k, v = heads * p["head"], kv_heads * p["head"], kv_heads * value
        for norm in p["norms"]:
            yield b + norm + ".weight", (e,), "f32"
        if p["fused"]:
            yield b + "attn_qkv.weight", (e, q + k + v), best(e, kind)
            if p["qkv_bias"]:
                yield b + "attn_qkv.bias", (q + k + v,), "f32"
        for part, n in () if p["fused"] else (("q", q), ("k", k), ("v", v)):
            yield b + f"attn_{part}.weight", (e, n), best(e, kind)
            if p["qkv_bias"]:
                yield b + f"attn_{part}.bias", (n,), "f32"
        for part, n in (("q", q), ("k", k)) if p["head_norm"] else ():
            yield b + f"attn_{part}_norm.weight", (n if p["head_norm"] == "rows" else p["head"],), "f32"
        yield b + "attn_output.weight", (heads * value, e), best(heads * value, kind)
        if p["gate"]:
            yield b + "attn_gate.weight", (e, heads), best(e, kind)
        if p["biased"]:
            yield b + "attn_output.bias", (e,), "f32"
        if p["sinks"] and (not p["windows"] or p["windows"](i)):
            yield b + "attn_sinks.weight", (heads,), "f32"
        yield from feed_forward_tensors(p, i, kind, best)
        yield from prediction_tensors(p, i, kind, best)
    yield from output_tensors(p, kind, best)


def add_grouped_keys(w, p):
    a, layers = p["arch"] + ".", range(p["layers"] + p["nextn"])

    def heads(name):
        return (("arr:u32", [of_layer(p, name, i) for i in layers]) if p[f"local_{name}"] else ("u32", p[name]))
    for key, t, v in (
            ("block_count", "u32", p["layers"] + p["nextn"]), ("context_length", "u32", p["ctx"]),
            ("embedding_length", "u32", p["embd"]), ("feed_forward_length", "u32", p["ff"]),
            ("attention.head_count", *heads("heads")), ("attention.head_count_kv", *heads("kv_heads")),
            ("attention.sliding_window_pattern", "arr:bool", [p["windows"](i) for i in layers] if p["windows"] else None),
            ("attention.key_length", "u32", p["head"]), ("attention.value_length", "u32", p["value"] or p["head"]), ("rope.freq_base", "f32", p["base"]),
            ("rope.dimension_count", "u32", p["rotated"]), ("attention.layer_norm_rms_epsilon", "f32", p["eps"]),
            ("vocab_size", "u32", p["vocab"]), ("expert_count", "u32", p["experts"]), ("expert_used_count", "u32", p["used"]),
            ("expert_feed_forward_length", "u32", p["ff_exp"]), ("expert_gating_func", "u32", p["gating"]),
            ("expert_weights_scale", "f32", p["scale"]), ("expert_weights_norm", "bool", p["norm"]),
            ("expert_group_count", "u32", p["groups"]), ("expert_group_used_count", "u32", p["groups_used"]),
            ("nextn_predict_layers", "u32", p["nextn"]),
            ("leading_dense_block_count", "u32", p["dense"] if p["experts"] and p["dense"] and p["arch"] != "mimo2" else None),
            ("expert_shared_count", "u32", None if p["shared_length"] else p["shared"]),
            ("expert_shared_feed_forward_length", "u32", p["shared_length"]), *p["keys"]):
        if v:
            w.add(a + key, t, v)


def add_latent_keys(w, p, layout):
    a = p["arch"] + "."
    for key, t, v in (
            ("block_count", "u32", p["layers"] + p["nextn"]), ("context_length", "u32", p["ctx"]),
            ("embedding_length", "u32", p["embd"]), ("feed_forward_length", "u32", p["ff"]), ("attention.head_count", "u32", p["heads"]),
            ("attention.head_count_kv", "u32", 1 if layout == "absorbed" else p["heads"]), ("rope.freq_base", "f32", p["base"]),
            ("attention.layer_norm_rms_epsilon", "f32", p["eps"]), ("vocab_size", "u32", p["vocab"]),
            ("attention.kv_lora_rank", "u32", p["kv_lora"]), ("rope.dimension_count", "u32", p["rope"])):
        w.add(a + key, t, v)
    for key, t, v in () if p["bare"] else (
            ("leading_dense_block_count", "u32", p["dense"]), ("expert_feed_forward_length", "u32", p["ff_exp"]),
            ("expert_shared_count", "u32", p["shared"]), ("expert_weights_scale", "f32", p["scale"]),
            ("expert_weights_norm", "bool", p["norm"])):
        w.add(a + key, t, v)
    if p["experts"]:
        w.add(a + "expert_count", "u32", p["experts"])
        w.add(a + "expert_used_count", "u32", p["used"])
    if p["gating"] and not p["bare"]:
        w.add(a + "expert_gating_func", "u32", p["gating"])
    if p["q_lora"]:
        w.add(a + "attention.q_lora_rank", "u32", p["q_lora"])
    if p["groups"]:
        w.add(a + "expert_group_count", "u32", p["groups"])
        w.add(a + "expert_group_used_count", "u32", p["groups_used"])
    if p["nextn"]:
        w.add(a + "nextn_predict_layers", "u32", p["nextn"])
    if yarn := p["yarn"]:
        w.add(a + "rope.scaling.type", "str", "yarn")
        w.add(a + "rope.scaling.factor", "f32", yarn["factor"])
        w.add(a + "rope.scaling.original_context_length", "u32", yarn["original"])
        w.add(a + "rope.scaling.yarn_log_multiplier", "f32", yarn["log_mul"])
        for part in ("fast", "slow"):
            if yarn[part] is not None:
                w.add(a + "rope.scaling.yarn_beta_" + part, "f32", yarn[part])
    if p["temperature"]:
        w.add(a + "attention.temperature_scale", "f32", p["temperature"][0])
        w.add(a + "attention.temperature_length", "u32", p["temperature"][1])
    if p["indexer"]:
        for key, v in zip(("head_count", "key_length", "top_k"), p["indexer"]):
            w.add(a + "attention.indexer." + key, "u32", v)
        if p["indexer"][3] != 4:
            w.add(a + "attention.indexer.types", "arr:bool", [has_indexer(p, i) for i in range(p["layers"])])
    if layout != "absorbed":
        w.add(a + "attention.key_length", "u32", p["nope"] + p["rope"])
        if not p["bare"]:
            w.add(a + "attention.value_length", "u32", p["v"])
    else:
        w.add(a + "attention.key_length", "u32", p["kv_lora"] + p["rope"])
        w.add(a + "attention.value_length", "u32", p["kv_lora"])
        w.add(a + "attention.key_length_mla", "u32", p["nope"] + p["rope"])
        w.add(a + "attention.value_length_mla", "u32", p["v"])


def metadata(p, kind, layout, name):
    w = Writer()
    w.add("general.architecture", "str", p["arch"])
    w.add("general.name", "str", name)
    w.add("general.file_type", "u32", FTYPE[kind])
    w.add("general.quantization_version", "u32", 2)
    if "kv_heads" in p:
        add_grouped_keys(w, p)
    else:
        add_latent_keys(w, p, layout)
    tokens, types, merges = vocabulary(p["vocab"])
    w.add("tokenizer.ggml.model", "str", "gpt2")
    w.add("tokenizer.ggml.pre", "str", p["pre"])
    w.add("tokenizer.ggml.tokens", "arr:str", tokens)
    w.add("tokenizer.ggml.token_type", "arr:i32", types)
    w.add("tokenizer.ggml.merges", "arr:str", merges)
    w.add("tokenizer.ggml.bos_token_id", "u32", 0)
    w.add("tokenizer.ggml.eos_token_id", "u32", 1)
    w.add("tokenizer.ggml.padding_token_id", "u32", 1)
    w.add("tokenizer.ggml.add_bos_token", "bool", True)
    w.add("tokenizer.ggml.add_eos_token", "bool", False)
    w.add("tokenizer.chat_template", "str",
          "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ bos_token }}"
          "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<\uff5cUser\uff5c>' + m['content'] }}"
          "{% elif m['role'] == 'assistant' %}{{ '<\uff5cAssistant\uff5c>' + m['content'] + '<\uff5cend\u2581of\u2581sentence\uff5c>' }}"
          "{% elif m['role'] == 'system' %}{{ m['content'] }}{% endif %}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c>' }}{% endif %}")
    return w


def nbytes(shape, kind):
    _, per, size = TYPES[kind]
    n = 1
    for s in shape:
        n *= s
    return n // per * size


def write_file(path, w, items, seed, pools, p, layout, sparse=False):
    rng = np.random.default_rng(seed)
    head = bytearray(struct.pack("<IIQQ", 0x46554747, 3, len(items), w.count)) + w.kv
    offset = 0
    for name, shape, kind in items:
        raw = name.encode()
        head += struct.pack("<Q", len(raw)) + raw + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", s) for s in shape)
        head += struct.pack("<IQ", TYPES[kind][0], offset)
        offset += -(-nbytes(shape, kind) // ALIGN) * ALIGN
    head += b"\0" * (-len(head) % ALIGN)
    with open(path, "wb") as f:
        f.write(head)
        if sparse:
            f.truncate(len(head) + offset)
            return
        for name, shape, kind in items:
            want = nbytes(shape, kind)
            if len(shape) == 1:
                if name.startswith(("rope_factors_", "rope_freqs")):
                    data = (1.0 + np.arange(shape[0]) / shape[0]).astype(np.float32)
                elif name.endswith("_norm.weight"):
                    data = (1.0 + 0.05 * rng.standard_normal(shape[0])).astype(np.float32)
                else:
                    data = (0.05 * rng.standard_normal(shape[0])).astype(np.float32)
                f.write(data.tobytes())
                left = 0
            elif layout == "all" and name.endswith(("attn_kv_b.weight", "attn_k_b.weight", "attn_v_b.weight")):
                if "attn_kv_b" in name:  # (heads, nope + v, kv_lora); the other two hold the same numbers
                    kv_b = rng.standard_normal((p["heads"], p["nope"] + p["v"], p["kv_lora"])).astype(np.float32) / math.sqrt(p["kv_lora"])
                    f.write(encode(kv_b, kind))
                elif "attn_k_b" in name:
                    f.write(encode(np.ascontiguousarray(kv_b[:, :p["nope"]].transpose(0, 2, 1)), kind))
                else:
                    f.write(encode(np.ascontiguousarray(kv_b[:, p["nope"]:]), kind))
            else:
                # an embedding row is looked up, not summed over: give it unit spread
                vocab = name in ("token_embd.weight", "output.weight")
                size = TYPES[kind][2]
                if vocab and kind not in ("f32", "f16", "bf16"):  # no two rows alike, so no tied logits
                    pool = block_pool(kind, 1 if name == "token_embd.weight" else shape[0], rng, want // size)
                    f.write(pool.data)
                    f.write(b"\0" * (-want % ALIGN))
                    continue
                key = (kind, 1 if name == "token_embd.weight" else shape[0])
                if key not in pools:
                    pools[key] = block_pool(kind, key[1], rng)
                pool = pools[key]
                left = want
                while left:
                    start = int(rng.integers(0, len(pool) // size // 2)) * size
                    take = min(left, len(pool) - start)
                    f.write(pool[start:start + take].data)
                    left -= take
            f.write(b"\0" * (-want % ALIGN))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--preset", choices=PRESETS, default="tiny")
    ap.add_argument("--type", choices=TYPES, default="q4_0", help="type of every matrix but the router's")
    ap.add_argument("--layout", choices=("joint", "absorbed", "all"), default="joint",
                    help="joint: attn_kv_b as converters wrote it at first; absorbed: attn_k_b and attn_v_b, as mainline writes it now")
    ap.add_argument("--split", type=int, default=1, help="number of files")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--sparse", action="store_true", help="no weights: the file has its full length but takes no disk")
    for k in ("layers", "experts", "used", "vocab", "heads", "ctx", "embd", "q_lora", "dense", "ff", "ff_exp", "groups", "groups_used", "nextn"):
        ap.add_argument("--" + k.replace("_", "-"), type=int, dest=k)
    ap.add_argument("-o", required=True, metavar="FILE.gguf")
    o = ap.parse_args()
    p = dict(PRESETS[o.preset])
    for k in ("layers", "experts", "used", "vocab", "heads", "ctx", "embd", "q_lora", "dense", "ff", "ff_exp", "groups", "groups_used", "nextn"):
        if getattr(o, k) is not None:
            p[k] = getattr(o, k)
    if p["experts"] and p["layers"] <= p["dense"]:
        ap.error(f"{p['layers']} layers, of which {p['dense']} dense: no experts are left (give --dense)")
    if p["groups"] > 1 and p["experts"] < 2 * p["groups"]:
        ap.error(f"{p['experts']} experts in {p['groups']} groups: a group needs two at least (give --groups)")
    if o.layout == "all" and o.type not in ("f32", "f16", "bf16", "q8_0"):
        ap.error("--layout all is for f32, f16, bf16 and q8_0")
    items = list(tensors(p, o.type, o.layout))
    name = f"random {o.preset} {p['layers']}L {o.type}"
    pools = {}
    if o.split == 1:
        write_file(o.o, metadata(p, o.type, o.layout, name), items, o.seed, pools, p, o.layout, o.sparse)
        files = [o.o]
    else:
        files, per = [], -(-len(items) // o.split)
        for i in range(o.split):
            w = metadata(p, o.type, o.layout, name) if i == 0 else Writer()
            w.add("split.no", "u16", i)
            w.add("split.count", "u16", o.split)
            w.add("split.tensors.count", "i32", len(items))
            path = f"{o.o.removesuffix('.gguf')}-{i + 1:05d}-of-{o.split:05d}.gguf"
            write_file(path, w, items[i * per:(i + 1) * per], o.seed + i, pools, p, o.layout, o.sparse)
            files.append(path)
    n = sum(int(np.prod(s, dtype=np.int64)) for _, s, _ in items)
    print(f"{n / 1e9:.3f} B weights, {sum(os.path.getsize(f) for f in files) / 2**20:.1f} MiB in {len(files)} file(s)", file=sys.stderr)


if __name__ == "__main__":
    main()
