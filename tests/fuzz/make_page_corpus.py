#!/usr/bin/env python3
"""Writes the seeds of page_fuzzer: make_page_corpus.py FOLDER."""
import hashlib
import pathlib
import struct
import sys
import zlib

IDENTITY = b"format: 1\nmodel: seed\n"
BYTES = (16, 8)  # of pages of the two groups


def record(parent, tokens, group=0, payload=None, identity=IDENTITY, form=1, count=None, size=None):
    payload = bytes(range(BYTES[group] if group < 2 else 4)) if payload is None else payload
    head = struct.pack("<8sIIIIQ", b"TSRPAGE\0", form, group, len(tokens) if count is None else count, zlib.crc32(payload),
                       len(payload) if size is None else size)
    head += hashlib.sha256(identity).digest() + parent + bytes(16)
    head += struct.pack("<64i", *tokens[:64], *[0] * (64 - len(tokens))) + bytes(28)
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def path(parent, tokens):
    return hashlib.sha256(parent + struct.pack(f"<{len(tokens)}i", *tokens)).digest()[:16]


def slot(records, tokens, pages=None, identity=IDENTITY, form=1, identity_bytes=None):
    head = struct.pack("<8sIIIII", b"TSRSLOT\0", form, len(identity) if identity_bytes is None else identity_bytes, tokens,
                       len(records) if pages is None else pages, zlib.crc32(identity))
    return head + struct.pack("<I", zlib.crc32(head)) + identity + b"".join(records)


ROOT = bytes(16)
A, B, C = list(range(64)), list(range(64, 128)), [7, 8, 9]
A1 = path(ROOT, A)
B1 = path(A1, B)
WHOLE = [record(ROOT, A), record(A1, B), record(A1, B, 1), record(B1, C), record(B1, C, 1)]
ONE = slot([record(ROOT, C)], 3)
SEEDS = {
    "record": record(ROOT, A),
    "record-short": record(A1, C),
    "record-group": record(ROOT, A, 7),
    "record-format": record(ROOT, A, form=2),
    "record-empty": record(ROOT, [], count=0),
    "record-long": record(ROOT, A, count=65),
    "record-count-large": record(ROOT, C, count=0xFFFFFFFF),
    "record-bytes-large": record(ROOT, C, size=0xFFFFFFFFFFFFFFFF),
    "record-unused": record(ROOT, A, count=3),
    "record-cut": record(ROOT, A)[:200],
    "identity": IDENTITY,
    "identity-colon": b"a:b\n",
    "identity-control": b"model: \x1b[31m\n",
    "identity-utf8": b"model: \xff\n",
    "identity-twice": b"a: 1\na: 2\n",
    "identity-no-end": b"model: a",
    "path": A1.hex().encode(),
    "path-capital": A1.hex().upper().encode(),
    "slot": slot(WHOLE, 131),
    "slot-one": ONE,
    "slot-none": slot([], 0),
    "slot-format": slot([record(ROOT, C)], 3, form=9),
    "slot-other": slot([record(ROOT, C, identity=b"format: 1\nmodel: x\n")], 3, identity=b"format: 1\nmodel: x\n"),
    "slot-other-page": slot([record(ROOT, C, identity=b"x: y\n")], 3),
    "slot-cut": slot(WHOLE, 131)[:-3],
    "slot-cut-record": slot(WHOLE, 131)[:700],
    "slot-longer": ONE + b"x",
    "slot-pages-large": slot([record(ROOT, C)], 3, pages=0xFFFFFFFF),
    "slot-tokens-large": slot([record(ROOT, C)], 0xFFFFFFFF),
    "slot-identity-large": slot([], 0, identity_bytes=0xFFFFFFFF),
    "slot-bytes-large": slot([record(ROOT, C, size=1 << 62)], 3),
    "slot-order": slot([record(A1, B), record(ROOT, A)], 128),
    "slot-window-first": slot([record(ROOT, A, 1), record(ROOT, A)], 64),
    "slot-window-twice": slot([record(ROOT, A), record(ROOT, A, 1), record(ROOT, A, 1)], 64),
    "slot-behind-short": slot([record(ROOT, C), record(path(ROOT, C), A)], 67),
    "slot-many-tokens": slot([record(ROOT, A), record(A1, B)], 100),
    "slot-damaged": slot([record(ROOT, C)[:-1] + b"\xff"], 3),
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, seed in SEEDS.items():
    (folder / name).write_bytes(seed)
