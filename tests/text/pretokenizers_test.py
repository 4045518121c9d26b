#!/usr/bin/env python3
"""Every pre-tokenizer against the published expressions in the package `tokenizers`: characters of every category in many
surroundings, and random mixes, are cut at the same places.

    pretokenizers_test.py SPLIT_TEXT [--all] [--mixes N] [--seed N] [NAME...]
Without --all, of the characters the first and last of every run of one category, and those of some blocks. Exits with 77
(skipped) without the package."""
import argparse
import array
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

try:
    import tokenizers  # noqa: F401
except ImportError:
    print("skipped: this Python lacks tokenizers")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testing" / "goldens" / "record_tokenizer_goldens"))
import pipelines  # noqa: E402
import texts  # noqa: E402

# Where a character stands: between letters, digits, blanks, line ends, punctuation, apostrophes, marks, others of its kind.
SURROUNDINGS = ["a{0}b", " {0} ", "1{0}22", "\n{0}\n", "'{0}s", "!{0}/{0}", "A{0}a{0}{0}B", "\u4e2d{0}\u0301{0} {0}x", "  {0}\t\r\n{0}'S"]
JOINTS = [" ", "\n", "", "x", ".", "  \n ", "7"]


def characters(everything):
    last = None
    # The package is of a later version of Unicode than this Python: what it adds are further edges.
    category = [unicodedata.category(chr(c)) for c in range(0x110000)]
    for code in range(0x110000):
        if category[code] == "Cs":
            continue
        edge = category[code] != last or code + 1 == 0x110000 or category[code + 1] != category[code]
        last = category[code]
        if everything or edge or code < 0x600 or 0x2000 <= code < 0x2100 or 0x3000 <= code < 0x3130 or code % 997 == 0:
            yield chr(code)


def documents(options):
    """Texts of some 100,000 characters: long enough to be quick, short enough to show where a difference is."""
    rng = random.Random(options.seed)
    whole, size = [], 0
    for one in characters(options.all):
        for surrounding in SURROUNDINGS:
            part = surrounding.format(one) + rng.choice(JOINTS)
            whole.append(part)
            size += len(part)
        if size > 100_000:
            yield "".join(whole)
            whole, size = [], 0
    yield "".join(whole)
    pool = list(characters(True))
    units = texts.random_texts(options.mixes, options.seed) + ["".join(rng.choice(pool) for _ in range(rng.randint(1, 6))) for _ in range(options.mixes)]
    units += texts.all_texts()
    rng.shuffle(units)
    for begin in range(0, len(units), 2000):
        yield "".join(unit + rng.choice(JOINTS) for unit in units[begin:begin + 2000])


def ours(program, name, text):
    done = subprocess.run([program, name], input=text.encode(), stdout=subprocess.PIPE, check=True)
    lengths = array.array("I")
    lengths.frombytes(done.stdout)
    return lengths


def differences(program, name, cutter, text):
    published = [(len(pretoken.encode()), pretoken) for pretoken, _ in cutter.pre_tokenize_str(text)]
    lengths = ours(program, name, text)
    if [length for length, _ in published] == lengths.tolist():
        return 0
    # Cuts by their place, so that one difference is not many.
    edges, at = set(), 0
    for length in lengths:
        at += length
        edges.add(at)
    others, at = set(), 0
    for length, _ in published:
        at += length
        others.add(at)
    raw = text.encode()
    wrong = sorted(edges ^ others)
    for place in wrong[:5]:
        around = raw[max(0, place - 12):place].decode(errors="ignore"), raw[place:place + 12].decode(errors="ignore")
        print(f"{name}: {'cut here only' if place in edges else 'not cut'}: {ascii(around[0])} | {ascii(around[1])}")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--mixes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    known = subprocess.run([options.program, "--names"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    cutters = {**pipelines.STEPS, **pipelines.SAME_CUTS}
    wrong = 0
    if sorted(known) != sorted(cutters):
        print("known here only or there only:", sorted(set(known) ^ set(cutters)))
        wrong += 1
    all_texts = list(documents(options))
    for name in options.names or known:
        if name not in pipelines.STEPS:
            continue  # the same cuts as another's
        cutter = pipelines.cut(name)
        found = sum(differences(options.program, name, cutter, text) for text in all_texts)
        print(f"{name}: {found} differences" if found else f"{name}: equal", flush=True)
        wrong += found
    print(f"{sum(map(len, all_texts)):,} characters a pre-tokenizer, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
