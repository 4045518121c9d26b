#!/usr/bin/env python3
"""Makes the headers of a pretended next minor version: each struct with one more field, "later_field".

    later_headers.py FROM TO     folders with *.h
"""

import pathlib
import re
import sys

SOURCE, TARGET = map(pathlib.Path, sys.argv[1:])
VALUES = {"tsr_range", "tsr_chain"}  # never grow
PROVISIONAL = {"tsr_device", "tsr_device_provider", "tsr_launch"}  # go by TSR_DEVICE_ABI


def grown(match):
    name = match.group(1)
    return match.group(0) if name in VALUES | PROVISIONAL else f"\n    uint64_t later_field;\n}} {name};"


def with_new_sizes(text, minor):
    head, tail = text.split("#define TSR_DEVICE_STRUCT_SIZES")
    rows = re.findall(r"X\((tsr_\w+), (\d+), (\d+)\)", head)
    latest = {name: int(size) for name, _, size in rows if name not in VALUES}
    more = "".join(f" X({name}, {minor}, {size + 8})" for name, size in latest.items())
    name, since, size = rows[-1]
    last = f"X({name}, {since}, {size})"
    assert last in head
    return head.replace(last, last + more) + "#define TSR_DEVICE_STRUCT_SIZES" + tail


minor = int(re.search(r"#define TSR_ABI_MINOR (\d+)", (SOURCE / "abi.h").read_text()).group(1)) + 1
TARGET.mkdir(parents=True, exist_ok=True)
count = 0
for header in sorted(SOURCE.glob("*.h")):
    text, structs = re.subn(r"\n\} (tsr_\w+);", grown, header.read_text())
    count += structs
    text = re.sub(r"(#define TSR_ABI_MINOR) \d+", rf"\1 {minor}", text)
    if header.name == "sizes.h":
        text = with_new_sizes(text, minor)
    (TARGET / header.name).write_text(text)
if count < 10:
    sys.exit(f"later_headers: only {count} structs found in {SOURCE}")
