"""Starting weights that spare a short training its slowest part.

Left to itself, a transformer spends most of a training of a few minutes on finding out that looking up "what came
after this, last time" pays: a head that looks at the previous tokens, and in the next layer one that compares them
with the present ones (an induction head; Olsson et al. 2022). So the model starts with rough versions of both, in
random directions, and training takes it from there. Everything else starts from random numbers.

The residual stream is cut, in a random basis, into one direction common to all tokens, 112 for which token it is,
and 48 + 36 + 28 for which tokens stood one, two and three places before.
"""
import torch

IDENTITY, BEFORE = 112, (48, 36, 28)


@torch.no_grad()
def prepare(model):
    c = model.c
    basis = torch.linalg.qr(torch.randn(c.embd, c.embd))[0]
    common, token, earlier = basis[0], basis[1:1 + IDENTITY], basis[1 + IDENTITY:1 + IDENTITY + sum(BEFORE)]
    name = torch.randn(c.vocab, IDENTITY) * (16 / IDENTITY ** 0.5)
    model.token_embd.copy_(name @ token + 6 * common + 0.2 * torch.randn(c.vocab, c.embd))

    for layer in model.blk:  # the latent begins as a rotated copy of its input
        layer.attn_kv_a_mqa[:c.kv_lora] = torch.linalg.qr(torch.randn(c.kv_lora, c.embd))[0]

    # first layer, heads 0 to 2: one, two and three places back, by rotary angles of a constant query and key
    first, pairs = model.blk[0], 8
    latent = first.attn_kv_a_mqa[:c.kv_lora]
    theta = c.base ** (-torch.arange(0, c.rope, 2).float() / c.rope)[:pairs]
    first.attn_kv_a_mqa[c.kv_lora:] *= 0.1
    first.attn_kv_a_mqa[c.kv_lora:c.kv_lora + 2 * pairs:2] += 1.4 * common
    for head, (width, place) in enumerate(zip(BEFORE, earlier.split(BEFORE))):
        back = -(head + 1) * theta
        first.attn_q[head] *= 0.1
        first.attn_q[head, c.nope:c.nope + 2 * pairs:2] += 1.4 * back.cos()[:, None] * common
        first.attn_q[head, c.nope + 1:c.nope + 2 * pairs:2] += 1.4 * back.sin()[:, None] * common
        first.attn_kv_b[head, c.nope:c.nope + width] = token[:width] @ latent.T
        first.attn_output[:, head * c.v:head * c.v + width] = 0.8 * place.T

    # second layer, heads 0 and 1: the present token and the two before it, against the three before each place;
    # what stands at the place found is written where the output reads
    second = model.blk[1]
    latent = second.attn_kv_a_mqa[:c.kv_lora]
    one, two, _ = earlier.split(BEFORE)
    now = torch.cat((token[:BEFORE[0]], one[:BEFORE[1]], two[:BEFORE[2]]))
    for head, gains in enumerate(((1.7, 1.7, 1.7), (2.4, 2.0, 0.4))):
        gain = torch.cat([torch.full((w,), g) for w, g in zip(BEFORE, gains)])
        second.attn_q[head] *= 0.1
        second.attn_q[head, :IDENTITY] += now
        second.attn_kv_b[head] *= 0.1
        second.attn_kv_b[head, :IDENTITY] += gain[:, None] * earlier @ latent.T
        second.attn_kv_b[head, c.nope:c.nope + IDENTITY] += token @ latent.T
        second.attn_output[:, head * c.v:head * c.v + IDENTITY] = 1.0 * earlier.T
    model.output += 0.03 * name @ earlier
