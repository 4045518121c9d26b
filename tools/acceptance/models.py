"""Whole models against the CPU: all lowerings of latent attention and types of cache, and a mixed rig."""

import concurrent.futures
import json
import re

from . import random_model
from .machine import cards_used
from .process import Done
from .report import table

PROMPTS = ["Count from 1 to 10 in French.", "What is the capital of France?"]
LOWERINGS = ("0", "1", "2", "3")
CACHES = ("f16", "bf16", "q8_0", "q4_0")
# Kullback-Leibler divergence from the CPU's prediction, mean and median over tokens. With quantised weights both round activations, by which
# a token's experts may change; a cache of few bits rounds coarsely what differs in the last bit.
LIMITS = {"f16": (0.05, 0.002), "bf16": (0.05, 0.002), "q8_0": (0.05, 0.002), "q4_0": (0.2, 0.02)}


def models(machine, small):
    """(name, file, flags) of the models that are tried; random ones are written."""
    found = []
    if small:
        shape = dict(random_model.SMALL, layers=2, heads=4, vocabulary=512)
        path = machine.work / "random.gguf"
        random_model.write(path, shape, "q8_0")
        return [("random, 4 heads, q8_0", path)]
    found.append(("bundled", machine.model))
    for heads, kind in ((1, "q8_0"), (16, "q4_0"), (128, "f16")):
        path = machine.work / f"random-{heads}.gguf"
        random_model.write(path, dict(random_model.SMALL, heads=heads), kind, seed=heads)
        found.append((f"random, {heads} head{'s' if heads > 1 else ''}, {kind}", path))
    return found


class Comparison:
    """One model, lowering and type of cache, as a prompt or token by token: divergence from the CPU."""

    def __init__(self, machine, text, model, lowering, cache, rows, tokens):
        self.model, self.lowering, self.cache, self.rows = model, lowering, cache, rows
        self.base = machine.work / f"{model[1].stem}-{lowering}-{cache}-{rows}.kld"
        self.flags = ["-m", model[1], "-c", str(tokens), "--chunks", "1", "-mla", lowering, "-ctk", cache, "-ctv", cache, "-ub", str(rows),
                      "--kl-divergence-base", self.base]
        self.text = text

    def expect(self, machine):
        return Done(machine.tessera("perplexity", "--config", machine.configuration(), "-f", self.text, *self.flags), machine.environment, 120)

    def compare(self, machine, configuration, placement, limit):
        return Done(machine.tessera("perplexity", "--config", configuration, "--kl-divergence", *self.flags, *placement), machine.environment, limit)


def value(done, name):
    found = re.search(rf"(?m)^{name} *: *([0-9.]+)", done.out)
    return float(found.group(1)) if found else None


def attention_of(machine, configuration, model, lowering, cache, placement=()):
    """Which kernels compute attention, and where: "flash_attention.cuda on CUDA0"."""
    done = Done(machine.tessera("plan", "--json", "--config", configuration, "-m", model, "-c", "4096", "-mla", lowering, "-ctk", cache, "-ctv", cache,
                                *placement), machine.environment, 120)
    try:
        nodes = json.loads(done.out)["nodes"]
    except (ValueError, KeyError):
        return "?"
    found = []
    for node in nodes:
        if "attention" in node.get("op", ""):
            text = f"{node['kernel'].removesuffix('.cuda')} on {node['device']}"
            if text not in found:
                found.append(text)
    return ", ".join(found)


def is_refusal(done):
    """Said by the program before it computes anything: exit status 1 to 3 with one reason, and no fault of a device."""
    return done.status in (1, 2, 3) and "lost" not in done.err and "failed" not in done.err


def compare_all(machine, report, title, comparisons, configuration, placement, devices):
    """Runs the comparisons; a row each in a table."""
    report.heading(title)
    at_once = 2 if machine.emulated else 4
    rows = []

    kernels = {}

    def one(c):
        if report.left() < 15:
            return c, None, None
        key = (c.model[1], c.lowering, c.cache)
        if key not in kernels:
            kernels[key] = attention_of(machine, configuration, *key, placement)
        if not c.base.exists():
            expected = c.expect(machine)
            if expected.status != 0:
                return c, expected, None
        return c, None, c.compare(machine, configuration, placement, min(180, report.left()))

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        done_all = list(pool.map(one, comparisons))
    for c, expected, done in done_all:
        name = f"{c.model[0]}, -mla {c.lowering}, cache {c.cache}, {'token by token' if c.rows == 1 else 'prompt'}"
        if done is None and expected is None:
            report.leave_out(name)
            continue
        if expected is not None:
            report.fail(f"on the CPU: {name}", expected.all)
            continue
        mean, median, top = (value(done, what) for what in ("Mean KLD", "Median KLD", "Same top p"))
        limits = LIMITS[c.cache]
        used = cards_used(done)
        verdict = "passed"
        if done.status != 0 and is_refusal(done):
            verdict = "refused: " + (done.err.strip().splitlines() or ["?"])[-1][:200]
            report.refused.append(name)
        elif done.status != 0 or mean is None or median is None:
            verdict = "FAILED"
            report.fail(name, done.all)
        elif mean > limits[0] or median > limits[1]:
            verdict = "FAILED"
            report.fail(name, f"divergence: mean {mean}, median {median}; expected at most {limits[0]} and {limits[1]}")
        elif not set(devices) <= used:
            verdict = "FAILED"
            report.fail(name, f"expected work on {', '.join(devices)}; found it on {', '.join(sorted(used)) or 'none'}\n{done.err}")
        rows.append([c.model[0], c.lowering, c.cache, "token by token" if c.rows == 1 else "prompt",
                     "" if mean is None else f"{mean:.6f}", "" if median is None else f"{median:.6f}", "" if top is None else f"{top:.0f} %",
                     kernels[c.model[1], c.lowering, c.cache], verdict])
    report.text(table(["model", "-mla", "cache", "as", "mean KLD", "median", "same token", "attention", ""], rows))
    report.text()


def caches_of(model):
    """All types for the bundled model and that of 16 heads; the others need fewer."""
    return ("f16",) if "1 head," in model[0] else ("f16", "q8_0") if "128 heads" in model[0] else CACHES


def comparisons(machine, small, all_models):
    text = machine.work / "text"
    text.write_text(random_model.text())
    found = []
    for model in all_models:
        for lowering in LOWERINGS if not small else ("0", "1", "3"):
            for cache in caches_of(model) if not small else (("q8_0",) if lowering == "3" else ("f16",)):
                for rows in (512, 1) if not small else (512 if lowering == "3" else 1,):
                    found.append(Comparison(machine, text, model, lowering, cache, rows, 8 if small else 96 if rows > 1 else 24))
    return found


def answers(machine, report, small):
    """The bundled model's answers to questions, to the letter."""
    report.heading("Answers of the bundled model")
    rows = []
    for prompt in PROMPTS[:1] if small else PROMPTS:
        words = ["-m", machine.model, "--temp", "0", "-n", "3" if small else "60", "-p", prompt]
        expected = report.run(f"the CPU's answer to {prompt}", machine.tessera("run", "--config", machine.configuration(), *words), machine.environment, 60)
        rows.append(["CPU", prompt, expected.out.strip().replace("\n", " ")])
        for name in machine.owners():
            done = report.run(f"{name}'s answer to {prompt}", machine.tessera("run", "--config", machine.configuration(name), *words),
                              machine.environment, 180, lambda d: d.status == 0 and d.out.strip() == expected.out.strip() and cards_used(d) - {"CPU"})
            rows.append([name, prompt, done.out.strip().replace("\n", " ")])
    report.text(table(["on", "question", "answer"], rows))
    report.text()


def rig(machine, report, small, all_models):
    """Both plugins and the CPU at once, on one card where both own it."""
    made = machine.rig()
    if not made:
        report.heading("Mixed rig")
        report.text("It takes both plugins; owners of cards here: " + (", ".join(machine.owners()) or "none") + ".\n")
        return
    configuration, devices = made
    where = f"{devices[0]} (cuda_ampere), {devices[1]} (cuda_legacy) and the CPU"
    tried = []
    text = machine.work / "text"
    for model in all_models if small else all_models[:1] + all_models[2:3]:
        for lowering, cache in (("1", "f16"),) if small else (("0", "f16"), ("1", "q8_0"), ("3", "f16")):
            for rows in (1,) if small else (512, 1):
                tried.append(Comparison(machine, text, model, lowering, cache, rows, 8 if small else 96 if rows > 1 else 24))
    # All but the first layer on the two devices, in equal parts; the first and what is left on the CPU.
    layers = "2" if small else "3"
    compare_all(machine, report, f"Mixed rig: {where}", tried, configuration, ["-ts", "1,1", "-ngl", layers], [*devices, "CPU"])
