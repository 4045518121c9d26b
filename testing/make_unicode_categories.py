#!/usr/bin/env python3
"""Writes core/text/unicode_categories_table.cpp: the general category of every code point, and the script Han.

    pip install unicodedata2==16.0.0 && testing/make_unicode_categories.py > core/text/unicode_categories_table.cpp
"""
import re

import unicodedata2 as unicode

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
# Han characters whose names do not say so (Scripts.txt): marks of iteration, numerals of Suzhou, marks of readings.
HAN_BY_NUMBER = {0x3005, 0x3007, *range(0x3021, 0x302A), *range(0x3038, 0x303C), 0x16FE2, 0x16FE3, 0x16FF0, 0x16FF1}
HAN_BY_NAME = re.compile(r"CJK (UNIFIED|COMPATIBILITY) IDEOGRAPH-|CJK RADICAL |KANGXI RADICAL ")


def is_han(code):
    return code in HAN_BY_NUMBER or HAN_BY_NAME.match(unicode.name(chr(code), "")) is not None


def runs(values):
    """(first, value) wherever a value differs from the one before."""
    last = None
    for at, value in enumerate(values):
        if value != last:
            yield at, value
        last = value


def lines(items, width=120):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            yield line
            line = "   "
        line += " " + item + ","
    yield line


def main():
    categories = [unicode.category(chr(c)) for c in range(0x110000)]
    by_category = [f"{first << 8 | CATEGORIES.index(value):#x}" for first, value in runs(categories)]
    han = [first for first, _ in runs([is_han(c) for c in range(0x110000)])][1:]
    print(f"// Written by testing/make_unicode_categories.py from Unicode {unicode.unidata_version}.")
    print('#include "core/text/unicode_categories.hpp"\n\nnamespace tessera::text {\nnamespace {\n')
    print("// clang-format off")
    print(f"constexpr uint32_t kCategoryRuns[{len(by_category)}] = {{")
    print("\n".join(lines(by_category)))
    print("};\n")
    print(f"constexpr uint32_t kHanEdges[{len(han)}] = {{")
    print("\n".join(lines([f"{c:#x}" for c in han])))
    print("};\n// clang-format on\n\n}  // namespace\n")
    print(f'const char* const kUnicodeVersion = "{unicode.unidata_version}";\n')
    print("std::span<const uint32_t> category_runs() noexcept {\n    return kCategoryRuns;\n}\n")
    print("std::span<const uint32_t> han_edges() noexcept {\n    return kHanEdges;\n}\n\n}  // namespace tessera::text")


if __name__ == "__main__":
    main()
