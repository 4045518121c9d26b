#!/usr/bin/env python3
"""Writes the seeds of the model fuzzer and its dictionary: the keys and tensors of the golden models as text, and near misses.

    tests/fuzz/make_model_corpus.py tests/goldens tests/fuzz/model_corpus tests/fuzz/model.dict

A golden without a tokenizer: architectures do not read it. Needs the package gguf.
"""
import pathlib
import sys

import gguf

LETTERS = {gguf.GGUFValueType.STRING: "s", gguf.GGUFValueType.BOOL: "b", gguf.GGUFValueType.FLOAT32: "f", gguf.GGUFValueType.FLOAT64: "f"}


def number(value):
    return str(int(value)) if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def lines_of(path):
    reader = gguf.GGUFReader(path)
    said = {name: field.contents() for name, field in reader.fields.items()}
    lines = []
    for name, field in reader.fields.items():
        if name.startswith(("GGUF.", "tokenizer.", "seeded.", "general.")) and name != "general.architecture":
            continue
        kind, value = LETTERS.get(field.types[-1], "i"), said[name]
        array = field.types[0] == gguf.GGUFValueType.ARRAY
        lines.append(f"{name} {kind.upper() if array else kind} {' '.join(map(number, value)) if array else number(value)}")
    dims = said["seeded.dims"]
    for i, (name, kind) in enumerate(zip(said["seeded.names"], said["seeded.types"])):
        lines.append(f"+{name} {kind} " + " ".join(str(n) for n in dims[4 * i:4 * i + 4] if n))
    for tensor in reader.tensors:
        lines.append(f"+{tensor.name} {int(tensor.tensor_type)} " + " ".join(str(int(n)) for n in tensor.shape))
    return lines


def changed(lines, key, to):
    """`key` without the prefix; `to`: kind and value, or nothing to leave the line out."""
    wanted = f".{key} "
    return [line.split(" ")[0] + " " + to if wanted in line else line for line in lines if to or wanted not in line]


# Golden, key, what it becomes.
MISSES = [
    ("gpt-oss", "attention.sliding_window", "i 0"), ("gpt-oss", "attention.sliding_window", "i -1"), ("gpt-oss", "attention.sliding_window", ""),
    ("gpt-oss", "attention.sliding_window", "i 4294967296"), ("gpt-oss", "block_count", "i 2147483647"), ("gpt-oss", "block_count", "i 1000000"),
    ("gpt-oss", "attention.head_count_kv", "I 2 2"), ("gpt-oss", "attention.head_count_kv", "i 3"), ("gpt-oss", "attention.key_length", "i 33"),
    ("gpt-oss", "rope.scaling.factor", "f 0"), ("gpt-oss", "rope.scaling.factor", "f nan"), ("gpt-oss", "rope.scaling.type", "s none"),
    ("gpt-oss", "expert_used_count", "i 7"), ("gpt-oss", "expert_count", "i 0"), ("gpt-oss", "vocab_size", "i 4294967295"),
    ("mimo2", "attention.sliding_window_pattern", "B 1 0"), ("mimo2", "attention.sliding_window_pattern", "i 2"),
    ("mimo2", "attention.sliding_window_pattern", "I 2 -1 0"), ("mimo2", "attention.sliding_window_pattern", "S a b c"),
    ("mimo2", "attention.head_count_kv", "I 1 0 2"), ("mimo2", "attention.head_count_kv", "I 1 3 2"), ("mimo2", "rope.freq_base_swa", ""),
    ("mimo2", "attention.value_scale", "f -1"), ("mimo2", "rope.dimension_count", "i 0"), ("mimo2", "rope.dimension_count", "i 26"),
    ("gemma3", "attention.sliding_window_pattern", "i 0"), ("gemma3", "attention.key_length", "i 0"), ("gemma3", "embedding_length", "i 2147483647"),
    ("qwen3-window", "attention.sliding_window_pattern", "B"), ("qwen3-window", "attention.sliding_window_pattern", "F 1 0 1"),
    ("glm-dsa", "attention.indexer.types", "B 1"), ("smollm3", "block_count", "i 3"), ("v3-groups", "expert_group_count", "i 5"),
    ("v3-groups", "attention.kv_lora_rank", "i 2147483647"), ("ernie4_5-moe", "interleave_moe_layer_step", "i 0"),
    ("glm4moe", "nextn_predict_layers", "i 3"), ("glm4moe", "leading_dense_block_count", "i 9"), ("mistral4", "attention.temperature_length", "i 0"),
]


def main():
    goldens, folder, dictionary = map(pathlib.Path, sys.argv[1:4])
    folder.mkdir(parents=True, exist_ok=True)
    all_lines = {path.name.removesuffix(".seeded.gguf"): lines_of(path) for path in sorted(goldens.glob("*.seeded.gguf"))}
    words = set()
    for name, lines in all_lines.items():
        (folder / name).write_text("\n".join(lines))
        for line in lines:
            word = line.split(" ")[0]
            words.add("." + word.split(".", 1)[1] + " " if line[0] != "+" else word.split(".", 2)[-1] + " " if word.startswith("+blk.") else word + " ")
    for name, key, to in MISSES:
        text = to.replace(" ", "_").replace("-", "m") or "none"
        (folder / f"{name}.{key}.{text}").write_text("\n".join(changed(all_lines[name], key, to)))
    words |= {"general.architecture s " + one for one in sorted({line.split(" ")[2] for lines in all_lines.values() for line in lines
                                                                 if line.startswith("general.architecture")})}
    words |= {"i 0", "i -1", "i 2147483647", "i 4294967296", "f nan", "f inf", "I 1 0 2", "B 1 0 1", "\\x0a", "\\x0a+blk.0.", "blk.9.", "blk.-1."}
    dictionary.write_text("".join(f'"{word}"\n' for word in sorted(words)))


if __name__ == "__main__":
    main()
