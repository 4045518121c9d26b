"""The vocabulary of a checkpoint, as keys of GGUF: of tokenizer.json, of a model of SentencePiece, or of tiktoken's ranks."""
import gguf

from conversion.checkpoint import read_json
from conversion.errors import Unsupported
from conversion.sentencepiece import add_pieces, further_tokens, pieces_of_merges, read_model
from conversion.special_tokens import add_special_tokens
from conversion.tiktoken import is_of_tiktoken, merges_of, read_ranks

MODELS = ("tokenizer.model", "tiktoken.model")


def is_bytes(part):
    """Whether a pre-tokenizer or decoder writes bytes as letters."""
    return part is not None and (part.get("type") == "ByteLevel" or any(
        is_bytes(one) for one in part.get("pretokenizers", []) + part.get("decoders", [])))


def add_tokenizer(w, folder, pre, size):
    """Byte-level BPE, or the pieces of SentencePiece. `pre`: tokenizer.ggml.pre, or what gives it where there is one. Ids without a token become unused ones."""
    path = folder / "tokenizer.json"
    told = read_json(path) if path.exists() else {"model": {}}
    in_bytes = is_bytes(told.get("pre_tokenizer")) or is_bytes(told.get("decoder"))
    other = next((folder / name for name in MODELS if (folder / name).exists()), None)
    if not in_bytes and other and is_of_tiktoken(other):
        add_tiktoken(w, other, pre, size)
    elif not in_bytes and other:
        add_pieces(w, folder, size, *read_model(other))
    elif not path.exists():
        raise Unsupported(f"{path} is missing, and so is tokenizer.model; byte-level BPE of the library tokenizers, BPE of SentencePiece and "
                          "ranks of tiktoken are read")
    elif in_bytes:
        add_byte_level(w, path, told, pre, size)
    else:
        add_pieces(w, folder, size, *pieces_of_merges(told, path))


class Tokens:
    """Of `size` ids, those without one unused."""

    def __init__(self, path, size):
        self.path, self.size = path, size
        self.tokens, self.types = [f"[PAD{i}]" for i in range(size)], [gguf.TokenType.UNUSED] * size

    def put(self, text, place, kind):
        if place >= self.size:
            raise Unsupported(f"{self.path}: the token {text!r} has the id {place}; the model has {self.size} rows")
        self.tokens[place], self.types[place] = text, kind

    def add_to(self, w, pre, merges):
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre() if callable(pre) else pre)
        w.add_token_list(self.tokens)
        w.add_token_types(self.types)
        w.add_token_merges(merges)
        add_special_tokens(w, self.path.parent, self.tokens)


def add_byte_level(w, path, told, pre, size):
    model = told["model"]
    if model.get("type", "BPE") != "BPE":
        raise Unsupported(f"{path}: a model of type {model['type']}; BPE is converted")
    all_ = Tokens(path, size)
    for text, place in model["vocab"].items():
        all_.put(text, place, gguf.TokenType.NORMAL)
    for one in told.get("added_tokens", []):
        all_.put(one["content"], one["id"], gguf.TokenType.CONTROL if one["special"] else gguf.TokenType.USER_DEFINED)
    all_.add_to(w, pre, [one if isinstance(one, str) else " ".join(one) for one in model["merges"]])


def add_tiktoken(w, path, pre, size):
    from write_model import byte_letters  # of the folder that the tool adds
    letters = byte_letters()

    def text(token):
        return "".join(letters[byte] for byte in token)
    ranks, all_ = read_ranks(path), Tokens(path, size)
    for token, rank in ranks.items():
        all_.put(text(token), rank, gguf.TokenType.NORMAL)
    for place, token, special in further_tokens(path.parent):
        all_.put(token, place, gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED)
    all_.add_to(w, pre, [" ".join(map(text, pair)) for pair in merges_of(ranks)])
