"""The models of cases.py in numpy, in f64, from nothing but what their GGUF files hold.

Independent of `transformers`: where both agree, names, shapes, keys and rope conventions of the files are
right. `change` names a fault to put in on purpose, which shows how far each part moves the logits.
"""
import math

import gguf
import numpy as np

import seeded
from families import FAMILIES


class Tensors(dict):
    """Remembers which were read: a model of which some are not is not one of these."""

    def __init__(self, tensors):
        super().__init__(tensors)
        self.unread = set(tensors)

    def update(self, tensors):
        super().update(tensors)
        self.unread |= set(tensors)

    def __getitem__(self, name):
        self.unread.discard(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        return self[name] if name in self else default


class File:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.keys = {k: f.contents() for k, f in reader.fields.items()}
        self.tensors = Tensors({t.name: self._values(t) for t in reader.tensors})
        if seeded.PREFIX + "seed" in reader.fields:
            self.tensors.update({name: values.astype(np.float64) for name, values in seeded.read_weights(reader).items()})
        self.arch = self.keys["general.architecture"]

    @staticmethod
    def _values(t):
        shape = tuple(int(n) for n in reversed(t.shape))
        kind = np.int32 if t.tensor_type == gguf.GGMLQuantizationType.I32 else np.float64
        return np.asarray(t.data).reshape(shape).astype(kind)

    def key(self, name, default=None):
        return self.keys.get(f"{self.arch}.{name}", default)


def layer_count(f):
    """Layers that the logits go through: those for further prediction come after them."""
    return f.key("block_count") - f.key("nextn_predict_layers", 0)


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def swiglu(x, gate, up, down):
    g = x @ gate.T
    return (g / (1 + np.exp(-g)) * (x @ up.T)) @ down.T


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rope_frequencies(f, dims, change):
    base = f.key("rope.freq_base")
    pair = np.arange(dims // 2)
    freqs = base ** (-2.0 * pair / dims)
    if "rope_freqs.weight" in f.tensors and change != "no-rope-factors":
        freqs = freqs / f.tensors["rope_freqs.weight"]
    if "rope_factors_short.weight" in f.tensors and change != "no-rope-factors":
        freqs = freqs / f.tensors["rope_factors_short.weight"]
    if f.key("rope.scaling.type") == "yarn" and change != "no-yarn":
        factor, trained = f.key("rope.scaling.factor"), f.key("rope.scaling.original_context_length")

        def turning(times):  # the pair that turns this often over the trained context
            return dims * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(base))
        fast, slow = f.key("rope.scaling.yarn_beta_fast", 32), f.key("rope.scaling.yarn_beta_slow", 1)
        low, high = max(math.floor(turning(fast)), 0), min(math.ceil(turning(slow)), dims - 1)
        ramp = np.clip((pair - low) / max(high - low, 1e-3), 0, 1)
        if change == "linear-for-yarn":
            ramp = np.ones_like(ramp)
        freqs = freqs * (1 - ramp) + freqs / factor * ramp
    return freqs


def rope(x, freqs, neighbours, change):
    """x: (heads, tokens, dims). Turns neighbours (2i, 2i+1), or the halves (i, i + dims/2)."""
    if change == "no-rope":
        return x
    if change == "other-rope-pairs":
        neighbours = not neighbours
    angle = np.arange(x.shape[1])[:, None] * freqs
    c, s = np.cos(angle), np.sin(angle)
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if neighbours else (x[..., :half], x[..., half:])
    return np.concatenate([a * c - b * s, a * s + b * c], -1)  # pair order does not matter to q.k


def window_of(f, layer):
    """Tokens that a token sees, its own included; None: all before it."""
    pattern = f.key("attention.sliding_window_pattern")
    return f.key("attention.sliding_window") if pattern is None or pattern[layer] else None


def attend(q, k, v, scale, change, window=None):
    """Causal attention; q (heads, tokens, dims), k and v one for every so many heads."""
    heads, tokens, _ = q.shape
    shared = heads // k.shape[0]
    out = np.empty((tokens, heads, v.shape[-1]))
    for h in range(heads):
        for at in range(0, tokens, 512):
            to = min(at + 512, tokens)
            scores = q[h, at:to] @ k[h // shared, :to].T * scale
            if change == "uniform-attention":
                scores *= 0
            scores[np.arange(to)[None] > np.arange(at, to)[:, None]] = -np.inf
            if window and change != "no-window":
                scores[np.arange(to)[None] <= np.arange(at, to)[:, None] - window] = -np.inf
            out[at:to, h] = softmax(scores) @ v[h // shared, :to]
    return out.reshape(tokens, -1)


def attention_mla(f, b, x, change):
    t, eps = f.tensors, f.key("attention.layer_norm_rms_epsilon")
    heads, rank, turned = f.key("attention.head_count"), f.key("attention.kv_lora_rank"), f.key("rope.dimension_count")
    key = f.key("attention.key_length_mla", f.key("attention.key_length"))
    value = f.key("attention.value_length_mla", f.key("attention.value_length", x.shape[-1] // heads))
    nope = key - turned
    if b + "attn_q.weight" in t:
        q = x @ t[b + "attn_q.weight"].T
    else:
        q = rms_norm(x @ t[b + "attn_q_a.weight"].T, t[b + "attn_q_a_norm.weight"], eps) @ t[b + "attn_q_b.weight"].T
    q = q.reshape(-1, heads, key).swapaxes(0, 1)
    latent = x @ t[b + "attn_kv_a_mqa.weight"].T
    c, k_rope = rms_norm(latent[:, :rank], t[b + "attn_kv_a_norm.weight"], eps), latent[None, :, rank:]
    if b + "attn_k_b.weight" in t:
        k_b = t[b + "attn_k_b.weight"].reshape(heads, rank, nope)
        v_b = t[b + "attn_v_b.weight"].reshape(heads, value, rank)
        if b + "attn_kv_b.weight" in t:
            joint = t[b + "attn_kv_b.weight"].reshape(heads, nope + value, rank)
            assert np.array_equal(joint[:, :nope], k_b.swapaxes(1, 2)) and np.array_equal(joint[:, nope:], v_b)
    else:
        joint = t[b + "attn_kv_b.weight"].reshape(heads, nope + value, rank)
        k_b, v_b = joint[:, :nope].swapaxes(1, 2), joint[:, nope:]
    k_nope, v = c @ k_b, c @ v_b.swapaxes(1, 2)
    freqs = rope_frequencies(f, turned, change)
    neighbours = f.arch != "minicpm3"
    q_rope, k_rope = rope(q[..., nope:], freqs, neighbours, change), rope(k_rope, freqs, neighbours, change)
    q = np.concatenate([q[..., :nope], q_rope], -1)
    if (temperature := f.key("attention.temperature_scale", 0.0)) and change != "no-temperature":
        place = np.floor(np.arange(len(x)) / f.key("attention.temperature_length"))
        q = q * (1 + temperature * np.log(place + 1))[:, None]
    k = np.concatenate([k_nope, np.broadcast_to(k_rope, (heads,) + k_rope.shape[1:])], -1)
    stretch = 1.0
    if f.key("rope.scaling.type") == "yarn" and change != "no-mscale":
        stretch += f.key("rope.scaling.yarn_log_multiplier", 0.0) * math.log(f.key("rope.scaling.factor"))
    return attend(q, k, v, stretch * stretch / math.sqrt(key), change) @ t[b + "attn_output.weight"].T


def projections(f, b, x):
    """q, k and v of all heads of a row; files may hold them in one matrix."""
    t = f.tensors
    if b + "attn_qkv.weight" in t:
        key = t[b + "attn_output.weight"].shape[1] // f.key("attention.head_count")
        q, k = f.key("attention.head_count") * key, f.key("attention.head_count_kv") * key
        both = x @ t[b + "attn_qkv.weight"].T + t.get(b + "attn_qkv.bias", 0)
        return both[:, :q], both[:, q:q + k], both[:, q + k:]
    return tuple(x @ t[f"{b}attn_{part}.weight"].T + t.get(f"{b}attn_{part}.bias", 0) for part in "qkv")


def attention_plain(f, b, x, change):
    t, eps = f.tensors, f.key("attention.layer_norm_rms_epsilon")
    counts = f.key("attention.head_count"), f.key("attention.head_count_kv")
    *pair, v = projections(f, b, x)
    norms = [t.get(f"{b}attn_{part}_norm.weight") for part in "qk"] if change != "no-qk-norm" else [None, None]

    def heads(values, count):
        return values.reshape(len(x), count, -1).swapaxes(0, 1)

    def normalised(values):
        return [rms_norm(y, w, eps) for y, w in zip(values, norms)]

    length = pair[0].shape[-1] // counts[0]
    of_heads = norms[0] is not None and len(norms[0]) == length
    if norms[0] is not None and not of_heads:  # of rows
        pair = normalised(pair)
    pair = [heads(y, count) for y, count in zip(pair, counts)]
    turned = f.key("rope.dimension_count", length)
    neighbours = any(one.neighbours for one in FAMILIES.values() if one.architecture == f.arch)

    def rotated(values):
        if f.arch == "smollm3" and int(b.split(".")[1]) % 4 == 3:
            return values
        freqs = rope_frequencies(f, turned, change)
        return [np.concatenate([rope(y[..., :turned], freqs, neighbours, change), y[..., turned:]], -1) for y in values]

    # A norm of heads: after the rotary embedding in Hunyuan, before it in all others. Rope's own order of pairs does
    # not matter to q.k, but to the factors of a norm that follows.
    if f.arch.startswith("hunyuan"):
        assert not neighbours and turned == length
        pair = normalised(rotated(pair)) if of_heads else rotated(pair)
    else:
        pair = rotated(normalised(pair) if of_heads else pair)
    if f.key("rope.scaling.type") == "yarn":
        grown = 0.1 * math.log(f.key("rope.scaling.factor"))
        stretch = (1 + grown) / (1 if change == "no-mscale" else 1 + grown * f.key("rope.scaling.yarn_log_multiplier", 0.0))
        pair = [np.concatenate([y[..., :turned] * stretch, y[..., turned:]], -1) for y in pair]
    if f.key("attention.temperature_scale") and change != "no-temperature":
        times = np.floor(np.arange(len(x)) / f.key("rope.scaling.original_context_length"))
        pair[0] = pair[0] * (1 + f.key("attention.temperature_scale") * np.log(times + 1))[:, None]
    scale = f.key("attention.scale", 1 / math.sqrt(length))
    window = window_of(f, int(b.split(".")[1]))
    return attend(*pair, heads(v, counts[1]), scale, change, window) @ t[b + "attn_output.weight"].T + t.get(b + "attn_output.bias", 0)


def route(f, b, x, change):
    """(weights, which) of the experts of each token."""
    t = f.tensors
    logits = x @ t[b + "ffn_gate_inp.weight"].T
    default = 2 if b + "exp_probs_b.bias" in t and f.arch != "ernie4_5-moe" else 1
    sigmoid = f.key("expert_gating_func", default) == 2
    if change == "other-gating":
        sigmoid = not sigmoid
    scores = 1 / (1 + np.exp(-logits)) if sigmoid else softmax(logits)
    choice = scores
    if b + "exp_probs_b.bias" in t and change != "no-selection-bias":
        choice = scores + t[b + "exp_probs_b.bias"]
        if change == "bias-in-weights":
            scores = choice
    groups, used = f.key("expert_group_count", 1), f.key("expert_group_used_count", 1)
    if groups > 1 and change != "no-groups":
        by_group = np.sort(choice.reshape(len(x), groups, -1), -1)
        best_two = sigmoid if change != "other-group-score" else not sigmoid
        worth = by_group[..., -2:].sum(-1) if best_two else by_group[..., -1]
        out = np.argsort(-worth, -1, kind="stable")[:, used:]
        choice = choice.reshape(len(x), groups, -1).copy()
        choice[np.arange(len(x))[:, None], out] = -np.inf
        choice = choice.reshape(len(x), -1)
    which = np.argsort(-choice, -1, kind="stable")[:, :f.key("expert_used_count")]
    if change == "other-experts":
        which = np.argsort(-choice, -1, kind="stable")[:, 1:1 + f.key("expert_used_count")]
    weights = np.take_along_axis(scores, which, -1)
    norm = f.key("expert_weights_norm", not f.key("attention.kv_lora_rank") and f.arch != "qwen2moe")
    if norm != (change == "other-weight-norm"):
        weights = weights / weights.sum(-1, keepdims=True)
    if change != "no-weight-scale":
        weights = weights * f.key("expert_weights_scale", 1.0)
    return weights, which


def feed_forward(f, b, x, change, routed):
    t = f.tensors
    if b + "ffn_gate_inp.weight" not in t:
        gate = t.get(b + "ffn_gate.weight")
        if gate is not None:
            return swiglu(x, gate, t[b + "ffn_up.weight"], t[b + "ffn_down.weight"])
        return swiglu(x, *np.split(t[b + "ffn_up.weight"], 2), t[b + "ffn_down.weight"])
    weights, which = route(f, b, x, change)
    routed.append(np.sort(which, -1))
    out = np.zeros_like(x)
    for e in range(f.key("expert_count")):
        token, place = np.nonzero(which == e)
        both = t.get(b + "ffn_gate_up_exps.weight")
        gate_up = np.split(both[e], 2) if both is not None else [t[f"{b}ffn_{p}_exps.weight"][e] for p in ("gate", "up")]
        parts = *gate_up, t[b + "ffn_down_exps.weight"][e]
        out[token] += swiglu(x[token], *parts) * weights[token, place, None]
    if b + "ffn_gate_shexp.weight" in t and change != "no-shared-experts":
        shared = swiglu(x, *(t[f"{b}ffn_{p}_shexp.weight"] for p in ("gate", "up", "down")))
        if b + "ffn_gate_inp_shexp.weight" in t:
            shared /= 1 + np.exp(-x @ t[b + "ffn_gate_inp_shexp.weight"])[:, None]
        out += shared
    return out


def logits(f, tokens, change=None):
    """For every position: the logits, the hidden rows that enter each layer and the output (tokens, layers + 1, embd),
    and the experts that each router selects (tokens, routers, used), or None."""
    t, eps = f.tensors, f.key("attention.layer_norm_rms_epsilon")
    # MiniCPM3's files do not say what its configuration does: scale_emb, scale_depth and dim_model_base.
    bare = f.arch == "minicpm3"
    scales = {"embedding_scale": f.key("embedding_scale", 12.0 if bare else 1.0),
              "residual_scale": f.key("residual_scale", 1.4 / math.sqrt(layer_count(f)) if bare else 1.0),
              "logit_scale": f.key("logit_scale", t["token_embd.weight"].shape[1] / 256 if bare else 1.0)}
    scales = {name: 1.0 if change == "no-" + name.replace("_", "-") else value for name, value in scales.items()}
    x = t["token_embd.weight"][tokens] * scales["embedding_scale"]
    residual_scale = scales["residual_scale"]
    hidden, routed = [], []
    for i in range(layer_count(f)):
        b = f"blk.{i}."
        hidden.append(x)
        attention = attention_mla if f.key("attention.kv_lora_rank") else attention_plain
        # In some files the norm before the feed-forward network is called as one after attention.
        before = "ffn_norm" if b + "ffn_norm.weight" in t or b + "post_ffw_norm.weight" in t else "post_attention_norm"

        def normalised(y, name):
            return rms_norm(y, t[b + name + ".weight"], eps) if b + name + ".weight" in t else y

        if change != f"no-attention-{i}":
            given = attention(f, b, normalised(x, "attn_norm"), change)
            x = x + (normalised(given, "post_attention_norm") if before == "ffn_norm" else given) * residual_scale
        if change != f"no-ffn-{i}":
            given = normalised(feed_forward(f, b, normalised(x, before), change, routed), "post_ffw_norm")
            if change == "experts-beside-norm" and b + "ffn_gate_inp.weight" in t:
                x = normalised(x, before)
            x = x + given * residual_scale
    x = rms_norm(x, t["output_norm.weight"], eps)
    hidden.append(x)
    out = x @ t.get("output.weight", t["token_embd.weight"]).T / scales["logit_scale"]
    return out, np.stack(hidden, 1), np.stack(routed, 1) if routed else None
