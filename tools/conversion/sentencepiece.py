"""The pieces of a tokenizer.model, as keys of GGUF.

The format is a message of Protocol Buffers, of which a few fields count
(https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto).
"""
import json
import struct

import gguf

from conversion.errors import Unsupported

BPE = 2  # TrainerSpec.model_type


def fields(data):
    """Number and value of each field: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 2: None, 5: 4}[kind]
        size = varint() if size is None else size
        if at + size > len(data):
            raise IndexError
        yield key >> 3, data[at:at + size]
        at += size


def read_model(path):
    """Pieces (text, score, type as in GGUF), and whether a blank goes before the text."""
    pieces, model_type, prefix = [], 1, True
    try:
        for number, value in fields(path.read_bytes()):
            if number == 1:
                one = dict(fields(value))
                pieces.append((one[1].decode(), struct.unpack("<f", one.get(2, bytes(4)))[0], one.get(3, 1)))
            elif number == 2:
                model_type = dict(fields(value)).get(3, 1)
            elif number == 3:
                prefix = bool(dict(fields(value)).get(3, 1))
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, AttributeError, TypeError) as error:
        raise Unsupported(f"{path}: not a model of SentencePiece") from error
    if model_type != BPE:
        raise Unsupported(f"{path}: a model of SentencePiece of type {model_type}; BPE ({BPE}) is converted")
    return pieces, prefix


def further_tokens(folder):
    """Of the files beside it: id, text, and whether it is a control token."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if not (folder / name).exists():
            continue
        told = json.loads((folder / name).read_text())
        for one in told.get("added_tokens", []) if name == "tokenizer.json" else [
                dict(entry, id=int(place)) for place, entry in told.get("added_tokens_decoder", {}).items()]:
            yield one["id"], one["content"], one.get("special", False)


def add_sentencepiece(w, folder, size):
    path = folder / "tokenizer.model"
    pieces, prefix = read_model(path)
    if len(pieces) > size:
        raise Unsupported(f"{path}: {len(pieces)} pieces; the model has {size} rows")
    pieces += [(f"[PAD{i}]", -1000.0, gguf.TokenType.UNUSED) for i in range(len(pieces), size)]
    for place, text, special in further_tokens(folder):
        if place >= size:
            raise Unsupported(f"{folder}: the token {text!r} has the id {place}; the model has {size} rows")
        if pieces[place][2] not in (gguf.TokenType.UNKNOWN, gguf.TokenType.BYTE):
            pieces[place] = (text, pieces[place][1], gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED)
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list([text for text, _, _ in pieces])
    w.add_token_scores([score for _, score, _ in pieces])
    w.add_token_types([kind for _, _, kind in pieces])
    w.add_add_space_prefix(prefix)
    gguf.SpecialVocab(folder, load_merges=False, n_vocab=size).add_to_gguf(w)
