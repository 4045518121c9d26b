"""A model of the shape of DeepSeek-V2-Lite: memory against plan, many mixed steps, speed at the start and deep in the context."""

import json
import os
import pathlib
import shutil

from . import random_model
from .process import Done
from .report import table

GOAL, AIM = 0.5, 0.75  # of tokens/s that reading weights and cache at the copy rate allows, at 60 k tokens
MEMORY = 0.01
DEPTH, STEP = 61440, 512


def place_for(bytes_needed, work):
    """A folder with room: in memory if there is twice as much, else on the disk; None if there is none."""
    for folder in ("/dev/shm", str(work), "/tmp", "/var/tmp"):
        try:
            free = shutil.disk_usage(folder).free
            if folder == "/dev/shm":
                with open("/proc/meminfo") as file:
                    available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
                free = min(free, available // 2)
        except OSError:
            continue
        if free > 1.1 * bytes_needed:
            return pathlib.Path(folder)
    return None


def steps(machine, report, title, model, configuration, count, context, devices, small):
    """Mixed steps of several sequences: memory used against planned, and not a byte more after them."""
    report.heading(title)
    words = [machine.program("measure_steps"), "--config", configuration, "--steps", str(count), "-c", str(context),
             "--rows", "8" if small else "64", "--sequences", "2" if small else "4", model]
    done = report.run(title, words, machine.environment, 240)
    lines = done.lines()
    rows = []
    by_card = {}
    for line in lines:
        if line["topic"] == "memory":
            card = by_card.setdefault(line["pci_id"], dict(line, devices=[], planned=0))
            card["planned"] += line["planned"]
            if line["planned"]:
                card["devices"].append(line["device"])
    for card in by_card.values():
        used, planned = card["free_opened"] - card["free_loaded"], card["planned"]
        if not planned:
            continue
        grown = card["free_warm"] - card["free_stepped"]
        error = used / planned - 1
        rows.append([", ".join(card["devices"]), f"{planned / 1e6:.1f}", f"{used / 1e6:.1f}", f"{100 * error:+.2f} %", grown])
        if grown != 0:
            report.fail(title, f"{', '.join(card['devices'])}: {grown} bytes of memory more after {count} mixed steps")
        # Small models are smaller than what the driver takes for code and in whole pages.
        if planned > 4e9:
            report.goal("memory used against planned, within 1 %", 1 - abs(error), 1 - MEMORY, None, ", ".join(card["devices"]))
    missing = set(devices) - {device for card in by_card.values() for device in card["devices"]}
    if done.status == 0 and missing:
        report.fail(title, f"expected work on {', '.join(sorted(missing))}\n{done.err}")
    report.text(table(["on", "planned MB", "used MB, by the driver's count", "difference", "bytes more after the steps"], rows))
    report.text()
    for line in lines:
        if line["topic"] == "steps":
            report.text(f"{line['steps']} mixed steps, {line['rows']} rows, in {line['seconds']:.1f} s ({1e3 * line['seconds'] / max(line['steps'], 1):.2f} ms "
                        f"a step); loaded in {line['load_seconds']:.1f} s; the host's heap grew by {line['host_after'] - line['host_before']} bytes.\n")


def predicted(machine, configuration, model, context):
    """Tokens/s that the plan predicts: {(depth, "prompt" or "generation"): speed}."""
    done = Done(machine.tessera("plan", "--json", "--config", configuration, "-m", model, "-c", str(context), "-ub", str(STEP)), machine.environment, 120)
    try:
        return {(speed["depth"], kind): speed[kind] for speed in json.loads(done.out)["speed"] for kind in ("prompt", "generation")}
    except (ValueError, KeyError):
        return {}


def sweep(machine, report, title, model, configuration, context, step, generation, stride, copy_rate, shape, kind, goals, limit):
    report.heading(title)
    done = report.run(title, machine.tessera("sweep", "-m", model, "--config", configuration, "-c", str(context), "-ub", str(step),
                                             "-n", str(generation), "--sweep-stride", str(stride), "--output-format", "jsonl"), machine.environment, limit)
    plan = predicted(machine, configuration, model, context)
    rows = []
    weights, cached = random_model.token_bytes(shape, kind), random_model.cached_bytes(shape)
    for line in done.lines():
        depth = line["n_kv"]
        read = weights + cached * (depth + line["tg"] / 2)
        allowed = copy_rate / read if copy_rate else None
        share = line["speed_tg"] / allowed if allowed else None
        near = min(plan, key=lambda key: abs(key[0] - depth), default=(None, None))[0]
        expected = {what: plan.get((near, what)) for what in ("prompt", "generation")} if near is not None and abs(near - depth) <= 2 * step else {}
        ratio = {what: f"{expected[what] / line[field]:.2f}" if expected.get(what) and line[field] else ""
                 for what, field in (("prompt", "speed_pp"), ("generation", "speed_tg"))}
        rows.append([depth, f"{line['speed_pp']:.0f}", ratio["prompt"], f"{line['speed_tg']:.1f}", ratio["generation"],
                     "" if allowed is None else f"{allowed:.0f}", "" if share is None else f"{share:.2f}"])
        if goals and depth >= DEPTH // 2 and share is not None:
            report.goal(f"generation at {depth} tokens", share, GOAL, AIM, title)
    report.text(table(["cached", f"prompt of {step}, tokens/s", "predicted / measured", "generation, tokens/s", "predicted / measured",
                       "weights and cache at the copy rate allow", "share"], rows))
    report.text()


def run(machine, report, rates, small):
    shape, kind = (dict(random_model.SMALL, layers=2, heads=4, vocabulary=512), "q8_0") if small else (random_model.LITE, "q4_0")
    size = sum(random_model.byte_count(extents, of) for _, extents, of in random_model.tensors(shape, kind))
    folder = place_for(size, machine.work)
    if folder is None:
        report.fail("the Lite-shaped model", f"no folder has room for {size / 1e9:.1f} GB")
        return
    path = folder / f"tessera-acceptance-{os.getpid()}.gguf"
    try:
        random_model.write(path, shape, kind)
        for place, name in enumerate(machine.owners()):
            configuration, device = machine.configuration(name), machine.cards[name][0]["card"]
            copy_rate = rates.get(name, {}).get("copy")
            what = "Lite-shaped" if not small else "small random"
            if report.left() < 45:
                report.leave_out(f"the {what} model on {name}")
                continue
            first = place == 0
            context, stride = ((48, 2) if small else (DEPTH + STEP, DEPTH // STEP)) if first else ((16, 1) if small else (STEP, 1))
            step, generation = (16, 1) if small else (STEP, 32)
            sweep(machine, report, f"Speed of the {what} model: {name}", path, configuration, context, step, generation, stride, copy_rate, shape, kind,
                  first and not machine.emulated, min(150, report.left() - 30))
            if first:
                steps(machine, report, f"Memory and mixed steps of the {what} model: {name}", path, configuration, 6 if small else 1000,
                      256 if small else 32768, [device], small)
    finally:
        path.unlink(missing_ok=True)
