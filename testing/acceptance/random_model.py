"""Models of the DeepSeek-V2 family with random weights, written by Python's standard library alone: nothing in them was trained, but shapes and
formats are those of real files. Weights are random codes with finite scales, so that a row has about unit gain."""

import array
import math
import os
import random
import struct

ALIGN = 32
MAGIC, VERSION = 0x46554747, 3
# GGUF: number of the type, elements and bytes of a block.
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34)}
FILE_TYPES = {"f16": 1, "q4_0": 2, "q8_0": 7}
# Spread of the codes: uniform in -8 .. 7 and in -128 .. 127.
SPREAD = {"q4_0": 4.6, "q8_0": 73.9}

LITE = dict(embedding=2048, layers=27, dense=1, heads=16, latent=512, nope=128, rope=64, value=128, hidden=10944, experts=64, used=6, shared=2,
            expert_hidden=1408, vocabulary=102400, context=163840)
SMALL = dict(embedding=256, layers=3, dense=1, heads=16, latent=512, nope=128, rope=64, value=128, hidden=512, experts=8, used=2, shared=1,
             expert_hidden=256, vocabulary=1024, context=16384)


def tensors(p, kind):
    """(name, extents fastest first, type) of every weight, in the order of the file."""
    e, h, key = p["embedding"], p["heads"], p["nope"] + p["rope"]
    yield "token_embd.weight", (e, p["vocabulary"]), kind
    for i in range(p["layers"]):
        b = f"blk.{i}."
        yield b + "attn_norm.weight", (e,), "f32"
        yield b + "attn_q.weight", (e, h * key), kind
        yield b + "attn_kv_a_mqa.weight", (e, p["latent"] + p["rope"]), kind
        yield b + "attn_kv_a_norm.weight", (p["latent"],), "f32"
        yield b + "attn_kv_b.weight", (p["latent"], h * (p["nope"] + p["value"])), kind
        yield b + "attn_output.weight", (h * p["value"], e), kind
        yield b + "ffn_norm.weight", (e,), "f32"
        if i < p["dense"]:
            yield b + "ffn_gate.weight", (e, p["hidden"]), kind
            yield b + "ffn_up.weight", (e, p["hidden"]), kind
            yield b + "ffn_down.weight", (p["hidden"], e), kind
            continue
        f, n = p["expert_hidden"], p["experts"]
        yield b + "ffn_gate_inp.weight", (e, n), "f32"
        yield b + "ffn_gate_exps.weight", (e, f, n), kind
        yield b + "ffn_down_exps.weight", (f, e, n), kind
        yield b + "ffn_up_exps.weight", (e, f, n), kind
        yield b + "ffn_gate_shexp.weight", (e, f * p["shared"]), kind
        yield b + "ffn_down_shexp.weight", (f * p["shared"], e), kind
        yield b + "ffn_up_shexp.weight", (e, f * p["shared"]), kind
    yield "output_norm.weight", (e,), "f32"
    yield "output.weight", (e, p["vocabulary"]), kind


def byte_count(extents, kind):
    _, elements, size = TYPES[kind]
    return math.prod(extents) // elements * size


def token_bytes(p, kind):
    """Bytes of weights that a generated token reads: all but the embedding, and of routed experts those that it uses."""
    total = 0
    for name, extents, of in tensors(p, kind):
        if name == "token_embd.weight":
            continue
        total += byte_count(extents, of) * (p["used"] / p["experts"] if "_exps." in name else 1)
    return total


def cached_bytes(p):
    """Bytes of one cached token, f16, in all layers."""
    return 2 * (p["latent"] + p["rope"]) * p["layers"]


def vocabulary(size):
    """Tokens of a byte-level vocabulary: four special ones, the 256 bytes, then words that grow by one letter, each with its merge."""
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    other = iter(range(256, 512))
    alphabet = [chr(b) if b in printable else chr(next(other)) for b in range(256)]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    tokens = ["<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"]
    types = [3] * len(tokens) + [1] * (size - len(tokens))
    tokens += alphabet
    merges, grown, at = [], list(letters), 0
    while len(tokens) < size:
        for letter in letters:
            if len(tokens) == size:
                break
            tokens.append(grown[at] + letter)
            merges.append(f"{grown[at]} {letter}")
            grown.append(grown[at] + letter)
        at += 1
    return tokens, types, merges


class Metadata:
    NUMBERS = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?")}

    def __init__(self):
        self.bytes, self.count = bytearray(), 0

    @staticmethod
    def text(value):
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    def add(self, key, kind, value):
        self.bytes += self.text(key)
        if kind == "text":
            self.bytes += struct.pack("<I", 8) + self.text(value)
        elif kind == "texts":
            self.bytes += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(self.text, value))
        elif kind == "i32s":
            self.bytes += struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
        else:
            number, layout = self.NUMBERS[kind]
            self.bytes += struct.pack("<I", number) + struct.pack(layout, value)
        self.count += 1


def metadata(p, kind):
    m = Metadata()
    m.add("general.architecture", "text", "deepseek2")
    m.add("general.name", "text", f"random, {p['layers']} layers of {p['heads']} heads, {kind}")
    m.add("general.file_type", "u32", FILE_TYPES[kind])
    m.add("general.quantization_version", "u32", 2)
    values = {"block_count": p["layers"], "context_length": p["context"], "embedding_length": p["embedding"], "feed_forward_length": p["hidden"],
              "attention.head_count": p["heads"], "attention.head_count_kv": p["heads"], "expert_used_count": p["used"],
              "leading_dense_block_count": p["dense"], "vocab_size": p["vocabulary"], "attention.kv_lora_rank": p["latent"],
              "attention.key_length": p["nope"] + p["rope"], "attention.value_length": p["value"],
              "expert_feed_forward_length": p["expert_hidden"], "expert_count": p["experts"], "expert_shared_count": p["shared"],
              "rope.dimension_count": p["rope"], "expert_gating_func": 1}
    for key, value in values.items():
        m.add("deepseek2." + key, "u32", value)
    for key, value in {"rope.freq_base": 10000.0, "attention.layer_norm_rms_epsilon": 1e-6, "expert_weights_scale": 1.0}.items():
        m.add("deepseek2." + key, "f32", value)
    m.add("deepseek2.expert_weights_norm", "bool", False)
    tokens, types, merges = vocabulary(p["vocabulary"])
    m.add("tokenizer.ggml.model", "text", "gpt2")
    m.add("tokenizer.ggml.pre", "text", "deepseek-llm")
    m.add("tokenizer.ggml.tokens", "texts", tokens)
    m.add("tokenizer.ggml.token_type", "i32s", types)
    m.add("tokenizer.ggml.merges", "texts", merges)
    m.add("tokenizer.ggml.bos_token_id", "u32", 0)
    m.add("tokenizer.ggml.eos_token_id", "u32", 1)
    m.add("tokenizer.ggml.add_bos_token", "bool", True)
    return m


def half_bytes(value):
    return struct.pack("<e", value)


def blocks(kind, row, count, rng):
    """`count` random blocks for rows of `row` elements: unit gain. Columns of bytes are filled at once, which is what makes this fast."""
    size, gain = TYPES[kind][2], 1 / math.sqrt(row)
    made = bytearray(count * size)
    if kind == "f16":
        # Values from 2^e to 2^(e+1) with random signs, their root mean square the gain.
        exponent = 15 + round(math.log2(gain / 1.53))
        high = bytes((b & 0x80) | exponent << 2 | (b & 3) for b in range(256))
        made[0::2] = rng.randbytes(count)
        made[1::2] = rng.randbytes(count).translate(high)
        return made
    low, high = half_bytes(gain / SPREAD[kind])
    made[0::size] = rng.randbytes(count)  # scales differ in their last eight bits
    made[1::size] = bytes([high]) * count
    for at in range(2, size):
        made[at::size] = rng.randbytes(count)
    return made


def floats(name, count, rng):
    if name.endswith("_norm.weight"):
        return array.array("f", (1 + 0.05 * rng.gauss(0, 1) for _ in range(count)))
    return array.array("f", (rng.gauss(0, 1) / math.sqrt(2048) for _ in range(count)))


class Source:
    """Bytes of weights, taken from pools of random blocks at changing places."""

    POOL = 1 << 18

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.pools = {}
        self.routers = None

    def data(self, name, extents, kind):
        if kind == "f32":
            count = math.prod(extents)
            if len(extents) == 1:
                yield floats(name, count, self.rng).tobytes()
                return
            if self.routers is None or len(self.routers) < 8 * count:
                self.routers = floats(name, 2 * count, self.rng).tobytes()
            start = 4 * self.rng.randrange(count)
            yield self.routers[start:start + 4 * count]
            return
        left, size = byte_count(extents, kind), TYPES[kind][2]
        if name in ("token_embd.weight", "output.weight"):
            # No two rows alike, so that no two logits are. A row that is looked up is not summed over.
            yield blocks(kind, 1 if name == "token_embd.weight" else extents[0], left // size, self.rng)
            return
        key = (kind, extents[0])
        if key not in self.pools:
            self.pools[key] = memoryview(blocks(kind, extents[0], self.POOL, self.rng))
        pool = self.pools[key]
        while left:
            start = self.rng.randrange(self.POOL // 2) * size
            taken = min(left, len(pool) - start)
            yield pool[start:start + taken]
            left -= taken


def write(path, p, kind, seed=1):
    """Writes the model; its size in bytes."""
    items, source, m = list(tensors(p, kind)), Source(seed), metadata(p, kind)
    head = bytearray(struct.pack("<IIQQ", MAGIC, VERSION, len(items), m.count)) + m.bytes
    offset = 0
    for name, extents, of in items:
        head += m.text(name) + struct.pack("<I", len(extents)) + struct.pack(f"<{len(extents)}Q", *extents)
        head += struct.pack("<IQ", TYPES[of][0], offset)
        offset += -(-byte_count(extents, of) // ALIGN) * ALIGN
    head += bytes(-len(head) % ALIGN)
    with open(path, "wb", buffering=0) as file:
        def put(data):
            rest = memoryview(data)
            while len(rest):
                rest = rest[file.write(rest):]
        put(head)
        for name, extents, of in items:
            for some in source.data(name, extents, of):
                put(some)
            put(bytes(-byte_count(extents, of) % ALIGN))
    return os.path.getsize(path)


def text(words=400, seed=1):
    """A text of random words of the vocabulary's letters."""
    rng = random.Random(seed)
    return " ".join("".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randrange(1, 9))) for _ in range(words))
