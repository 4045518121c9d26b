"""A byte-level BPE vocabulary with the pre-tokenizer rules of DeepSeek-V3, and dialogues as token numbers."""
import json

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

BOS, EOS, USER, ASSISTANT = 0, 1, 2, 3
SPECIAL = ["<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"]
CHAT_TEMPLATE = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ bos_token }}"
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<\uff5cUser\uff5c>' + m['content'] }}"
    "{% elif m['role'] == 'assistant' %}{{ '<\uff5cAssistant\uff5c>' + m['content'] + '<\uff5cend\u2581of\u2581sentence\uff5c>' }}"
    "{% elif m['role'] == 'system' %}{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c>' }}{% endif %}")

# The three patterns of DeepSeek-V3's tokenizer.json, applied one after the other.
DIGITS = r"\p{N}{1,3}"
CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
WORDS = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
         r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")


def _rules(digits):
    split = [pre_tokenizers.Split(Regex(p), "isolated") for p in (digits, CJK, WORDS)]
    return pre_tokenizers.Sequence(split + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(texts, size):
    """A vocabulary of `size` tokens. Digits are cut one by one while merges are learned, so none merges a digit."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = _rules(r"\p{N}")
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return finish(t)


def finish(t):
    t.pre_tokenizer = _rules(DIGITS)
    t.decoder = decoders.ByteLevel()
    return t


def load(path):
    return Tokenizer.from_file(str(path))


def of(tokens, merges):
    """The tokenizer of a file's token and merge lists."""
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    t.add_special_tokens(SPECIAL)
    return finish(t)


def parts(t):
    """Tokens in order, their GGUF types (3: control, 1: normal) and merges as "left right"."""
    model = json.loads(t.to_str())["model"]
    tokens = [None] * len(model["vocab"])
    for token, number in model["vocab"].items():
        tokens[number] = token
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return tokens, [3 if i < len(SPECIAL) else 1 for i in range(len(tokens))], merges


def encode(t, text):
    return t.encode(text, add_special_tokens=False).ids


def encode_prompt(t, question, system=""):
    return [BOS] + (encode(t, system) if system else []) + [USER] + encode(t, question) + [ASSISTANT]


def encode_dialogue(t, turns, system=""):
    """Token numbers, and for each the index of the turn whose answer it belongs to, or -1."""
    ids, owner = [BOS], [-1]
    if system:
        ids += encode(t, system)
        owner += [-1] * (len(ids) - 1)
    for i, (_, question, answer) in enumerate(turns):
        asked, said = [USER] + encode(t, question) + [ASSISTANT], encode(t, answer) + [EOS]
        ids += asked + said
        owner += [-1] * len(asked) + [i] * len(said)
    return ids, owner
