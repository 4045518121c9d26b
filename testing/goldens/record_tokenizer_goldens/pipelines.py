"""The pre-tokenizers as their models publish them, built with the public `tokenizers` library."""
from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d"
    "\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45"
    "\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126"
    "\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee"
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"
    "\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943")
HAN_HANGUL = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
NO_LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
NO_UPPER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = "|".join([
    r"[\p{Han}]+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{NO_LOWER}*{NO_UPPER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    rf"[^\r\n\p{{L}}\p{{N}}]?{NO_LOWER}+{NO_UPPER}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
V3 = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
      "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")


def splits(*expressions):
    return [Split(Regex(e), behavior="isolated") for e in expressions]


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def o200k(digits, suffix):
    return "|".join([rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{suffix}", rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{suffix}", digits,
                     r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
ONE_DIGIT = LLAMA.replace("{1,3}", "")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
ASIAN = ("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff"
         "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+")
HAN_KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"

# Without the byte-level step, which renames characters and cuts nothing (its own expression is GPT2).
STEPS = {
    "deepseek-llm": splits("[\r\n]", "\\s?[" + CASED + "]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+$",
                           HAN_HANGUL) + [Digits(individual_digits=True)],
    "deepseek-coder": splits("[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN_HANGUL) + [Digits(individual_digits=True)],
    "deepseek-v3": splits("\\p{N}{1,3}", HAN_KANA, V3),
    "kimi-k2": splits(KIMI),
    "gpt-2": splits(GPT2),
    "mpt": splits(GPT2),
    "llama-bpe": splits(LLAMA),
    "glm4": splits(LLAMA),
    "qwen2": splits(ONE_DIGIT),
    "grok-2": splits(ONE_DIGIT),
    "qwen35": splits(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
                     r"|\s+(?!\S)|\s+"),
    "tekken": splits(o200k(r"\p{N}", "")),
    "gpt-4o": splits(o200k(r"\p{N}{1,3}", CONTRACTION)),
    "tiny_aya": splits(r"\d{1,3}(?=(?:\d{3})*\b)", o200k(r"\p{N}{1,3}", CONTRACTION)),
    "youtu": splits("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + HAN_KANA, o200k(r"\p{N}", CONTRACTION)),
    "starcoder": [Digits(individual_digits=True)] + splits(GPT2),
    "command-r": [Digits(individual_digits=True)] + splits(GPT2),
    # Punctuation (of the Unicode that the package was built with long ago), and Digits behind the byte-level step, where only
    # digits of ASCII (and parts of other characters) are digits.
    "falcon": splits(r"[\p{P}$+<=>^`|~]+", GPT2, "[0-9]+", "[0-9][0-9][0-9]"),
    "default": splits(r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    "bloom": splits(BLOOM),
    "viking": splits(BLOOM) + [Digits(individual_digits=True)],
    "seed-coder": splits(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "bailingmoe": splits(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"),
    "exaone-moe": splits(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?"
                         r"|\s*[\r\n]|\s+(?!\S)|\s+"),
    "ufakzeka": splits(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "laguna": splits(r"[^\n]+|[\n]+", ONE_DIGIT),
    "minicpm5": splits(r"\p{N}{1,3}", LLAMA.replace("{1,3}", "+")),
    "jais-2": splits(LLAMA.replace(r"\s+(?!\S)|\s+", "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4)) +
                                   r"|\s{1,2}(?!\S)|\s{1}")),
    "spark2_5": splits(r"\p{N}{1,3}", HAN_KANA,
                       V3.replace("+[\r\n]*|\\s*[\r\n]+|", "+|[\r\n]|"), r"\p{N}"),
    # As groups of three from the right of any digits.
    "afmoe": splits(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", ASIAN, V3),
    "superbpe": splits(r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    "chameleon": splits("<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]",
                        GPT2),
    "gemma4": splits(r"[^\n]+|[\n]+"),
}
# Other rows of the table that cut as one of these, and differ in what else they say.
SAME_CUTS = {"hunyuan-dense": "deepseek-v3", "granite-embed-multi-97m": "gpt-4o", "sarvam-moe": "gemma4"}
# These take a word that is a token as it is ("ignore_merges" of tokenizer.json; tiktoken does so always).
WHOLE_WORDS = {"kimi-k2", "llama-bpe", "tekken"}
# These have a normalizer, NFC, in tokenizer.json.
NFC_NAMES = {"qwen2", "command-r"}
# The model's tokens, not only the cuts, are recorded for these.
WITH_TOKENS = ["deepseek-llm", "deepseek-coder", "deepseek-v3", "kimi-k2", "gpt-2", "llama-bpe", "qwen2", "tekken", "command-r"]


def cut(name):
    return Sequence(STEPS[SAME_CUTS.get(name, name)])


def byte_level(name):
    return Sequence(STEPS[name] + [ByteLevel(add_prefix_space=False, use_regex=False)])
