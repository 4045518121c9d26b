#!/usr/bin/env python3
"""Checks that files of one library can be compiled as one (TSR_UNITY) and mean the same.

    check_unity_names.py [ROOT]

Two functions of one name in the anonymous namespaces of two files, or one there and one in a header of the library,
become overloads of each other, and a call may silently mean the other one. Two types or constants of one name do not
compile, but only once a new file has moved both into one unit. Prints one line a name and exits with 1 if there are any.
"""

import collections
import pathlib
import re
import sys

LIBRARIES = ["core/*", "apps/*", "testing/conformance"]
ALONE = re.compile(r"/tool_reader_d|/literal_json")  # compiled by themselves
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)
FUNCTION = re.compile(r"(?!return\b|using\b|namespace\b|struct\b|class\b|enum\b|template\b)[A-Za-z_][\w:<>,&*\s\[\]]*?[\s&*]"
                      r"([A-Za-z_]\w*)\(")
TYPE = re.compile(r"(?:struct|class|enum|enum class) (\w+)(?: final)?(?: :[^{]*)? \{")
CONSTANT = re.compile(r"(?:constexpr|constinit|const)\b[^(=]*[\s&*](\w+)(?:\[\w*\])?(?: =|\{|;)|, (k[A-Z]\w*) = ")


def names(file, anonymous):
    inside = not anonymous
    for line in file.read_text().splitlines():
        if anonymous and line.startswith("namespace {"):
            inside = True
        elif anonymous and line.startswith("}  // namespace"):
            inside = False
        elif inside and (found := FUNCTION.match(line)):
            yield found.group(1)
        elif inside and anonymous and (found := TYPE.match(line)):
            yield found.group(1)
        elif inside and anonymous and CONSTANT.match(line):
            for found in CONSTANT.finditer(line):
                yield found.group(1) or found.group(2)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    bad = 0
    for pattern in LIBRARIES:
        for library in sorted(root.glob(pattern)):
            owners = collections.defaultdict(set)
            local = set()
            for file in library.rglob("*.[ch]pp"):
                path = file.relative_to(root).as_posix()
                if ALONE.search(path):
                    continue
                # A namespace of its own hides what is outside.
                outer = NAMESPACE.search(file.read_text())
                for name in names(file, file.suffix == ".cpp"):
                    key = (outer.group(1) if outer else "", name)
                    owners[key].add(path)
                    if file.suffix == ".cpp":
                        local.add(key)
            for key in sorted(local):
                if len(owners[key]) > 1:
                    print(f"{key[1]}: in {', '.join(sorted(owners[key]))}: give it another name in one of them")
                    bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
