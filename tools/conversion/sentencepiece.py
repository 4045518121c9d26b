"""The pieces of SentencePiece's BPE, as keys of GGUF: of a tokenizer.model, or of the merges that tokenizer.json has of one.

The format of tokenizer.model is a message of Protocol Buffers, of which a few fields count
(https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto).
"""
import re
import struct

import gguf

from conversion.checkpoint import read_json
from conversion.errors import Unsupported
from conversion.special_tokens import add_special_tokens

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
        told = read_json(folder / name)
        for one in told.get("added_tokens", []) if name == "tokenizer.json" else [
                dict(entry, id=int(place)) for place, entry in told.get("added_tokens_decoder", {}).items()]:
            yield one["id"], one["content"], one.get("special", False)


def blank_before(told):
    """Whether a tokenizer.json puts a blank before the text."""
    parts = [told.get("normalizer") or {}, told.get("pre_tokenizer") or {}]
    for part in parts:
        parts += part.get("normalizers", []) + part.get("pretokenizers", [])
    return any(part.get("type") == "Prepend" or part.get("type") == "Metaspace" and part.get(
        "prepend_scheme", "always" if part.get("add_prefix_space", True) else "never") != "never" for part in parts)


def pieces_of_merges(told, path):
    """The same as read_model() of a tokenizer.json that was made of such a model: merges have the order of the pieces that they give, which is
    what SentencePiece's scores say."""
    model = told["model"]
    if model.get("type", "BPE") != "BPE" or not model.get("byte_fallback") or model.get("ignore_merges"):
        raise Unsupported(f"{path}: a model of type {model.get('type')}; byte-level BPE is converted, and BPE over characters with byte_fallback")
    vocab, scores = model["vocab"], {}
    last = None
    for rank, one in enumerate(model["merges"]):
        piece = "".join(one.split(" ", 1) if isinstance(one, str) else one)
        if piece in scores and piece != last:
            raise Unsupported(f"{path}: merges of {piece!r} have others between them, which the scores of pieces cannot say")
        scores.setdefault(piece, -float(rank))
        last = piece
    added = {one["content"] for one in told.get("added_tokens", [])}
    pieces = [(f"[PAD{i}]", -1000.0, gguf.TokenType.UNUSED) for i in range(max(vocab.values(), default=-1) + 1)]
    for text, place in vocab.items():
        kind = gguf.TokenType.UNKNOWN if text == model.get("unk_token") else gguf.TokenType.BYTE if re.fullmatch(
            "<0x[0-9A-F]{2}>", text) else gguf.TokenType.NORMAL
        if kind == gguf.TokenType.NORMAL and text not in scores and text not in added and any(
                text[:i] in vocab and text[i:] in vocab for i in range(1, len(text))):
            raise Unsupported(f"{path}: no merge gives {text!r}, which pieces of it would")
        pieces[place] = (text, scores.get(text, -float(len(scores) + place)), kind)
    return pieces, blank_before(told)


def add_pieces(w, folder, size, pieces, prefix):
    if len(pieces) > size:
        raise Unsupported(f"{folder}: {len(pieces)} pieces; the model has {size} rows")
    pieces = pieces + [(f"[PAD{i}]", -1000.0, gguf.TokenType.UNUSED) for i in range(len(pieces), size)]
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
    add_special_tokens(w, folder, [text for text, _, _ in pieces])
    if w.arch == "chatglm" and gguf.Keys.Tokenizer.ADD_BOS not in w.kv_data[0]:
        w.add_add_bos_token(False)  # its prompts begin with tokens of their own
