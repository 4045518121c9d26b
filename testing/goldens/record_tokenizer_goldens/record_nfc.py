#!/usr/bin/env python3
"""Records what Python's unicodedata makes of texts in Normalization Form C: tests/text/data/nfc.json, pairs of a text and its form."""
import json
import random
import sys
import unicodedata
from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "tests" / "text" / "data"


def nfd(text):
    return unicodedata.normalize("NFD", text)


def main():
    choice = random.Random(1).choice
    known = [chr(c) for c in range(1, sys.maxunicode + 1) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]
    marks = {}
    for c in known:
        if unicodedata.combining(c):
            marks.setdefault(unicodedata.combining(c), []).append(c)
    every_mark = [c for group in marks.values() for c in group]
    composed = [c for c in known if nfd(c) != c and not 0xAC00 <= ord(c) < 0xD7A4]
    parts = sorted({x for c in composed for x in nfd(c)})
    syllables = ["\u1100\u1161", "\u1112\u1161\u11ab", "\uac00\u11a8", "\uac01\u11a8", "\u1100\uac00", "\u1161\u11a8", "\ud7a3", nfd("\ud7a3")]
    texts = ["".join(composed[i:i + 40]) for i in range(0, len(composed), 40)]           # singletons and exclusions among them
    texts += [" ".join(nfd(c) for c in composed[i:i + 40]) for i in range(0, len(composed), 40)]
    for first in marks:                                                                  # each class before and behind each other
        texts.append("".join("e" + choice(marks[first]) + choice(marks[second]) + choice(marks[first]) for second in marks))
    texts += syllables + [nfd(chr(c)) + "\u11a8" for c in range(0xAC00, 0xD7A4, 97)]
    for _ in range(600):
        texts.append("".join(choice(choice([parts, composed, every_mark, known, "abc ", syllables])) for _ in range(choice(range(2, 12)))))
    texts.append("a" + "".join(choice(every_mark) for _ in range(2000)))
    pairs = [[text, unicodedata.normalize("NFC", text)] for text in texts]
    (DATA / "nfc.json").write_text("[" + ",\n".join(json.dumps(pair, separators=(",", ":"), ensure_ascii=False) for pair in pairs) + "]\n", encoding="utf-8")
    print(len(pairs), "texts,", sum(a != b for a, b in pairs), "of them change, Unicode", unicodedata.unidata_version)


if __name__ == "__main__":
    main()
