#!/usr/bin/env python3
"""Write the codebooks of iq1, iq2 and iq3 as a C++ header, from the public `gguf` package.

    write_codebooks.py > sdk/formats/include/tessera/formats/codebooks.hpp && clang-format -i that file

An entry is one 16-bit number: the codes of its 8 or 4 elements, the first in the low bits. What a code stands for is a
table of its own.
"""
import gguf.quants as q
import numpy as np

BOOKS = [
    # name, class, the values of the codes, elements of an entry, what it is
    ("kIq1Grid", q.IQ1_S, (-1, 0, 1), 8, "iq1_s and iq1_m: 8 of {-1, 0, 1}"),
    ("kIq2XxsGrid", q.IQ2_XXS, (8, 25, 43), 8, "iq2_xxs: 8 of {8, 25, 43}"),
    ("kIq2XsGrid", q.IQ2_XS, (8, 25, 43), 8, "iq2_xs: 8 of {8, 25, 43}"),
    ("kIq2SGrid", q.IQ2_S, (8, 25, 43), 8, "iq2_s: 8 of {8, 25, 43}"),
    ("kIq3XxsGrid", q.IQ3_XXS, (4, 12, 20, 28, 36, 44, 52, 62), 4, "iq3_xxs: 4 of {4, 12, 20, 28, 36, 44, 52, 62}"),
    ("kIq3SGrid", q.IQ3_S, (1, 3, 5, 7, 9, 11, 13, 15), 4, "iq3_s: 4 of {1, 3, .. 15}"),
]


def main():
    print("""// The codebooks of iq1, iq2 and iq3: facts of the formats, from the public `gguf` package.
// Written by testing/goldens/record_goldens/write_codebooks.py.
//
// An entry holds the codes of 8 elements in 2 bits each or of 4 elements in 3 bits each, the first in the low bits.
#pragma once

#include <tessera/formats/freestanding.hpp>

namespace tessera::formats {
""")
    for name, kind, values, elements, what in BOOKS:
        kind.init_grid()
        grid = np.asarray(kind.grid).reshape(-1, elements).astype(int)
        codes = np.array([[values.index(v) for v in row] for row in grid])
        bits = 2 if elements == 8 else 3
        entries = (codes << (bits * np.arange(elements))).sum(axis=1)
        print(f"// {what}.\ninline constexpr uint16_t {name}[{len(entries)}] = {{")
        for at in range(0, len(entries), 16):
            print("    " + " ".join(f"0x{e:04x}," for e in entries[at:at + 16]))
        print("};\n")
    print("}  // namespace tessera::formats")


if __name__ == "__main__":
    main()
