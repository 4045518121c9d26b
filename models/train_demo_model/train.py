#!/usr/bin/env python3
"""Train the demo model. Stops by itself; run again with the same --out to resume.

    python3 train.py --out /tmp/demo            # 1 million tokens
"""
import argparse
import json
import os
import random
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: waiting threads must not spin on a shared machine

import torch
import torch.nn.functional as F

import corpus
import export
import start
import tokenizer
from model import Config, Model

# (share of the training at which it begins, tokens in a sequence, share of dialogues about keys)
STAGES = [(0.0, 128, 0.3), (0.4, 256, 0.25), (0.8, 640, 0.7)]
WEIGHTS = {"count": 3.5, "arithmetic": 2.5, "capital": 1.0, "copy": 1.0, "talk": 1.5}
STEP_TOKENS = 2560


def orthogonalised(g, steps=5):
    """Newton-Schulz iteration of Muon (Jordan 2024) on the last two axes: singular values towards one."""
    flip = g.shape[-2] > g.shape[-1]
    x = g.mT if flip else g
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if flip else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.95, decay=0.02):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                update = orthogonalised(p.grad.lerp(m, group["momentum"]))
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(update, alpha=-group["lr"] * 0.2 * max(p.shape[-2:]) ** 0.5)  # the step of AdamW, in RMS


def optimizers(model, lr):
    matrices, rest = [], []
    for name, p in model.named_parameters():
        # routed experts see few tokens a step and are many: Muon would cost more there than it brings
        plain = p.ndim < 2 or name in ("token_embd", "output") or "gate_inp" in name or "_exps" in name
        (rest if plain else matrices).append(p)
    return [Muon(matrices, lr), torch.optim.AdamW(rest, lr, betas=(0.9, 0.97), weight_decay=0.0)]


class Threads:
    """One thread or all, whichever was faster of late: beside other work, one thread can beat two that wait for each other."""

    def __init__(self, most):
        self.rate, self.most, self.now = {1: 0.0, most: 0.0}, most, most

    def choose(self, step):
        self.now = max(self.rate, key=self.rate.get)
        for i, n in enumerate(self.rate):  # look at each again now and then
            if step % 12 == i:
                self.now = n
        torch.set_num_threads(self.now)

    def note(self, rate):
        old = self.rate[self.now]
        self.rate[self.now] = rate if not old else 0.5 * old + 0.5 * rate


class Batches:
    """Sequences of whole dialogues; targets outside answers are -100."""

    def __init__(self, vocabulary, seed):
        self.t, self.rng = vocabulary, random.Random(seed)

    def sequence(self, length, share):
        rng = self.rng
        turns = corpus.dialogue(rng, int(length * rng.choice((0.2, 0.4, 0.65))), WEIGHTS, share)
        system = rng.choice(corpus.SYSTEM) if rng.random() < 0.1 else ""
        ids, owner = tokenizer.encode_dialogue(self.t, turns, system)
        while len(ids) <= length:
            turns.append(corpus.task(rng, WEIGHTS))
            more, who = tokenizer.encode_dialogue(self.t, turns[-1:])
            ids += more[1:]
            owner += [len(turns) - 1 if w == 0 else -1 for w in who[1:]]
        names = list(corpus.TASKS) + ["note", "key"]
        label = [names.index(turns[w][0]) if w >= 0 else -1 for w in owner]
        return ids[:length + 1], label[1:length + 1]

    def next(self, length, share):
        rows = [self.sequence(length, share) for _ in range(max(1, STEP_TOKENS // length))]
        ids, label = torch.tensor([r[0] for r in rows]), torch.tensor([r[1] for r in rows])
        return ids[:, :-1], ids[:, 1:], label


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, required=True, help="folder for the vocabulary, checkpoints, log and model")
    ap.add_argument("--tokens", type=float, default=1.0e6, help="length of the training; may be changed on resuming")
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--noise", type=float, default=0.02, help="relative noise on activations and cache in the last quarter")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    o = ap.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    o.out.mkdir(parents=True, exist_ok=True)

    path = o.out / "vocabulary.json"
    if not path.exists():
        tokenizer.train(corpus.everything(o.seed), Config().vocab).save(str(path))
    vocabulary = tokenizer.load(path)
    model = Model(Config())
    opts = optimizers(model, o.lr)
    names = list(corpus.TASKS) + ["note", "key"]
    done = dict(tokens=0, steps=0, seconds=0.0, cpu_seconds=0.0)
    checkpoint = o.out / "checkpoint.pt"
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        for opt, state in zip(opts, kept["opts"]):
            opt.load_state_dict(state)
        done = kept["done"]
    else:
        start.prepare(model)
        export.write(model, vocabulary, o.out / "early.gguf")
    batches = Batches(vocabulary, (o.seed << 32) + done["steps"])
    log = open(o.out / "log.txt", "a", buffering=1)
    print(f"# {sum(p.numel() for p in model.parameters()) / 1e6:.2f} M weights, resuming at {done}", file=log)

    def save():
        torch.save(dict(model=model.state_dict(), opts=[x.state_dict() for x in opts], done=done), str(checkpoint) + ".new")
        os.replace(str(checkpoint) + ".new", checkpoint)
        export.write(model, vocabulary, o.out / "early.gguf")
        (o.out / "cost.json").write_text(json.dumps(done | dict(threads=o.threads), indent=1) + "\n")

    threads = Threads(o.threads)
    saved, hit, seen, losses = time.time(), torch.zeros(len(names)), torch.zeros(len(names)), []
    while done["tokens"] < o.tokens:
        threads.choose(done["steps"])
        begin, cpu, at = time.time(), time.process_time(), done["tokens"] / o.tokens
        _, length, share = [s for s in STAGES if s[0] <= at][-1]
        rate = min(1.0, (done["steps"] + 1) / 25) * min(1.0, max(0.02, (1 - at) / 0.35))
        for opt in opts:
            for group in opt.param_groups:
                group["lr"] = o.lr * rate
        ids, target, label = batches.next(length, share)
        where = (label.flatten() >= 0).nonzero()[:, 0]
        logits, balance = model(ids, o.noise if at > 0.75 else 0.0, where)
        wanted, kind = target.flatten()[where], label.flatten()[where]
        loss = F.cross_entropy(logits, wanted)
        for opt in opts:
            opt.zero_grad()
        (loss + 0.01 * balance).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts:
            opt.step()
        right = (logits.detach().argmax(-1) == wanted).float()
        hit.index_add_(0, kind, right)
        seen.index_add_(0, kind, torch.ones_like(right))
        losses.append(loss.item())
        done["steps"] += 1
        done["tokens"] += ids.numel()
        done["seconds"] += time.time() - begin
        done["cpu_seconds"] += time.process_time() - cpu
        threads.note(ids.numel() / (time.time() - begin))
        if done["steps"] % 25 == 0:
            rights = " ".join(f"{n} {h / max(s, 1):.3f}" for n, h, s in zip(names, hit.tolist(), seen.tolist()))
            print(f"{done['steps']} {done['tokens'] / 1e6:.2f}M {done['seconds']:.0f}s T{length} loss {sum(losses) / len(losses):.3f} | {rights}"
                  f" | share {max(float(l.share.max()) for l in model.blk if l.routed):.2f}"
                  f" | tokens/s by threads {({n: round(r) for n, r in threads.rate.items()})}", file=log)
            losses.clear()
            hit.zero_()
            seen.zero_()
        if time.time() - saved > 120:
            save()
            saved = time.time()
    save()
    print("# finished", done, file=log)


if __name__ == "__main__":
    main()
