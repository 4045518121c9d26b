"""A model of the shape of DeepSeek-V2-Lite: speed at the start and deep in the context, memory against plan, many mixed steps."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from . import random_model
from .models import BUNDLED_LAYERS
from .process import OWN_GROUP, end_group, guard, has_ended
from .report import table
from .scale import CARD, TINY
from .steps import FAILED, LEFT_OUT, MEASURED, NO_TIME, Outcome, Part, Step

# What a driver may take for a graph when it is launched first.
GRAPH_BYTES = 2 << 20
FULL_SIZE = CARD.lite
WRITE = "import json, sys; sys.path.insert(0, sys.argv[1]); from acceptance import random_model; random_model.write(sys.argv[2], *json.loads(sys.argv[3]))"


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


class Lite:
    """The file, written by a process beside the steps that come before it. It stays for a next call if it is still needed then."""

    def __init__(self, machine, scale):
        self.machine, self.scale = machine, scale
        self.shape, self.kind = scale.lite
        self.process, self.path, self.why = None, None, ""

    def start(self):
        size = sum(random_model.byte_count(extents, of) for _, extents, of in random_model.tensors(self.shape, self.kind))
        what = json.dumps([self.shape, self.kind])
        name = f"tessera-gpu-{hashlib.sha256(what.encode()).hexdigest()[:16]}-{os.getuid()}.gguf"
        if not self.machine.emulated:
            folders = [pathlib.Path(folder) for folder in ("/dev/shm", "/tmp", "/var/tmp")]
            self.path = next((folder / name for folder in folders if (folder / name).exists()), None)
            if self.path:
                return
        folder = self.machine.work if self.machine.emulated else place_for(size, self.machine.work)
        if folder is None:
            self.why = f"no folder has room for {size / 1e9:.1f} GB"
            return
        self.path = folder / name
        self.process = subprocess.Popen([sys.executable, "-c", WRITE, pathlib.Path(__file__).resolve().parent.parent, f"{self.path}.unfinished", what],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **OWN_GROUP)
        guard.tell("+", self.process.pid)

    def wait(self, call):
        """None if the file is there, else the outcome of the step that needs it."""
        if self.path is None and not self.why:
            self.start()
        if self.process:
            if not has_ended(self.process, max(call.left(), 0.1)):
                return Outcome(LEFT_OUT, NO_TIME)
            with self.process.stdout as stream:
                output, status = stream.read().decode(errors="replace"), self.process.wait()
            guard.tell("-", self.process.pid)
            self.process = None
            if status == 0:
                os.rename(f"{self.path}.unfinished", self.path)
            else:
                self.why = f"it could not be written: {output[-1000:] or status}"
        return Outcome(LEFT_OUT, self.why) if self.why else None

    def close(self, needed):
        """Returns where the file stays; None if it is removed."""
        if self.process:
            end_group(self.process.pid)
            self.process.stdout.close()
            self.process.wait()
            guard.tell("-", self.process.pid)
            pathlib.Path(f"{self.path}.unfinished").unlink(missing_ok=True)
        elif self.path and self.path.exists():
            if needed:
                return self.path
            self.path.unlink()
        return None


def judge_steps(title, lines, devices=(), emulated=False):
    """An outcome of what measure_steps printed: memory used beside planned, and no more after the steps than drivers take for graphs."""
    by_card, rows, why, text = {}, [], [], []
    for line in lines:
        if line["topic"] == "memory":
            card = by_card.setdefault(line["pci_id"], dict(line, devices=[], planned=0, recordings=0))
            card["planned"] += line["planned"]
            card["recordings"] += line["recordings"]
            if line["planned"]:
                card["devices"].append(line["device"])
        elif line["topic"] == "steps":
            text.append(f"{title}: {line['steps']} mixed steps, {line['rows']} rows, in {line['seconds']:.1f} s "
                        f"({1e3 * line['seconds'] / max(line['steps'], 1):.2f} ms a step); loaded in {line['load_seconds']:.1f} s; the host's heap grew by "
                        f"{line['host_after'] - line['host_before']} bytes.")
    for card in by_card.values():
        used, planned, where = card["free_opened"] - card["free_loaded"], card["planned"], ", ".join(card["devices"])
        if not planned:
            continue
        grown = card["free_warm"] - card["free_stepped"]
        allowed = 0 if emulated else GRAPH_BYTES * card["recordings"]
        rows.append([where, f"{planned / 1e6:.1f}", f"{used / 1e6:.1f}", f"{100 * (used / planned - 1):+.2f} %", f"{card['free_loaded'] - card['free_warm']}",
                     grown, card["recordings"]])
        if grown > allowed:
            why.append(f"{where}: {grown} bytes of memory more after the steps; a driver may take {GRAPH_BYTES >> 20} MiB for each of {card['recordings']} graphs")
    missing = set(devices) - {device for card in by_card.values() for device in card["devices"]}
    if missing:
        why.append(f"expected work on {', '.join(sorted(missing))}")
    head = ["on", "planned MB", "used MB, by the driver's count", "difference", "bytes of the first steps", "bytes more after the others", "graphs"]
    return Outcome(FAILED if why else MEASURED, "\n".join(why), text=[table(head, rows), "", *text])


def steps(call, title, model, configuration, count, context, devices):
    """Mixed steps of several sequences."""
    machine, scale = call.machine, call.scale
    words = [machine.program("measure_steps"), "--config", configuration, "--steps", count, "-c", context, "--rows", scale.step_rows,
             "--sequences", scale.step_sequences, model]
    outcome, done = call.judged(words, 90 if not machine.emulated else 7200)
    return outcome if outcome.verdict in (FAILED, LEFT_OUT) else judge_steps(title, done.lines(), devices, machine.emulated)


def rig_steps(machine, scale, most):
    """Mixed steps over both plugins and the CPU at once: a layer each, of a model that has three."""

    def do(call):
        configuration, devices = machine.rig()
        model, context = machine.model, 1024
        if scale.tiny_steps:
            model, context = machine.work / "tiny.gguf", 256
            random_model.write(model, dict(TINY, layers=BUNDLED_LAYERS), "q8_0")
        placed = machine.work / "rig-steps.toml"
        rules = [(r"^blk\.0\.", "CPU"), (r"^blk\.1\.", devices[0]), (r"^(blk\.2\.|output)", devices[1])]
        placed.write_text(configuration.read_text() + "".join(f"[[placement]]\ntensors = '{tensors}'\ndevice = \"{device}\"\n" for tensors, device in rules))
        return steps(call, "mixed rig", model, placed, scale.rig_steps, context, devices)

    return Part("steps on a mixed rig", "Mixed steps over the mixed rig", lambda: [Step("steps", do)] if machine.rig() and scale.rig_steps else [], most)


def predicted(machine, configuration, model, context, step):
    """Tokens/s that the plan predicts, {(depth, "prompt" or "generation"): speed}, and what of it is assumed."""
    done = machine.done(machine.tessera("plan", "--json", "--config", configuration, "-m", model, "-c", context, "-ub", step), 120)
    try:
        plan = json.loads(done.out)
        return {(speed["depth"], kind): speed[kind] for speed in plan["speed"] for kind in ("prompt", "generation")}, \
            [f"{one['name']} {one['value']:.3g} {one['unit']}".strip() for one in plan.get("assumed", [])]
    except (ValueError, KeyError):
        return {}, []


def judge_sweep(lines, plan, weights, cached, read_rate, step):
    """Rows of what sweep printed: tokens/s beside the plan's, and what reading weights and cache allows."""
    rows = []
    for line in lines:
        depth = line["n_kv"]
        read = weights + cached * (depth + line["tg"] / 2)
        allowed = read_rate / read if read_rate else None
        near = min(plan, key=lambda key: abs(key[0] - depth), default=(None, None))[0]
        expected = {kind: plan.get((near, kind)) for kind in ("prompt", "generation")} if near is not None and abs(near - depth) <= 2 * step else {}
        row = [depth, step]
        for kind, field in (("prompt", "speed_pp"), ("generation", "speed_tg")):
            said = expected.get(kind)
            row += [f"{line[field]:.1f}", f"{said:.1f}" if said else "", f"{said / line[field]:.2f}" if said and line[field] else ""]
        rows.append([*row, "" if allowed is None else f"{allowed:.0f}", "" if allowed is None else f"{line['speed_tg'] / allowed:.2f}"])
    return rows


HEAD = ("cached", "rows a step", "prompt, tokens/s", "predicted", "predicted / measured", "generation, tokens/s", "predicted", "predicted / measured",
        "weights and cache at the rate of reads allow", "share")


def sweeps(machine, scale, run_data, lite, name, most):
    """Prompts and generation with nothing cached and deep in the context, by steps of several sizes; then mixed steps."""
    shape, kind = scale.lite

    def sweep(call, rows):
        outcome = lite.wait(call)
        if outcome:
            return outcome
        first = name == machine.owners()[0]
        depth = scale.lite_depth if first else 0
        context, stride = depth + rows, max(depth // rows, 1)
        outcome, done = call.judged(machine.tessera("sweep", "-m", lite.path, "--config", machine.configuration(name), "-c", context, "-ub", rows, "-n",
                                                    scale.lite_generation, "--sweep-stride", stride, "--output-format", "jsonl"),
                                    90 if not machine.emulated else 7200)
        if outcome.verdict in (FAILED, LEFT_OUT):
            return outcome
        plan, assumed = predicted(machine, machine.configuration(name), lite.path, context, rows)
        read_rate = run_data("rates", machine.owners()[0]).get("rates", {}).get("read")
        found = judge_sweep(done.lines(), plan, random_model.token_bytes(shape, kind), random_model.cached_bytes(shape), read_rate, rows)
        return Outcome(MEASURED if found else FAILED, "" if found else f"sweep printed nothing\n{done.all}", found,
                       [f"Steps of {rows} rows: the prediction assumes {', '.join(assumed) or 'nothing that was not measured'}."])

    def mixed(call):
        outcome = lite.wait(call)
        return outcome or steps(call, name, lite.path, machine.configuration(name), scale.lite_steps, scale.lite_context, [machine.card(name)["card"]])

    def all_steps():
        sizes = scale.lite_rows if name == machine.owners()[0] else scale.lite_rows[:1]
        found = [Step(f"steps of {rows} rows", lambda call, rows=rows: sweep(call, rows)) for rows in sizes]
        return found + [Step("mixed steps", mixed)] * (name == machine.owners()[0])

    return Part(f"lite on {name}", f"{'The Lite-shaped model' if scale.lite == FULL_SIZE else 'A model of few layers'}: {name}", all_steps, most, HEAD)


def plan_full_size(machine, scale):
    """Writes the model in its full size and plans it: what an emulated card is too slow to run."""

    def do(call):
        whole = Lite(machine, CARD)
        try:
            outcome = whole.wait(call)
            if outcome:
                return outcome
            rows = []
            for name in machine.owners():
                depth, step = CARD.lite_depth, CARD.lite_rows[0]
                speeds, _ = predicted(machine, machine.configuration(name), whole.path, depth + step, step)
                if not any(at >= depth // 2 and what == "generation" and speed > 0 for (at, what), speed in speeds.items()):
                    return Outcome(FAILED, f"{name}: no prediction of generation at {depth} tokens: {speeds}")
                rows += [[name, at, what, f"{speed:.1f}"] for (at, what), speed in sorted(speeds.items())]
            return Outcome(MEASURED, rows=rows)
        finally:
            whole.close(needed=False)

    return Part("lite planned", "The Lite-shaped model in full size, planned", lambda: [Step("plan", do)] if scale.lite_written else [], most=600,
                head=("on", "cached", "", "predicted tokens/s"))
