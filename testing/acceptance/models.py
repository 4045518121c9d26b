"""Whole models against the CPU: all lowerings of latent attention and types of cache, and a mixed rig."""

import json
import os
import pathlib
import random
import re
import threading
import typing

from . import random_model
from .machine import SOURCE, cards_used
from .scale import CACHES
from .steps import FAILED, LEFT_OUT, NO_TIME, REFUSED, Outcome, Part, Step, failure

BUNDLED_LAYERS = 3
# Kullback-Leibler divergence from the CPU's prediction, mean and median over tokens. With quantised weights both round activations, by which
# a token's experts may change; products of many rows round them by one scale for 256 elements, the CPU by one for 32. A cache of few bits
# rounds coarsely what differs in the last bit.
LIMITS = {"f16": (0.05, 0.005), "bf16": (0.05, 0.005), "q8_0": (0.05, 0.005), "q4_0": (0.2, 0.05)}


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
    """One model, lowering (empty: as the plan chooses) and type of cache, as a prompt or token by token: divergence from the CPU. `bounded`: what is held
    to the first of LIMITS; the second holds the median."""

    def __init__(self, machine, model, lowering, cache, rows, tokens, bounded="Mean KLD"):
        self.model, self.lowering, self.cache, self.rows, self.bounded = model, lowering, cache, rows, bounded
        self.base = machine.work / f"{model.path.stem}-{lowering}-{cache}-{rows}.kld"
        self.chosen = [*(["-mla", lowering] if lowering else []), "-ctk", cache, "-ctv", cache]
        self.flags = ["-m", model.path, "-c", str(tokens), "--chunks", "1", *self.chosen, "-ub", str(rows), "--kl-divergence-base", self.base]
        if not machine.emulated:
            self.flags += ["-t", max(1, (os.cpu_count() or 1) // machine.at_once())]
        self.text = text_for(machine)
        self.name = f"{model.name}, {f'-mla {lowering}, ' if lowering else ''}cache {cache}, {self.as_what()}"

    def as_what(self):
        return "token by token" if self.rows == 1 else "prompt"

    def expect(self, call):
        """What the CPU says, in `base`."""
        return call.command(call.machine.tessera("perplexity", "--config", call.machine.configuration(), "-f", self.text, *self.flags), 300)

    def words(self, machine, configuration, placement):
        return machine.tessera("perplexity", "--config", configuration, "--kl-divergence", *self.flags, *placement)


def value(done, name):
    found = re.search(rf"(?m)^{re.escape(name)} *: *([0-9.]+)", done.out)
    return float(found.group(1)) if found else None


def attention_of(machine, configuration, comparison, placement=()):
    """Which kernels compute attention, and where: "flash_attention.cuda on CUDA0"."""
    done = machine.done(machine.tessera("plan", "--json", "--config", configuration, "-m", comparison.model.path, "-c", "4096", *comparison.chosen,
                                        *placement), 120)
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


HEAD = ("model", "-mla", "cache", "as", "mean KLD", "median", "same token", "attention", "")


class Bases:
    """What the CPU says, computed once for all devices that are compared with it."""

    def __init__(self):
        self.lock, self.of = threading.Lock(), {}

    def begin(self, path):
        with self.lock:
            return self.of.setdefault(path, threading.Lock())


def compare(call, comparison, bases, configuration, placement, devices):
    machine = call.machine
    with bases.begin(comparison.base):
        if not comparison.base.exists():
            done, late = comparison.expect(call)
            if late:
                return Outcome(LEFT_OUT, NO_TIME)
            if done.status != 0:
                outcome = failure(done)
                outcome.why = f"on the CPU: {outcome.why}"
                return outcome
    attention = attention_of(machine, configuration, comparison, placement)
    done, late = call.command(comparison.words(machine, configuration, placement), 60 if not machine.emulated else 1800)
    if late:
        return Outcome(LEFT_OUT, NO_TIME)
    mean, median, top, bounded = (value(done, what) for what in ("Mean KLD", "Median KLD", "Same top p", comparison.bounded))
    limits, used = LIMITS[comparison.cache], cards_used(done)
    outcome = Outcome()
    if done.status != 0 and is_refusal(done):
        outcome = Outcome(REFUSED, (done.err.strip().splitlines() or ["?"])[-1][:200])
    elif done.status != 0 or None in (mean, median, bounded):
        outcome = failure(done)
    elif bounded > limits[0] or median > limits[1]:
        outcome = Outcome(FAILED, f"divergence: {comparison.bounded} {bounded}, median {median}; expected at most {limits[0]} and {limits[1]}")
    elif not set(devices) <= used:
        outcome = Outcome(FAILED, f"expected work on {', '.join(devices)}; found it on {', '.join(sorted(used)) or 'none'}\n{done.err}")
    outcome.rows = [[comparison.model.name, comparison.lowering, comparison.cache, comparison.as_what(), "" if mean is None else f"{mean:.6f}",
                     "" if median is None else f"{median:.6f}", "" if top is None else f"{top:.0f} %", attention, outcome.verdict]]
    return outcome


def comparing(tried, bases, configuration, placement, devices):
    """A step each."""
    return [Step(comparison.name, lambda call, comparison=comparison: compare(call, comparison, bases, configuration, placement, devices))
            for comparison in tried]


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


def answers(machine, scale, name, most=30):
    """The bundled model's answers to questions, to the letter."""

    def answer(call, prompt):
        words = ["-m", machine.model, "--temp", "0", "-n", scale.answer_tokens, "-p", prompt]
        outcome, expected = call.judged(machine.tessera("run", "--config", machine.configuration(), *words), 60)
        if expected.status != 0:
            return outcome
        outcome, done = call.judged(machine.tessera("run", "--config", machine.configuration(name), *words), 60 if not machine.emulated else 1800,
                                    lambda d: d.status == 0 and d.out.strip() == expected.out.strip() and cards_used(d) - {"CPU"})
        outcome.rows = [[where, prompt, found.out.strip()] for where, found in (("CPU", expected), (name, done))]
        return outcome

    return Part(f"answers of {name}", f"Answers of the bundled model: {name}",
                lambda: [Step(prompt, lambda call, prompt=prompt: answer(call, prompt)) for prompt in scale.prompts], most, head=("on", "question", "answer"))


class Models:
    """The models that are compared, written when they are needed first."""

    def __init__(self, machine, scale):
        self.machine, self.scale, self.bases, self.written = machine, scale, Bases(), None

    def all(self):
        if self.written is None:
            self.written = models(self.machine, self.scale)
        return self.written

    def part(self, name, most):
        machine = self.machine
        return Part(f"models on {name}", f"Models in all lowerings and caches: {name}",
                    lambda: comparing(comparisons(machine, self.scale, self.all()), self.bases, machine.configuration(name), [], [machine.card(name)["card"]]),
                    most, HEAD, machine.at_once())

    def architectures(self, name, most):
        """The golden models, one of each architecture and of what is special in it, which the CPU computes as public implementations do."""
        machine, scale = self.machine, self.scale

        def steps():
            folder = machine.work / "goldens"
            if not folder.exists():
                done = machine.done([machine.program("expand_goldens"), SOURCE / "tests/goldens", folder], 60)
                if done.status != 0:
                    raise RuntimeError(f"expand_goldens: {done.all}")
                text_for(machine).write_text(random_model.text())
            found = [Model(path.stem, path, ("f16",), 0) for path in sorted(folder.glob("*.gguf")) if not scale.goldens or path.stem in scale.goldens]
            # Their weights are random, and among so many tokens and models one has experts that are all but tied (1.8e-4 between two groups of
            # bailingmoe2's, where the next token has 0.014): products of many rows round its activations to f16, and it takes others.
            tried = [Comparison(machine, model, "", "f16", rows, scale.single_tokens if rows == 1 else scale.prompt_tokens, "95.0 % KLD")
                     for model in found for rows in (512, 1)]
            return comparing(tried, self.bases, machine.configuration(name), ["-ngl", "999"], [machine.card(name)["card"]])

        return Part(f"architectures on {name}", f"Golden models of all architectures: {name}", steps, most, HEAD, machine.at_once())

    def rig(self, most):
        """Both plugins and the CPU at once, on one card where both own it."""
        machine, scale = self.machine, self.scale

        def steps():
            made = machine.rig()
            if not made:
                why = "it takes cards of both plugins; owners of cards here: " + (", ".join(machine.owners()) or "none")
                return [Step("mixed rig", lambda call: Outcome(LEFT_OUT, why))]
            configuration, devices = made
            tried = []
            for model in self.all()[:2]:
                for i, (lowering, cache) in enumerate(scale.rig_cases):
                    for rows in (512, 1) if scale.both else ((512, 1)[i % 2],):
                        tried.append(Comparison(machine, model, lowering, cache, rows, scale.single_tokens if rows == 1 else scale.prompt_tokens))
            # All but the first layer on the two devices, in equal parts; the first and what is left on the CPU.
            return [step for comparison in tried
                    for step in comparing([comparison], self.bases, configuration, ["-ts", "1,1", "-ngl", comparison.model.layers], [*devices, "CPU"])]

        return Part("models on a mixed rig", "Mixed rig: a device of each plugin, and the CPU", steps, most, HEAD, machine.at_once())
