"""The static gate: figures of GPU kernels that a build must keep (cuda_bounds.toml). For testing/cuda_code/cuda_static.

Figures are: kernels, as `cuda_static.read` gives them; flights, {(kernel, card): bytes in flight over what the card needs}; and the tables of
`testing/cuda_code/cuda_sass`, {(kernel or format, card): share}.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys
import tomllib

FILE = pathlib.Path(__file__).resolve().parent / "cuda_bounds.toml"
SASS = pathlib.Path(__file__).resolve().parent / "cuda_sass"
# What precedes it is written by hand and stays; what follows is written by `record`.
MARK = "# Recorded by testing/cuda_code/cuda_static BUILD --record."


@dataclasses.dataclass
class Figures:
    kernels: list
    blocks: dict     # (module, kernel, architecture): blocks a multiprocessor
    flights: dict    # (kernel, card)
    attention: dict  # prompts at 576/512: (kernel, card): share of the tensor rate
    products: dict   # of many rows: (format and rows of a tile, card): share of the tensor rate
    one_row: dict    # (kernel, card): the instructions' time over the memory's, of the required lengths the worst
    lacking: list = dataclasses.field(default_factory=list)  # lines on kernels without an instruction that they must have


def table_of(arguments, value, key=lambda row: (row[0], row[1])):
    """The rows of a table that testing/cuda_code/cuda_sass prints in Markdown; of several for a kernel and a card, `value` chooses."""
    done = subprocess.run([sys.executable, str(SASS), *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"cuda_static: {done.stderr.strip()}")
    found = {}
    for line in done.stdout.splitlines()[2:]:
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if key(row) in found:
            found[key(row)] = value(found[key(row)], float(row[-1]))
        else:
            found[key(row)] = float(row[-1])
    return found


def products_of(arguments):
    """The table by format, whose cells are 'share of tiles of 128 rows / of 64 rows'."""
    done = subprocess.run([sys.executable, str(SASS), *arguments, "--products"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"cuda_static: {done.stderr.strip()}")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    found = {}
    for row in lines[2:]:
        for card, cell in zip(lines[0][1:], row[1:]):
            for rows, share in zip(("128", "64"), cell.split(" / ") if cell else ()):
                found[f"{row[0]} {rows}", card] = float(share)
    return found


def lacking(build, required, nvdisasm):
    """Kernels whose machine code lacks what `required.instructions` names, a line each."""
    found = []
    for bound in required.get("instructions", []):
        files = [str(p) for p in sorted(build.glob(f"plugins/*/cuda/{bound['modules']}/*.cubin"))]
        if not files:
            continue
        done = subprocess.run([sys.executable, str(SASS), *files, "--kernel", bound["kernel"], "--has", *bound["has"],
                               *(["--nvdisasm", nvdisasm] if nvdisasm else [])], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"cuda_static: {done.stderr.strip()}")
        found += done.stdout.splitlines()
    return found


def shares(build, required, nvdisasm):
    """What testing/cuda_code/cuda_sass says of the kernels with bounds: attention, products, one_row. Of machine code that nvdisasm reads."""
    def cubins(part):
        return [str(p) for p in sorted(build.glob(f"plugins/cuda_ampere/cuda/*{part}*/*.cubin"))]
    more = ["--nvdisasm", nvdisasm] if nvdisasm else []
    attention = products = one_row = {}
    if not required:
        return attention, products, one_row
    if files := cubins("flash_mla"):
        names = "|".join({bound["kernel"] for bound in required["attention"]})
        attention = table_of([*files, "--table", "--kernel", f"^({names})$", *more], min)
    if files := cubins("product") + cubins("staged"):
        products = products_of([*files, *more])
    if files := cubins("few_rows"):
        names = "|".join(required["one_row"]["kernels"])
        lengths = map(str, required["one_row"]["elements"])
        one_row = table_of([*files, "--one-row", "--kernel", f"^({names})$", *more, "--elements", *lengths], max)
    return attention, products, one_row


# Of a plugin without a file of bounds.
DEFAULTS = {"required": {}, "tolerance": {"registers": 8, "share": 0.02}}


def load(file=FILE):
    path = pathlib.Path(file)
    return DEFAULTS | (tomllib.loads(path.read_text()) if path.exists() else {})


def failures(figures, bounds):
    """Each figure that is worse than its bound, in a line; empty if none is."""
    found = []
    for kernel in figures.kernels:
        name = f"{kernel['module']}.{kernel['name']}, sm_{kernel['sm']}"
        if kernel["stores"] or kernel["loads"]:
            found.append(f"{name}: spills registers: {kernel['stores']} bytes of stores, {kernel['loads']} of loads, stack {kernel['stack']}")
        if not kernel["threads"] or not kernel["registers"]:
            found.append(f"{name}: no launch bounds or no registers")
        elif figures.blocks[kernel["module"], kernel["name"], kernel["sm"]] < 1:
            found.append(f"{name}: no block fits on a multiprocessor")
    return found + (required_failures(figures, bounds["required"]) if bounds["required"] else []) + recorded_failures(figures, bounds)


def required_failures(figures, required):
    found = list(figures.lacking)
    one_row, attention = required["one_row"], required["attention_in_flight"]
    for (kernel, card), share in figures.flights.items():
        least = None
        if kernel in one_row["kernels"]:
            least = one_row["in_flight"]
        elif kernel in attention["kernels"]:
            least = attention["in_flight"]
        if least is not None and share < least:
            found.append(f"{kernel}, {card}: bytes in flight are {share:.2f} of what the card needs; required: {least:.2f}")
    for (kernel, card), share in figures.one_row.items():
        most = one_row.get("known", {}).get(kernel, {}).get(card, one_row["instructions"])
        if share > most:
            found.append(f"{kernel}, {card}: instructions take {share:.2f} of the memory's time; required: at most {most:.2f}")
    for bound in required["attention"]:
        share = figures.attention.get((bound["kernel"], bound["card"]))
        if share is not None and share < bound["share"]:
            found.append(f"{bound['kernel']}, {bound['card']}: {share:.2f} of the tensor rate; required: {bound['share']:.2f}")
    products = required["products"]
    for card, variants in products["cards"].items():
        least = products.get("shares", {}).get(card, products["share"])
        best = {}  # by format: a card takes the variant that is made for it
        for (product, of), share in figures.products.items():
            name = re.fullmatch(f"(.*?)({'|'.join(variants)}) 128", product)
            if of == card and name:
                best[name.group(1)] = max(share, best.get(name.group(1), 0))
        found += [f"product_{name}_128, {card}: {share:.2f} of the int8 rate; required: {least:.3g}"
                  for name, share in best.items() if share < least * products.get("formats", {}).get(name, 1)]
    return found


def recorded_failures(figures, bounds):
    found, seen = [], set()
    slack = bounds["tolerance"]
    recorded = bounds.get("kernels", {})
    built = {(k["module"].split("__")[0], k["sm"]) for k in figures.kernels}
    for kernel in figures.kernels:
        module, name, sm = kernel["module"], kernel["name"], kernel["sm"]
        seen.add((module, name, sm))
        if not bounded(recorded, module, sm):
            continue
        bound = recorded.get(module, {}).get(name, {}).get(str(sm))
        if bound is None:
            found.append(f"{module}.{name}, sm_{sm}: has no bound; record one")
            continue
        registers, blocks = bound
        if kernel["registers"] > registers + slack["registers"]:
            found.append(f"{module}.{name}, sm_{sm}: {kernel['registers']} registers; recorded: {registers}")
        if figures.blocks[module, name, sm] < blocks:
            found.append(f"{module}.{name}, sm_{sm}: {figures.blocks[module, name, sm]} blocks a multiprocessor; recorded: {blocks}")
    for module, names in recorded.items():
        for name, by_arch in names.items():
            for sm in map(int, by_arch):
                if (module.split("__")[0], sm) in built and (module, name, sm) not in seen:
                    found.append(f"{module}.{name}, sm_{sm}: is recorded, and not in the build")
    for section, values in shares_of(figures):
        cards = {card for _, card in values} & cards_of(bounds.get(section, {}))
        for (name, card), value in values.items():
            bound = bounds.get(section, {}).get(name, {}).get(card)
            if bound is None:
                if card in cards:
                    found.append(f"{section}: {name}, {card}: has no bound; record one")
            elif (value > bound + slack["share"]) if section == "one_row_instructions" else (value < bound - slack["share"]):
                found.append(f"{section}: {name}, {card}: {value:.2f}; recorded: {bound:.2f}")
        found += [f"{section}: {name}, {card}: is recorded, and not in the build" for name, by_card in bounds.get(section, {}).items()
                  for card in by_card if card in cards and (name, card) not in values]
    return found


def bounded(recorded, module, sm):
    """Whether figures of this architecture were recorded for the plugin of the module."""
    plugin = module.split("__")[0]
    return any(str(sm) in by_arch for other, names in recorded.items() if other.split("__")[0] == plugin for by_arch in names.values())


def shares_of(figures):
    """Sections of the bounds, and the figures that they are for."""
    return (("in_flight", figures.flights), ("tensor_attention", figures.attention), ("tensor_products", figures.products),
            ("one_row_instructions", figures.one_row))


def cards_of(section):
    return {card for by_card in section.values() for card in by_card}


def unbounded(figures, bounds):
    """Of the build: architectures of plugins, and cards, for which nothing was recorded."""
    found = {f"{k['module'].split('__')[0]} for sm_{k['sm']}" for k in figures.kernels
             if not bounded(bounds.get("kernels", {}), k["module"], k["sm"])}
    for section, values in shares_of(figures):
        found |= {f"{section} of {card}" for _, card in values if card not in cards_of(bounds.get(section, {}))}
    return sorted(found)


def key(text):
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else f'"{text}"'


def record(figures, bounds, file=FILE):
    """Writes the figures as bounds; those of architectures and cards that the build does not have stay."""
    kernels = {}
    built = {(k["module"].split("__")[0], k["sm"]) for k in figures.kernels}
    for module, names in bounds.get("kernels", {}).items():
        for name, by_arch in names.items():
            for sm, bound in by_arch.items():
                if (module.split("__")[0], int(sm)) not in built:
                    kernels.setdefault(module, {}).setdefault(name, {})[sm] = bound
    for k in figures.kernels:
        kernels.setdefault(k["module"], {}).setdefault(k["name"], {})[str(k["sm"])] = [
            k["registers"], figures.blocks[k["module"], k["name"], k["sm"]]]
    lines = [MARK, "# By architecture: registers a thread, and blocks a multiprocessor."]
    for module in sorted(kernels):
        lines += ["", f"[kernels.{key(module)}]"]
        for name in sorted(kernels[module]):
            cells = sorted(kernels[module][name].items(), key=lambda item: int(item[0]))
            lines.append(f"{key(name)} = {{ " + ", ".join(f"{sm} = [{r}, {b}]" for sm, (r, b) in cells) + " }")
    for section, values in shares_of(figures):
        cards = {card for _, card in values}
        merged = {name: {c: v for c, v in by_card.items() if c not in cards} for name, by_card in bounds.get(section, {}).items()}
        for (name, card), value in values.items():
            merged.setdefault(name, {})[card] = round(value, 2)
        lines += ["", f"[{section}]"] if any(merged.values()) else []
        for name in sorted(merged):
            if merged[name]:
                lines.append(f"{key(name)} = {{ " + ", ".join(f"{key(c)} = {v}" for c, v in sorted(merged[name].items())) + " }")
    path = pathlib.Path(file)
    kept = path.read_text().split(MARK)[0] if path.exists() else ""
    path.write_text(kept + "\n".join(lines) + "\n")
