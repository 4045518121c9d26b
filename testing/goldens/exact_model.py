"""A model of the DeepSeek-2/3 family in double precision: what it predicts, and by how much its experts are chosen, where nothing is rounded but the
rows of the cache. For small models; needs numpy and gguf.
"""

import dataclasses
import pathlib
import sys

import gguf
import numpy

sys.path.append(str(pathlib.Path(__file__).parent / "record_goldens"))
import numpy_models  # noqa: E402


@dataclasses.dataclass
class Choice:
    """The experts of a token in a layer, and by how much a score decided that it is these."""

    layer: int
    token: int
    experts: tuple
    others: list  # (gap, experts): what would be chosen if the closest pair of groups, or of experts, were in the other order


def in_f16(rows):
    return rows.astype(numpy.float16).astype(numpy.float64)


def in_bf16(rows):
    bits = rows.astype(numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & numpy.uint32(0xFFFF0000)).view(numpy.float32).astype(numpy.float64)


CACHES = {"f32": lambda rows: rows, "f16": in_f16, "bf16": in_bf16}


def log_probabilities(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(-1, keepdims=True))


def divergence(p, q):
    """KL of each row of log probabilities, neither of which need sum to exactly one."""
    p, q = log_probabilities(p), log_probabilities(q)
    return (numpy.exp(p) * (p - q)).sum(-1)


class ExactModel:
    def __init__(self, path, cache="f32", expanded=False):
        """cache: a key of CACHES, as what rows are cached; expanded: keys and values of each head (-mla 0), not the latent row."""
        reader = gguf.GGUFReader(path)
        self.tensors = {}
        for t in reader.tensors:
            values = t.data if t.tensor_type.name in ("F16", "F32") else gguf.quants.dequantize(t.data, t.tensor_type)
            self.tensors[t.name] = values.astype(numpy.float64).reshape([int(n) for n in reversed(t.shape)])
        self.fields = reader.fields
        self.cached, self.expanded = CACHES[cache], expanded
        self.layers, self.heads = self.key("block_count"), self.key("attention.head_count")
        self.rotary, self.latent = self.key("rope.dimension_count"), self.key("attention.kv_lora_rank")
        self.nope, self.v = self.key("attention.key_length") - self.rotary, self.key("attention.value_length")
        self.groups, self.groups_used = self.key("expert_group_count", 1), self.key("expert_group_used_count", 1)
        self.used, self.sigmoid = self.key("expert_used_count"), self.key("expert_gating_func") == 2
        self.scale = (1 + self.key("rope.scaling.yarn_log_multiplier") * numpy.log(self.key("rope.scaling.factor"))) ** 2
        self.scale /= numpy.sqrt(self.nope + self.rotary)
        self.frequencies = numpy_models.rope_frequencies(self, self.rotary, None)

    def key(self, name, otherwise=None):
        field = self.fields.get("deepseek2." + name)
        return otherwise if field is None else field.contents()

    def weight(self, layer, name):
        return self.tensors.get(f"blk.{layer}.{name}.weight")

    def norm(self, x, weight):
        return numpy_models.rms_norm(x, weight, self.key("attention.layer_norm_rms_epsilon"))

    def rotate(self, x):
        """x: tokens, heads, rotary. The result has first of all pairs before second ones, which products of two such do not see."""
        return numpy_models.rope(x.swapaxes(0, 1), self.frequencies, True, None).swapaxes(0, 1)

    def attention(self, layer, x):
        n, w = len(x), lambda name: self.weight(layer, name)
        if w("attn_q_a") is None:
            q = x @ w("attn_q").T
        else:
            q = self.norm(x @ w("attn_q_a").T, w("attn_q_a_norm")) @ w("attn_q_b").T
        q = q.reshape(n, self.heads, -1)
        kv = x @ w("attn_kv_a_mqa").T
        row = self.norm(kv[:, : self.latent], w("attn_kv_a_norm"))
        turned = self.cached(self.rotate(kv[:, None, self.latent :]))[:, 0]
        if not self.expanded:
            row = self.cached(row)
        both = numpy.einsum("hdc,nc->nhd", w("attn_kv_b").reshape(self.heads, self.nope + self.v, self.latent), row)
        if self.expanded:
            both = self.cached(both)
        scores = numpy.einsum("nhd,mhd->hnm", q[..., : self.nope], both[..., : self.nope])
        scores += numpy.einsum("nhd,md->hnm", self.rotate(q[..., self.nope :]), turned)
        scores = numpy.where(numpy.tri(n, dtype=bool), scores * self.scale, -numpy.inf)
        shares = numpy.exp(log_probabilities(scores))
        return numpy.einsum("hnm,mhd->nhd", shares, both[..., self.nope :]).reshape(n, -1) @ w("attn_output").T

    def choose(self, scores):
        """The experts of a token, best first, and the two ways in which they are almost others."""
        size = len(scores) // self.groups
        grouped = numpy.sort(scores.reshape(self.groups, size), 1)[:, ::-1]
        group = grouped[:, 0] + grouped[:, 1] if self.sigmoid and size > 1 else grouped[:, 0]
        order = numpy.argsort(-group, kind="stable")

        def best(groups):
            allowed = numpy.where(numpy.isin(numpy.arange(len(scores)) // size, groups), scores, -numpy.inf)
            return numpy.argsort(-allowed, kind="stable"), allowed

        def of(experts):
            return tuple(int(e) for e in experts)

        experts, allowed = best(order[: self.groups_used])
        last, following = experts[self.used - 1], experts[self.used]
        others = [(allowed[last] - allowed[following], of([*experts[: self.used - 1], following]))]
        if self.groups_used < self.groups:
            last, following = order[self.groups_used - 1], order[self.groups_used]
            swapped, _ = best([*order[: self.groups_used - 1], following])
            others.append((group[last] - group[following], of(swapped[: self.used])))
        return of(experts[: self.used]), others

    def experts(self, layer, x, forced, choices):
        logits = x @ self.weight(layer, "ffn_gate_inp").T
        shares = 1 / (1 + numpy.exp(-logits)) if self.sigmoid else numpy.exp(log_probabilities(logits))
        bias = self.tensors.get(f"blk.{layer}.exp_probs_b.bias", 0)
        stacks = [self.weight(layer, f"ffn_{part}_exps") for part in ("gate", "up", "down")]
        sums = numpy_models.swiglu(x, *(self.weight(layer, f"ffn_{part}_shexp") for part in ("gate", "up", "down")))
        for token, share in enumerate(shares):
            chosen, others = self.choose(share + bias)
            chosen = forced.get((layer, token), chosen)
            choices.append(Choice(layer, token, chosen, others))
            weights = share[list(chosen)]
            if self.key("expert_weights_norm"):
                weights = weights / weights.sum()
            for expert, weight in zip(chosen, weights * self.key("expert_weights_scale")):
                sums[token] += weight * numpy_models.swiglu(x[token], *(stack[expert] for stack in stacks))
        return sums

    def predict(self, tokens, forced={}):
        """Log probabilities after each token, and a Choice for each layer of experts and token; forced: experts of (layer, token)."""
        x, choices = self.tensors["token_embd.weight"][tokens], []
        for layer in range(self.layers):
            x = x + self.attention(layer, self.norm(x, self.weight(layer, "attn_norm")))
            normed = self.norm(x, self.weight(layer, "ffn_norm"))
            if layer < self.key("leading_dense_block_count"):
                x = x + numpy_models.swiglu(normed, *(self.weight(layer, f"ffn_{part}") for part in ("gate", "up", "down")))
            else:
                x = x + self.experts(layer, normed, forced, choices)
        output = self.tensors["output.weight"]
        return log_probabilities(self.norm(x, self.tensors["output_norm.weight"]) @ output.T), choices
