"""The vocabulary of a checkpoint's tokenizer.json, as keys of GGUF."""
import gguf

from conversion.checkpoint import read_json
from conversion.errors import Unsupported
from conversion.sentencepiece import add_sentencepiece


def is_bytes(part):
    """Whether a pre-tokenizer or decoder writes bytes as letters."""
    return part is not None and (part.get("type") == "ByteLevel" or any(
        is_bytes(one) for one in part.get("pretokenizers", []) + part.get("decoders", [])))


def add_tokenizer(w, folder, pre, size):
    """Byte-level BPE, or the pieces of SentencePiece. `pre`: tokenizer.ggml.pre, or what gives it where there is one. Ids without a token become unused ones."""
    path = folder / "tokenizer.json"
    told = read_json(path) if path.exists() else {"model": {}}
    model = told["model"]
    if not (is_bytes(told.get("pre_tokenizer")) or is_bytes(told.get("decoder"))) and (folder / "tokenizer.model").exists():
        add_sentencepiece(w, folder, size)
        return
    if not path.exists():
        raise Unsupported(f"{path} is missing, and so is tokenizer.model; byte-level BPE of the library tokenizers and BPE of SentencePiece "
                          "are read (a tokenizer of tiktoken has to be converted to the first, or its keys be taken from another file)")
    if model.get("type", "BPE") != "BPE" or not (is_bytes(told.get("pre_tokenizer")) or is_bytes(told.get("decoder"))):
        raise Unsupported(f"{path}: byte-level BPE is read, this is {model.get('type')} with other pieces; those of SentencePiece are read "
                          "from tokenizer.model")
    tokens, types = [f"[PAD{i}]" for i in range(size)], [gguf.TokenType.UNUSED] * size

    def put(text, place, kind):
        if place >= size:
            raise Unsupported(f"{path}: the token {text!r} has the id {place}; the model has {size} rows")
        tokens[place], types[place] = text, kind

    for text, place in model["vocab"].items():
        put(text, place, gguf.TokenType.NORMAL)
    for one in told.get("added_tokens", []):
        put(one["content"], one["id"], gguf.TokenType.CONTROL if one["special"] else gguf.TokenType.USER_DEFINED)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre() if callable(pre) else pre)
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in model["merges"]])
    gguf.SpecialVocab(folder, load_merges=False, n_vocab=size).add_to_gguf(w)
