"""What measure_card says of cards and kernels, as tables: beside the card's own rates, the plan's estimate and the constants that it rests on."""

from .report import table
from .steps import FAILED, LEFT_OUT, MEASURED, NO_TIME, Outcome, Part, Step, failure

NEAR = 1.3  # measured over estimated, either way: a prediction that is worth having
TOPICS = {"products": "product", "attention": "attention", "experts": "experts", "rows": "rows"}  # of the command, and of its lines
RATES = {"copy": "copies within the card (read and written)", "read": "reads of memory", "f32": "multiply-adds of f32", "dp4a": "dp4a", "f16": "mma.sync m16n8k16, f16",
         "s8": "mma.sync m16n8k32, int8"}


def rate_text(unit, rate):
    return f"{rate / 1e9:.0f} GB/s" if unit in ("copy", "read") else f"{rate / 1e12:.1f} T/s"


def measure_card(machine, name, *words):
    return [machine.program("measure_card"), f"{machine.plugins[name]}.so", "--card", machine.card(name)["card"], *words]


def rates(machine, scale):
    """Of the first card of each plugin that owns one by itself: what it copies and multiplies, and what each launch costs."""

    def measure(call, name):
        small = ["--small"] if scale.small_speed else []
        done, late = call.command(measure_card(machine, name, "--topics", "rates", *small), scale.rates_seconds)
        lines = done.lines()
        found = [line for line in lines if line["topic"] in ("rate", "latency")]
        if late and not found:
            return Outcome(LEFT_OUT, NO_TIME)
        if done.status != 0 or not found:
            return failure(done)
        by_unit = {line["unit"]: line["rate"] for line in found if line["topic"] == "rate"}
        card = machine.card(name)
        described = dict.fromkeys(("copy", "read"), card["described_bandwidth"])
        rows = [[name, RATES.get(unit, unit), rate_text(unit, rate), rate_text(unit, described[unit]) if unit in described else "",
                 f"{rate / described[unit]:.2f}" if unit in described else ""] for unit, rate in by_unit.items()]
        for line in found:
            if line["topic"] != "latency":
                continue
            assumed = line.get("assumed", 0)
            rows.append([name, line["what"], f"{line['seconds'] * 1e6:.2f} us", f"{assumed * 1e6:.2f} us, {line['source']}" if assumed else "",
                         f"{line['seconds'] / assumed:.2f}" if assumed else ""])
        return Outcome(MEASURED, rows=rows, data={"rates": by_unit, "latencies": {line["what"]: line["seconds"] for line in found if "what" in line}})

    def steps():
        names = [name for name in machine.owners() if name == machine.owners()[0] or not machine.is_trial(name)]
        return [Step(name, lambda call, name=name: measure(call, name)) for name in names]

    return Part("rates", "Rates and latencies", steps, most=30, head=("plugin", "what", "measured", "the plan takes", "measured / taken"))


def achieved(line):
    """Of the unit that bounds it: bytes or operations a second."""
    return (line["bytes"] if line["unit"] == "read" else line["operations"]) / line["seconds"]


def refusals(lines):
    """One line for each reason, with the types and rows that it was given for."""
    by_reason = {}
    for line in lines:
        types, rows = by_reason.setdefault((line["what"], line["refused"].replace(line["type"], "TYPE", 1)), ([], []))
        for known, new in ((types, line["type"]), (rows, str(line["rows"]))):
            if new not in known:
                known.append(new)
    return [f"- {what}, {' '.join(types)}, rows {' '.join(rows)}: {why}" for (what, why), (types, rows) in by_reason.items()]


def judge(lines, rates_of_card):
    """An outcome of the lines that measure_card printed of one topic."""
    rows, refused, failed, late, ratios = [], [], [], [], []
    for line in lines:
        what = f"{line['what']}, {line['type']}, {line['rows']} row{'s' if line['rows'] > 1 else ''}"
        if "refused" in line:
            refused.append(line)
        elif "left_out" in line:
            late.append(what)
        elif "failed" in line:
            failed.append(f"{what}: {line['failed']}")
        else:
            rate = rates_of_card.get(line["unit"])
            ratio = line["seconds"] / line["estimated"] if line["estimated"] else None
            if ratio is not None:
                ratios.append((what, ratio))
            rows.append([what, line["kernel"].removesuffix(".cuda"), f"{line['seconds'] * 1e6:.1f}", f"{line['bytes'] / line['seconds'] / 1e9:.1f}",
                         f"{line['operations'] / line['seconds'] / 1e12:.2f}", line["unit"], "" if not rate else f"{achieved(line) / rate:.2f}",
                         f"{line['estimated'] * 1e6:.1f}", "" if ratio is None else f"{ratio:.2f}"])
    text = []
    if ratios:
        off = [f"{what} ({ratio:.2f})" for what, ratio in ratios if not 1 / NEAR <= ratio <= NEAR]
        text += [f"Of {len(ratios)} estimates {len(ratios) - len(off)} are within a factor of {NEAR} of the measured time"
                 + (": all but " + "; ".join(off) if off else "") + "."]
    if refused:
        text += ["Not offered:", "", *refusals(refused)]
    if late:
        text += [f"No time was left for {len(late)} of {len(late) + len(rows)}, from {late[0]} on."]
    if failed:
        return Outcome(FAILED, "\n".join(failed), rows, text)
    if not rows and not refused:
        return Outcome(LEFT_OUT, NO_TIME)
    return Outcome(MEASURED, "", rows, text)


def speed(machine, scale, run_data, name, most):
    """Products, attention, experts and rows of a plugin, a process each. `run_data`: of steps that have ended (Run.data)."""

    def measure(call, topic):
        of_card = run_data("rates", name).get("rates") or run_data("rates", machine.owners()[0]).get("rates", {})
        # It ends by itself when its time is up; what comes after the seconds is what it has begun.
        seconds = max(min(call.left() - 5, most / 2), 1)
        words = ["--topics", topic, "--seconds", f"{seconds:.0f}"] + (["--small"] if scale.small_speed else [])
        done, _ = call.command(measure_card(machine, name, *words), seconds + 60)
        lines = [line for line in done.lines() if line["topic"] == TOPICS[topic]]
        if not lines:
            return failure(done)
        outcome = judge(lines, of_card)
        if done.status != 0 and outcome.verdict != FAILED:
            return Outcome(FAILED, failure(done).why, outcome.rows, outcome.text)
        return outcome

    title = f"Speed: {name}" + (", which does not serve this card: its code is tried on it" if machine.is_trial(name) else "")
    return Part(f"speed of {name}", title, lambda: [Step(topic, lambda call, topic=topic: measure(call, topic)) for topic in TOPICS], most,
                head=("what", "kernel", "us", "GB/s", "T/s", "bound by", "share of that rate", "estimated us", "measured / estimated"))
