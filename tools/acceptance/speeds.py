"""What measure_card says of kernels, as tables: beside the card's own rates, the plan's estimate and the goals."""

from .process import Done
from .report import table

# Share of the measured rate: at least, aim. The experts' is the goal of the static model, since no other is set for a card.
GOALS = {"576/512, one token": (0.6, 0.9), "576/512, 128 heads": (0.45, 0.6), "one-row product": (0.75, 0.9), "experts, 128 rows each": (0.4, 0.7)}
ESTIMATE = 1.3  # measured over estimated, either way
TITLES = {"attention": "Attention", "product": "Products", "experts": "Experts", "rows": "Rows"}


def rate_text(unit, rate):
    return f"{rate / 1e9:.0f} GB/s" if unit == "copy" else f"{rate / 1e12:.1f} T/s"


def achieved(line):
    """Of the unit that bounds it: bytes or operations a second."""
    return (line["bytes"] if line["unit"] == "copy" else line["operations"]) / line["seconds"]


def refusals(lines):
    """One line for each reason, with the types and rows that it was given for."""
    by_reason = {}
    for line in lines:
        types, rows = by_reason.setdefault((line["what"], line["refused"].replace(line["type"], "TYPE", 1)), ([], []))
        for known, new in ((types, line["type"]), (rows, str(line["rows"]))):
            if new not in known:
                known.append(new)
    return [f"- {what}, {' '.join(types)}, rows {' '.join(rows)}: {why}" for (what, why), (types, rows) in by_reason.items()]


# Operations of a multiprocessor in a clock, for figures that are made up.
OPERATIONS = {"f32": 256, "dp4a": 1024, "f16": 2048, "s8": 4096}


def made_up(lines, card):
    """Rates and times for the plan's lines: the rates that the card is described with, and the estimates as times."""
    rates = {"copy": card["described_bandwidth"]} | {unit: card["processors"] * card["clock"] * count for unit, count in OPERATIONS.items()}
    return rates, [dict(line, seconds=line["estimated"]) if "kernel" in line else line for line in lines if line.get("estimated", 1)]


def judge(report, name, lines, rates, goals=True):
    """Tables of the lines that measure_card printed, with the goals."""
    names = {"copy": "copies within the card (read and written)", "f32": "multiply-adds of f32", "dp4a": "dp4a", "f16": "mma.sync m16n8k16, f16",
             "s8": "mma.sync m16n8k32, int8"}
    if rates:
        report.text(table(["rate", "measured"], [[names.get(unit, unit), rate_text(unit, rate)] for unit, rate in rates.items()]))
        report.text()
    worst, off, estimated = {}, [], 0
    for topic, title in TITLES.items():
        rows, refused, late = [], [], []
        for line in lines:
            if line["topic"] != topic:
                continue
            what = f"{line['what']}, {line['type']}, {line['rows']} row{'s' if line['rows'] > 1 else ''}"
            if "refused" in line:
                refused.append(line)
                continue
            if "left_out" in line:
                late.append(what)
                continue
            if "failed" in line:
                report.fail(f"{what} of {name}", line["failed"])
                continue
            rate = rates.get(line["unit"])
            share = achieved(line) / rate if rate else None
            ratio = line["seconds"] / line["estimated"] if line["estimated"] else None
            if ratio is not None:
                estimated += 1
                if not 1 / ESTIMATE <= ratio <= ESTIMATE:
                    off.append((what, ratio))
            goal = GOALS.get(line["goal"])
            mark = ""
            if goals and goal and share is not None:
                mark = "met" if share >= goal[0] else "missed"
                if line["goal"] not in worst or share < worst[line["goal"]][0]:
                    worst[line["goal"]] = (share, what)
            rows.append([what, line["kernel"].removesuffix(".cuda"), f"{line['seconds'] * 1e6:.1f}", f"{line['bytes'] / line['seconds'] / 1e9:.1f}",
                         f"{line['operations'] / line['seconds'] / 1e12:.2f}", line["unit"], "" if share is None else f"{share:.2f}",
                         f"{line['estimated'] * 1e6:.1f}", "" if ratio is None else f"{ratio:.2f}", mark])
        if rows or refused:
            report.text(f"### {title}, {name}\n")
        if rows:
            report.text(table(["what", "kernel", "us", "GB/s", "T/s", "bound by", "share of that rate", "estimated us", "measured / estimated", "goal"], rows))
            report.text()
        if refused:
            report.text("Not offered:\n")
            report.text("\n".join(refusals(refused)))
            report.text()
        if late:
            report.leave_out(f"speed of {name}, {title.lower()}: {len(late)} of {len(late) + len(rows)}", "no time was left, from " + late[0] + " on")
    if estimated:
        report.text(f"Of {estimated} estimates {estimated - len(off)} are within a factor of {ESTIMATE} of the measured time"
                    + (": all but " + "; ".join(f"{what} ({ratio:.2f})" for what, ratio in off) if off else "") + ".\n")
    if not goals:
        return
    for goal, limits in GOALS.items():
        if goal in worst:
            share, what = worst[goal]
            report.goal(f"{goal} ({name})", share, *limits, f"lowest: {what}")
        else:
            report.leave_out(f"goal of {name}: {goal}", "nothing was measured that it is set for")
    if estimated:
        report.goal(f"estimates within {ESTIMATE} ({name})", (estimated - len(off)) / estimated, 1, None, "share of those measured")
    else:
        report.leave_out(f"goal of {name}: estimates within {ESTIMATE}", "there is no estimate with a time")


def measure(machine, report, name, scale):
    """Rates of the card and of the plugin's kernels; the rates by unit."""
    report.heading(f"Speed: {name}")
    card = machine.cards[name][0]
    words = [machine.program("measure_card"), f"{machine.plugins[name]}.so", "--card", card["card"]]
    seconds = max(report.left() - 10, 1)
    # It ends by itself when its time is up; what comes after the seconds is what it has begun.
    done = Done(words + ["--seconds", f"{seconds:.0f}"] + (["--small"] if scale.small_speed else []), machine.environment, seconds + 60)
    lines = done.lines()
    if done.status != 0 or not lines:
        report.fail(f"speed of {name}", f"status {done.status}\n{done.err}")
    rates = {line["unit"]: line["rate"] for line in lines if line["topic"] == "rate"}
    if machine.is_trial(name):
        report.text("It does not serve this card: its code was made from an older virtual architecture, to try it. No goals.\n")
    judge(report, name, lines, rates, goals=not scale.small_speed and not machine.is_trial(name))
    if scale.made_goals and not machine.is_trial(name):
        report.heading(f"Speed, made up: {name}")
        report.text("What would be measured on a card, with the plan's estimates in place of times and the card's description in place of rates: it shows\n"
                    "that goals are computed, and says nothing about a card.\n")
        planned = report.run(f"plans of {name}", words + ["--plan"], machine.environment, 300)
        made_rates, made_lines = made_up(planned.lines(), card)
        judge(report, f"{name}, made up", made_lines, made_rates)
    return rates
