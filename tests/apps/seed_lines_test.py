"""Every command line in a folder of texts is planned by rig_lines_test: seed_lines_test.py FOLDER RIG_LINES.

A command line is a program llama-SOMETHING with options, or options alone at the beginning of lines: people leave the program out. Lines that end in a
backslash go on. What has no counterpart in a plan is not compared: the program, files and names of models, and what only benchmarks take. Of a list of values, which
benchmarks try in turn, one is enough.
"""

import pathlib
import re
import shlex
import sys

# Names of one option, by the first of them.
NAMES = [("-c", "--ctx-size", "-ctx-size"), ("-t", "--threads"), ("-ngl", "--n-gpu-layers"), ("-ot", "--override-tensor"), ("-ts", "--tensor-split"),
         ("-ctk", "--cache-type-k"), ("-ctv", "--cache-type-v"), ("-fa", "--flash-attn"), ("-mg", "--main-gpu")]
CANONICAL = {name: names[0] for names in NAMES for name in names}
# With a value: of models, programs and benchmarks.
LEFT_OUT = {"-m": 1, "--model": 1, "-a": 1, "--alias": 1, "-p": 1, "-n": 1, "-gp": 1, "-r": 1, "-w": 1, "-o": 1, "-thp": 1}
OPTION = re.compile(r"--?[a-zA-Z]")
PROGRAM = re.compile(r"(?:^|[\s`/])llama-(?:server|cli|bench|sweep-bench|perplexity)\s+(?P<options>-.*)")


def joined(lines):
    """Lines as a shell would read them, each with the number of its first one. Quotations of other messages lose their marks."""
    whole, first = "", None
    for number, line in enumerate(lines, 1):
        line = re.sub(r"^(?:> ?)+", "", line).rstrip()
        first = first or number
        if line.endswith("\\"):
            whole += line[:-1] + " "
            continue
        ends = line.startswith("```") and whole  # what goes on ends with its block
        yield first, whole if ends else whole + line
        whole, first = "", None


def commands(text):
    """(line, options as a string, whether they are all of a command's) of each command line."""
    options, first = [], None
    for number, line in joined(text.splitlines()):
        if re.match(r"\s*-{1,2}[a-zA-Z][\w-]*(\s|$)", line):
            first = first or number
            options.append(line.strip())
            continue
        if options:
            whole = " ".join(options)
            # Without a model they are what somebody changes in a command of before.
            yield first, whole, re.search(r"(^|\s)(-m|--model)\s", whole) is not None
            options, first = [], None
        if match := PROGRAM.search(line):
            yield number, match.group("options").split("`")[0], True
        elif match := re.match(r"\(gdb\) run\s+(-.*)", line):
            yield number, match.group(1), True


def options_of(text):
    """{option: list of its values}, with those of a list of values apart. None if the words are none of a command."""
    words, found, at = [], {}, 0
    for word in shlex.split(text):
        if word == "|" or word.startswith("2>"):
            break
        words.append(word)
    while at < len(words):
        name = words[at]
        if not OPTION.match(name):
            return None
        has_value = at + 1 < len(words) and not OPTION.match(words[at + 1])
        value = words[at + 1] if has_value else ""
        at += 2 if has_value else 1
        if name in LEFT_OUT:
            continue
        name = CANONICAL.get(name, name)
        if (name, value) == ("--mmap", "0"):
            name, value = "--no-mmap", ""
        if name in ("-fa", "-fmoe", "-rtr") and value == "1":
            value = ""
        found.setdefault(name, []).append(value)
    return found


def is_planned_by(command, line, whole):
    """Whether a line has the options of a command (`whole`: and no others), each with its values, or with one of a list of them."""
    if command.keys() != line.keys() if whole else not command.keys() <= line.keys():
        return False
    for name, values in command.items():
        if line[name] == values:
            continue
        if name in ("-ts", "-ot", "-ser") or len(values) != 1 or line[name][0] not in values[0].split(","):
            return False
    return True


def rig_lines(text):
    for _, line in joined(line for line in text.splitlines() if not line.startswith("#")):
        if " | " in line:
            # Nothing is quoted there, and a backslash is one.
            yield options_of(line.split(" | ", 1)[1].replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)"))


def main():
    if not pathlib.Path(sys.argv[1]).is_dir():
        print(f"skipped: there is no {sys.argv[1]}, the texts of people that the lines are from")
        return 77
    folder, lines = pathlib.Path(sys.argv[1]), list(rig_lines(pathlib.Path(sys.argv[2]).read_text()))
    total, missing = 0, 0
    for file in sorted(folder.glob("*.txt")):
        for number, text, whole in commands(file.read_text(errors="replace")):
            command = options_of(text)
            # One option is part of a sentence, or asks for a version.
            if command is None or len(command) < 2:
                continue
            total += 1
            if not any(is_planned_by(command, line, whole) for line in lines):
                missing += 1
                print(f"{file.name}:{number}: not in {sys.argv[2]}: {text}")
    print(f"{total} command lines, {missing} of them not planned")
    return 1 if missing or not total else 0


if __name__ == "__main__":
    sys.exit(main())
