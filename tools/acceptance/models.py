"""Whole models against the CPU: all lowerings of latent attention and types of cache, and a mixed rig."""

import concurrent.futures
import json
import os
import pathlib
import random
import re
import typing

from . import random_model
from .machine import cards_used
from .process import Done
from .report import table
from .scale import CACHES

BUNDLED_LAYERS = 3
# Kullback-Leibler divergence from the CPU's prediction, mean and median over tokens. With quantised weights both round activations, by which
# a token's experts may change; a cache of few bits rounds coarsely what differs in the last bit.
LIMITS = {"f16": (0.05, 0.002), "bf16": (0.05, 0.002), "q8_0": (0.05, 0.002), "q4_0": (0.2, 0.02)}


class Model(typing.NamedTuple):
    name: str
    path: pathlib.Path
    caches: tuple
    layers: int


def text_for(machine):
    return machine.work / "text"


def models(machine, scale):
    """The models that are tried; random ones are written, and the text that all of them read."""
    text_for(machine).write_text(random_model.text())
    found = [Model("bundled", machine.model, CACHES, BUNDLED_LAYERS)] if scale.bundled else []
    for model in scale.random_models:
        path = machine.work / f"random-{model.heads}.gguf"
        random_model.write(path, model.shape, model.kind, seed=model.heads)
        name = f"random, {model.heads} head{'s' if model.heads > 1 else ''}, {model.kind}"
        found.append(Model(name, path, model.caches, model.shape["layers"]))
    return found


class Comparison:
    """One model, lowering and type of cache, as a prompt or token by token: divergence from the CPU."""

    def __init__(self, machine, model, lowering, cache, rows, tokens):
        self.model, self.lowering, self.cache, self.rows = model, lowering, cache, rows
        self.base = machine.work / f"{model.path.stem}-{lowering}-{cache}-{rows}.kld"
        self.flags = ["-m", model.path, "-c", str(tokens), "--chunks", "1", "-mla", lowering, "-ctk", cache, "-ctv", cache, "-ub", str(rows),
                      "--kl-divergence-base", self.base]
        if not machine.emulated:
            self.flags += ["-t", max(1, (os.cpu_count() or 1) // machine.at_once())]
        self.text = text_for(machine)

    def expect(self, machine):
        return Done(machine.tessera("perplexity", "--config", machine.configuration(), "-f", self.text, *self.flags), machine.environment, 300)

    def words(self, machine, configuration, placement):
        return machine.tessera("perplexity", "--config", configuration, "--kl-divergence", *self.flags, *placement)


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
    """Runs the comparisons, several at once; a row each in a table."""
    report.heading(title)
    rows = []
    kernels = {}

    def one(c):
        if report.left() < 5:
            return c, None, None
        key = (c.model.path, c.lowering, c.cache)
        if key not in kernels:
            kernels[key] = attention_of(machine, configuration, *key, placement)
        if not c.base.exists():
            expected = c.expect(machine)
            if expected.status != 0:
                return c, expected, None
        done, late = report.command(c.words(machine, configuration, placement), machine.environment, 180 if not machine.emulated else 1800)
        return c, None, None if late else done

    with concurrent.futures.ThreadPoolExecutor(machine.at_once()) as pool:
        done_all = list(pool.map(one, comparisons))
    late = []
    for c, expected, done in done_all:
        name = f"{c.model.name}, -mla {c.lowering}, cache {c.cache}, {'token by token' if c.rows == 1 else 'prompt'}"
        if done is None and expected is None:
            late.append(name)
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
        rows.append([c.model.name, c.lowering, c.cache, "token by token" if c.rows == 1 else "prompt",
                     "" if mean is None else f"{mean:.6f}", "" if median is None else f"{median:.6f}", "" if top is None else f"{top:.0f} %",
                     kernels[c.model.path, c.lowering, c.cache], verdict])
    report.text(table(["model", "-mla", "cache", "as", "mean KLD", "median", "same token", "attention", ""], rows))
    report.text()
    if late:
        report.leave_out(f"{title}: {len(late)} of {len(comparisons)}", "no time was left, among others for " + late[0])


def comparisons(machine, scale, all_models):
    """All models, lowerings and caches, as a prompt and token by token. In an order of which any first part has some of each. Or half of the pairs of
    lowering and cache in turn, so that each lowering and each cache comes as a prompt and token by token."""
    found = []
    for model in all_models:
        for i, lowering in enumerate(scale.lowerings):
            for j, cache in enumerate(model.caches):
                if not scale.both and len(model.caches) > 1 and (i + j) % 2:
                    continue
                for rows in (512, 1) if scale.both else ((512, 1)[(i // 2 + j // 2) % 2],):
                    found.append(Comparison(machine, model, lowering, cache, rows, scale.single_tokens if rows == 1 else scale.prompt_tokens))
    random.Random(1).shuffle(found)
    return found


def answers(machine, report, scale):
    """The bundled model's answers to questions, to the letter."""
    report.heading("Answers of the bundled model")
    rows = []
    for prompt in scale.prompts:
        words = ["-m", machine.model, "--temp", "0", "-n", scale.answer_tokens, "-p", prompt]
        expected = report.run(f"the CPU's answer to {prompt}", machine.tessera("run", "--config", machine.configuration(), *words), machine.environment, 60)
        if expected.status != 0:
            continue
        rows.append(["CPU", prompt, expected.out.strip().replace("\n", " ")])
        for name in machine.owners():
            done = report.run(f"{name}'s answer to {prompt}", machine.tessera("run", "--config", machine.configuration(name), *words),
                              machine.environment, 60 if not machine.emulated else 1800,
                              lambda d: d.status == 0 and d.out.strip() == expected.out.strip() and cards_used(d) - {"CPU"})
            rows.append([name, prompt, done.out.strip().replace("\n", " ")])
    report.text(table(["on", "question", "answer"], rows))
    report.text()


def rig(machine, report, scale, all_models):
    """Both plugins and the CPU at once, on one card where both own it."""
    made = machine.rig()
    if not made:
        report.heading("Mixed rig")
        report.leave_out("the mixed rig", "it takes cards of both plugins; owners of cards here: " + (", ".join(machine.owners()) or "none"))
        return
    configuration, devices = made
    where = f"{devices[0]} (cuda_ampere), {devices[1]} (cuda_legacy) and the CPU"
    for model in report.in_turn(all_models[:2]):
        tried = []
        for i, (lowering, cache) in enumerate(scale.rig_cases):
            for rows in (512, 1) if scale.both else ((512, 1)[i % 2],):
                tried.append(Comparison(machine, model, lowering, cache, rows, scale.single_tokens if rows == 1 else scale.prompt_tokens))
        # All but the first layer on the two devices, in equal parts; the first and what is left on the CPU.
        compare_all(machine, report, f"Mixed rig, {model.name}: {where}", tried, configuration, ["-ts", "1,1", "-ngl", model.layers], [*devices, "CPU"])
