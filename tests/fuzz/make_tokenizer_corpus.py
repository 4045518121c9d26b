#!/usr/bin/env python3
"""Writes the seeds of the tokenizer's fuzzer: small vocabularies of each kind with a text, right ones and near misses.

    tests/fuzz/make_tokenizer_corpus.py tests/fuzz/tokenizer_corpus
"""
import pathlib
import sys

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
GPT2, LLAMA, GEMMA, BERT = range(4)
ROWS = 37  # pre-tokenizers, and two more numbers: one that is not known, none


def seed(model, pre, tokens, types=(), scores=(), merges=(), text="", flags=0, ids=(), most=3):
    raw = lambda one: one if isinstance(one, bytes) else one.encode()
    settings = bytes([model, pre, flags]) + bytes(list(ids) + [0] * (7 - len(ids))) + bytes([most])
    records = [settings, b"\x1f".join(map(raw, tokens)), bytes(types), bytes(s & 0xFF for s in scores), b"\x1f".join(map(raw, merges)), raw(text)]
    return b"\x1e".join(records)


PARTS = ["<s>", "</s>", "<unk>", "a", "b", "ab", "\u0120", "\u0120a", "\u010a", "1", "2", "'", "s", "\u00e4", "\u013c", "\u0143", "<|im_end|>", "<t>"]
TYPES = [CONTROL, CONTROL, UNKNOWN] + [NORMAL] * 13 + [CONTROL, USER]
MERGES = ["a b", "\u0120 a"]
TEXT = "ab a's 12\n\n \u00e4\u4e2d e\u0301 <|im_end|><t> ab"
IDS = (2, 3, 0, 0, 4)  # two less than these
PIECES = ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581a", "\u2581ab", "<0x0A>", "<0xC3>", "<0xA4>", "<t>", "c", "abc"]
PIECE_TYPES = [UNKNOWN, CONTROL, CONTROL] + [NORMAL] * 6 + [BYTE] * 3 + [USER, NORMAL, UNUSED]
SCORES = [0, 0, 0, -9, -8, -7, -1, -2, -3, 0, 0, 0, 0, -5, -4]

SEEDS = {f"row-{row}": seed(GPT2, row, PARTS, TYPES, (), MERGES, TEXT, 0, IDS) for row in range(ROWS + 2)}
SEEDS |= {
    "pieces": seed(LLAMA, 0, PIECES, PIECE_TYPES, SCORES, (), "ab c  abc\n\u00e4<t> <s>", 0, (3, 4, 0, 0, 2)),
    "pieces-no-prefix": seed(LLAMA, 0, PIECES, PIECE_TYPES, SCORES, (), " ab <t>ab", 16, (3, 4)),
    "pieces-one-blank": seed(LLAMA, 0, PIECES, PIECE_TYPES, SCORES, (), "  ab    ab  ", 64, (3, 4)),
    "pieces-no-scores": seed(LLAMA, 0, PIECES, PIECE_TYPES, (), (), "a"),
    "pieces-nan": seed(LLAMA, 0, PIECES, PIECE_TYPES, [127] * len(PIECES), (), "a"),
    "gemma": seed(GEMMA, 0, PIECES, PIECE_TYPES, (), ["\u2581 a", "\u2581a b", "a b"], "ab  \u2581ab\n\n\u00e4 z", 0, (3, 4, 0, 0, 2)),
    "bert": seed(BERT, 0, PARTS),
    "empty": b"",
    "no-tokens": seed(GPT2, 4, [], (), (), MERGES, TEXT),
    "no-merges": seed(GPT2, 4, PARTS, TYPES, (), (), TEXT),
    "no-merges-kimi": seed(GPT2, 4, PARTS, TYPES, (), (), TEXT, 0, IDS),
    "bad-merges": seed(GPT2, 4, PARTS, TYPES, (), ["a b", "x y", "a", "a b c"], TEXT),
    "bad-type": seed(GPT2, 4, PARTS, [9] * len(PARTS), (), MERGES, TEXT),
    "bad-ids": seed(GPT2, 4, PARTS, TYPES, (), MERGES, TEXT, 0, (99, 99)),
    "few-types": seed(GPT2, 4, PARTS, TYPES[:3], (), MERGES, TEXT),
    "bos-and-eos": seed(GPT2, 7, PARTS, TYPES, (), MERGES, "<s>" + TEXT, 15, IDS),
    "phi": seed(GPT2, 7, PARTS, TYPES, (), MERGES, "<|im_end|> \n ab", 128, IDS),
    "bytes": seed(GPT2, 4, PARTS, TYPES, (), MERGES, b"a\xff\xc3\xe4\xb8 b\xf0\x9f", 0, IDS),
    "long": seed(GPT2, 4, PARTS, TYPES, (), MERGES, "ab" * 200, 0, IDS),
    "expression": seed(GPT2, 4, PARTS, TYPES, (), MERGES, r"(?i:'s|'t)|[^\r\n\p{L}\p{N}&&[^a-z]]?\p{L}+(?<!\s)\s{1,3}(?!\S)$", 0, IDS),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in SEEDS.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
