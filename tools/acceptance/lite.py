"""A model of the shape of DeepSeek-V2-Lite: memory against plan, many mixed steps, speed at the start and deep in the context."""

import json
import os
import pathlib
import shutil
import time

from . import random_model
from .process import Done
from .models import BUNDLED_LAYERS
from .random_model import LITE
from .report import table
from .scale import CARD, TINY
from .speeds import ESTIMATE

GOAL, AIM = 0.5, 0.75  # of tokens/s that reading weights and cache at the copy rate allows, at 60 k tokens
MEMORY = 0.01
DEPTH, STEP = CARD.lite_depth, CARD.lite_step
FULL_SIZE = CARD.lite


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


def judge_steps(report, title, lines, count, memory_from, devices=(), size=0):
    """What measure_steps printed: memory used against planned, and not a byte more after the steps. `size`: of the model's file."""
    by_card, rows, held = {}, [], 0
    for line in lines:
        if line["topic"] == "memory":
            card = by_card.setdefault(line["pci_id"], dict(line, devices=[], planned=0))
            card["planned"] += line["planned"]
            if line["planned"]:
                card["devices"].append(line["device"])
    for card in by_card.values():
        used, planned, where = card["free_opened"] - card["free_loaded"], card["planned"], ", ".join(card["devices"])
        if not planned:
            continue
        grown = card["free_warm"] - card["free_stepped"]
        error = used / planned - 1
        rows.append([where, f"{planned / 1e6:.1f}", f"{used / 1e6:.1f}", f"{100 * error:+.2f} %", grown])
        if grown != 0:
            report.fail(title, f"{where}: {grown} bytes of memory more after {count} mixed steps")
        if planned > memory_from:
            held += 1
            report.goal("memory used against planned, within 1 %", 1 - abs(error), 1 - MEMORY, None, where)
            if abs(error) > MEMORY:
                report.fail(title, f"{where}: {used} bytes of memory are used, {planned} were planned: {100 * error:+.2f} %")
    missing = set(devices) - {device for card in by_card.values() for device in card["devices"]}
    if missing:
        report.fail(title, f"expected work on {', '.join(sorted(missing))}")
    if size > memory_from and not held:
        report.leave_out(f"{title}: memory against plan", f"no card has more than {memory_from / 1e9:g} GB planned of a model of {size / 1e9:.1f} GB")
    report.text(table(["on", "planned MB", "used MB, by the driver's count", "difference", "bytes more after the steps"], rows))
    report.text()
    for line in lines:
        if line["topic"] == "steps":
            report.text(f"{line['steps']} mixed steps, {line['rows']} rows, in {line['seconds']:.1f} s ({1e3 * line['seconds'] / max(line['steps'], 1):.2f} ms "
                        f"a step); loaded in {line['load_seconds']:.1f} s; the host's heap grew by {line['host_after'] - line['host_before']} bytes.\n")


def steps(machine, report, title, model, configuration, count, context, devices, scale):
    """Mixed steps of several sequences."""
    report.heading(title)
    words = [machine.program("measure_steps"), "--config", configuration, "--steps", count, "-c", context, "--rows", scale.step_rows,
             "--sequences", scale.step_sequences, model]
    done = report.run(title, words, machine.environment, 240 if not machine.emulated else 7200)
    if done.status == 0:
        judge_steps(report, title, done.lines(), count, scale.memory_from, devices, os.path.getsize(model))


def rig_steps(machine, report, scale, rig):
    """Mixed steps over both plugins and the CPU at once: a layer each, of a model that has three."""
    configuration, devices = rig
    model, context = machine.model, 1024
    if scale.tiny_steps:
        model, context = machine.work / "tiny.gguf", 256
        random_model.write(model, dict(TINY, layers=BUNDLED_LAYERS), "q8_0")
    placed = machine.work / "rig-steps.toml"
    rules = [(r"^blk\.0\.", "CPU"), (r"^blk\.1\.", devices[0]), (r"^(blk\.2\.|output)", devices[1])]
    placed.write_text(configuration.read_text() + "".join(f"[[placement]]\ntensors = '{tensors}'\ndevice = \"{device}\"\n" for tensors, device in rules))
    steps(machine, report, "Mixed steps over the mixed rig", model, placed, scale.rig_steps, context, devices, scale)


def predicted(machine, configuration, model, context, step):
    """Tokens/s that the plan predicts: {(depth, "prompt" or "generation"): speed}."""
    done = Done(machine.tessera("plan", "--json", "--config", configuration, "-m", model, "-c", context, "-ub", step), machine.environment, 120)
    try:
        return {(speed["depth"], kind): speed[kind] for speed in json.loads(done.out)["speed"] for kind in ("prompt", "generation")}
    except (ValueError, KeyError):
        return {}


def judge_sweep(report, title, lines, plan, weights, cached, copy_rate, step, deep, goals):
    """What sweep printed: tokens/s against what reading weights and cache allows, and against the plan."""
    rows, ratios = [], {"prompt": [], "generation": []}
    shares = {}
    for line in lines:
        depth = line["n_kv"]
        read = weights + cached * (depth + line["tg"] / 2)
        allowed = copy_rate / read if copy_rate else None
        share = line["speed_tg"] / allowed if allowed else None
        near = min(plan, key=lambda key: abs(key[0] - depth), default=(None, None))[0]
        expected = {what: plan.get((near, what)) for what in ratios} if near is not None and abs(near - depth) <= 2 * step else {}
        for what, field in (("prompt", "speed_pp"), ("generation", "speed_tg")):
            if expected.get(what) and line[field]:
                ratios[what].append((expected[what] / line[field], depth))
            else:
                expected[what] = None
        shown = {what: f"{ratios[what][-1][0]:.2f}" if expected[what] else "" for what in ratios}
        rows.append([depth, f"{line['speed_pp']:.0f}", shown["prompt"], f"{line['speed_tg']:.1f}", shown["generation"],
                     "" if allowed is None else f"{allowed:.0f}", "" if share is None else f"{share:.2f}"])
        if depth >= deep and share is not None:
            shares[depth] = share
    report.text(table(["cached", f"prompt of {step}, tokens/s", "predicted / measured", "generation, tokens/s", "predicted / measured",
                       "weights and cache at the copy rate allow", "share"], rows))
    report.text()
    if not goals:
        return
    if shares:
        report.goal(f"generation at {max(shares)} tokens", shares[max(shares)], GOAL, AIM, title)
    else:
        report.leave_out(f"goal of {title}: generation deep in the context", "nothing was measured there, or no copy rate")
    for what, found in ratios.items():
        if found:
            ratio, depth = max(found, key=lambda pair: max(pair[0], 1 / pair[0]))
            report.goal(f"{what}, tokens/s predicted within {ESTIMATE}", min(ratio, 1 / ratio), 1 / ESTIMATE, 1,
                        f"worst: predicted / measured {ratio:.2f} at {depth} tokens")
        else:
            report.leave_out(f"goal of {title}: prediction of {what}", "there is no prediction for what was measured")


def sweep(machine, report, title, path, configuration, context, stride, copy_rate, scale, goals):
    report.heading(title)
    shape, kind = scale.lite
    step = scale.lite_step
    done = report.run(title, machine.tessera("sweep", "-m", path, "--config", configuration, "-c", context, "-ub", step, "-n", scale.lite_generation,
                                             "--sweep-stride", stride, "--output-format", "jsonl"), machine.environment,
                      150 if not machine.emulated else 7200)
    judge_sweep(report, title, done.lines(), predicted(machine, configuration, path, context, step), random_model.token_bytes(shape, kind),
                random_model.cached_bytes(shape), copy_rate, step, scale.lite_depth // 2, goals)


def write(machine, report, shape, kind):
    """The file; None if no folder has room."""
    size = sum(random_model.byte_count(extents, of) for _, extents, of in random_model.tensors(shape, kind))
    folder = place_for(size, machine.work)
    if folder is None:
        report.leave_out("the Lite-shaped model", f"no folder has room for {size / 1e9:.1f} GB")
        return None
    path = folder / f"tessera-acceptance-{os.getpid()}.gguf"
    started = time.monotonic()
    try:
        random_model.write(path, shape, kind)
    except OSError as error:
        path.unlink(missing_ok=True)
        report.leave_out("the Lite-shaped model", f"{path}: {error}")
        return None
    report.text(f"{shape['layers']} layers, {size / 1e9:.2f} GB of {kind}, written in {time.monotonic() - started:.1f} s.\n")
    return path


def plan_full_size(machine, report):
    """Writes the model in its full size and plans it: what an emulated card is too slow to run."""
    report.heading("The Lite-shaped model in full size, planned")
    path = write(machine, report, *FULL_SIZE)
    if path is None:
        return
    try:
        for name in machine.owners():
            speeds = predicted(machine, machine.configuration(name), path, DEPTH + STEP, STEP)
            if not any(depth >= DEPTH // 2 and what == "generation" and speed > 0 for (depth, what), speed in speeds.items()):
                report.fail(f"the plan of the Lite-shaped model on {name}", f"no prediction of generation at {DEPTH} tokens: {speeds}")
            rows = [[depth, what, f"{speed:.1f}"] for (depth, what), speed in sorted(speeds.items())]
            report.text(table(["cached", f"on {name}", "predicted tokens/s"], rows))
            report.text()
    finally:
        path.unlink(missing_ok=True)


def run(machine, report, rates, scale):
    if scale.lite_written:
        plan_full_size(machine, report)
    report.heading("The Lite-shaped model" if scale.lite[0]["layers"] == LITE["layers"] else "A model of few layers")
    path = write(machine, report, *scale.lite)
    if path is None:
        return
    try:
        for name in report.in_turn(machine.owners(), lambda name: 1 if machine.is_trial(name) else 4):
            configuration, device = machine.configuration(name), machine.cards[name][0]["card"]
            copy_rate = rates.get(name, {}).get("copy")
            first = name == machine.owners()[0]
            step = scale.lite_step
            context, stride = (scale.lite_depth + step, scale.lite_depth // step) if first else (step, 1)
            if first:
                steps(machine, report, f"Memory and mixed steps: {name}", path, configuration, scale.lite_steps, scale.lite_context, [device], scale)
            sweep(machine, report, f"Speed: {name}", path, configuration, context, stride, copy_rate, scale,
                  first and (scale.made_goals or not scale.small_speed))
    finally:
        path.unlink(missing_ok=True)
