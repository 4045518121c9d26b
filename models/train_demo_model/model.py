"""A model of the DeepSeek-2 shape: multi-head latent attention, a dense first layer, then routed and shared experts.

Parameters carry the names and the row-major shapes of the GGUF tensors, so export is a copy.
"""
import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 1024
    embd: int = 256
    layers: int = 3
    dense: int = 1       # leading layers without experts
    heads: int = 8
    kv_lora: int = 512
    nope: int = 128
    rope: int = 64
    v: int = 128
    ff: int = 768
    experts: int = 8
    used: int = 2
    shared: int = 1
    ff_exp: int = 256
    ctx: int = 1024
    base: float = 10000.0
    eps: float = 1e-6

    def dict(self):
        return asdict(self)


def noisy(x, amount):
    """x with Gaussian noise of `amount` times its root mean square per row: a stand-in for coarse formats."""
    if not amount:
        return x
    scale = x.detach().square().mean(-1, keepdim=True).sqrt() * amount
    return x + torch.randn_like(x) * scale


def rms_norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rope_table(c, length):
    angle = torch.outer(torch.arange(length).float(), c.base ** (-torch.arange(0, c.rope, 2).float() / c.rope))
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    """Neighbouring pairs (2i, 2i+1) of the last axis, turned by the position's angles."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        self.c, self.routed = c, index >= c.dense
        qk, e = c.nope + c.rope, c.embd
        ones = lambda n: nn.Parameter(torch.ones(n))
        mat = lambda *shape: nn.Parameter(torch.randn(*shape) * 0.7 / math.sqrt(shape[-1]))
        self.attn_norm, self.ffn_norm, self.attn_kv_a_norm = ones(e), ones(e), ones(c.kv_lora)
        self.attn_q = mat(c.heads, qk, e)
        self.attn_kv_a_mqa = mat(c.kv_lora + c.rope, e)
        self.attn_kv_b = mat(c.heads, c.nope + c.v, c.kv_lora)
        self.attn_output = mat(e, c.heads * c.v)
        if self.routed:
            f, s = c.ff_exp, c.ff_exp * c.shared
            self.ffn_gate_inp = mat(c.experts, e)
            self.ffn_gate_exps, self.ffn_up_exps = mat(c.experts, f, e), mat(c.experts, f, e)
            self.ffn_down_exps = mat(c.experts, e, f)
            self.ffn_gate_shexp, self.ffn_up_shexp, self.ffn_down_shexp = mat(s, e), mat(s, e), mat(e, s)
        else:
            self.ffn_gate, self.ffn_up, self.ffn_down = mat(c.ff, e), mat(c.ff, e), mat(e, c.ff)

    def attention(self, x, cos, sin, noise, at):
        c, (b, t, _) = self.c, x.shape
        h = noisy(rms_norm(x, self.attn_norm, c.eps), noise)
        q = F.linear(h, self.attn_q.flatten(0, 1)).view(b, t, c.heads, -1).transpose(1, 2)
        latent, k_pe = F.linear(h, self.attn_kv_a_mqa).split((c.kv_lora, c.rope), -1)
        latent = noisy(rms_norm(latent, self.attn_kv_a_norm, c.eps), noise)
        k_pe = noisy(rotate(k_pe, cos, sin), noise)
        q = noisy(torch.cat((q[..., :c.nope], rotate(q[..., c.nope:], cos, sin)), -1), noise)
        kv = F.linear(latent, self.attn_kv_b.flatten(0, 1)).view(b, t, c.heads, -1).transpose(1, 2)
        k = torch.cat((kv[..., :c.nope], k_pe[:, None].expand(-1, c.heads, -1, -1)), -1)
        # the fused kernel wants values as wide as keys
        out = F.scaled_dot_product_attention(q, k, F.pad(kv[..., c.nope:], (0, c.nope + c.rope - c.v)), is_causal=True)
        out = noisy(out[..., :c.v].transpose(1, 2).reshape(b, t, -1), noise)
        return F.linear(out if at is None else out.flatten(0, 1)[at], self.attn_output)

    def experts(self, h, noise):
        c = self.c
        p = F.linear(h, self.ffn_gate_inp).softmax(-1)
        weight, chosen = p.topk(c.used, -1)
        out = torch.zeros_like(h)
        # unbind, not [e]: its gradient is one stack instead of a full tensor for each expert
        each = zip(self.ffn_gate_exps.unbind(), self.ffn_up_exps.unbind(), self.ffn_down_exps.unbind())
        for e, (gate, up, down) in enumerate(each):
            row, slot = (chosen == e).nonzero(as_tuple=True)
            x = h[row]
            y = F.silu(F.linear(x, gate)) * F.linear(x, up)
            y = F.linear(noisy(y, noise), down) * weight[row, slot, None]
            out = out.index_add(0, row, y)
        share = torch.zeros(c.experts).index_add_(0, chosen.flatten(), torch.ones(chosen.numel())) / chosen.numel()
        self.share = share
        return out, c.experts * (share * p.mean(0)).sum()

    def forward(self, x, cos, sin, noise, at=None):
        """The residual stream after this layer; only its flat positions `at`, if given."""
        x = (x if at is None else x.flatten(0, 1)[at]) + self.attention(x, cos, sin, noise, at)
        h = noisy(rms_norm(x, self.ffn_norm, self.c.eps), noise)
        if not self.routed:
            y = F.silu(F.linear(h, self.ffn_gate)) * F.linear(h, self.ffn_up)
            return x + F.linear(noisy(y, noise), self.ffn_down), x.new_zeros(())
        y = F.silu(F.linear(h, self.ffn_gate_shexp)) * F.linear(h, self.ffn_up_shexp)
        routed, balance = self.experts(h.flatten(0, -2), noise)
        return x + F.linear(noisy(y, noise), self.ffn_down_shexp) + routed.view_as(x), balance


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.token_embd = nn.Parameter(torch.randn(c.vocab, c.embd))
        self.blk = nn.ModuleList(Layer(c, i) for i in range(c.layers))
        self.output_norm = nn.Parameter(torch.ones(c.embd))
        self.output = nn.Parameter(torch.randn(c.vocab, c.embd) * 0.02)
        cos, sin = rope_table(c, c.ctx)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, ids, noise=0.0, at=None):
        """Logits at every position, or at the flat positions `at`; and the load-balance term."""
        t = ids.shape[1]
        x, balance = self.token_embd[ids], 0.0
        for layer in self.blk:
            x, more = layer(x, self.cos[:t], self.sin[:t], noise, at if layer is self.blk[-1] else None)
            balance = balance + more
        return F.linear(noisy(rms_norm(x, self.output_norm, self.c.eps), noise), self.output), balance


@torch.no_grad()
def generate(model, ids, stop, most=200):
    """Greedy continuation of a list of token numbers."""
    out = list(ids)
    while len(out) < min(len(ids) + most, model.c.ctx):
        out.append(int(model(torch.tensor([out]))[0][0, -1].argmax()))
        if out[-1] == stop:
            break
    return out[len(ids):]
