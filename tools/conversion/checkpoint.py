"""A published checkpoint: config.json, *.safetensors and tokenizer.json of one folder.

Tensors are read when they are asked for, as f32. numpy has neither bf16 nor fp8, which is why the format is read here
(https://github.com/huggingface/safetensors: a u64, so many bytes of JSON, then the tensors' bytes).
"""
import json
import math
import pathlib
import re
import types

import numpy as np

from conversion import windows
from conversion.errors import Unsupported
from conversion.layouts import class_of, layout_of

# Parts of models of several modalities whose text is converted alone, and tensors that can be computed.
OTHERS = re.compile(r"^(model\.)?(vision|visual|audio|mm_|multi_modal_projector|image_newline|vit_)|rotary(_pos)?_emb\.inv_freq$|\.activation_scale$")
SCALE = "_scale_inv"  # of fp8: a number for each block of 128 x 128, or one for the matrix
PLAIN = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "u1", "U8": "u1"}


def fp8_values():
    """Of the 256 bytes of F8_E4M3: a sign, four bits of exponent with a bias of 7, three of fraction; all ones is NaN."""
    byte = np.arange(256)
    exponent, fraction = byte >> 3 & 15, byte & 7
    value = np.where(exponent > 0, (1 + fraction / 8) * 2.0 ** (exponent - 7), fraction / 8 * 2.0 ** -6)
    value[(byte & 127) == 127] = np.nan
    return np.where(byte & 128, -value, value).astype(np.float32)


FP8 = fp8_values()


def read_json(path, text=None):
    """`text`, or what the file holds."""
    try:
        value = json.loads(path.read_bytes() if text is None else text)
    except ValueError as error:
        raise Unsupported(f"{path}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unsupported(f"{path}: not an object of JSON")
    return value


def unified(name):
    """A tensor's name without the prefixes of the whole model, and with one name for experts and their matrices."""
    name = name.removeprefix("language_model.").removeprefix("model.").removeprefix("language_model.")
    if ".block_sparse_moe." in name:
        name = name.replace(".block_sparse_moe.", ".mlp.")
        for theirs, ours in ((".w1.", ".gate_proj."), (".w2.", ".down_proj."), (".w3.", ".up_proj.")):
            name = name.replace(theirs, ours)
    return name


class Checkpoint:
    """Maps names, as `transformers` has them, to arrays; of type U8 as they are, others as f32.

    `config`: config.json with defaults; `left_out`: names that no text model has."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.places, self.left_out = {}, []
        if not (self.folder / "config.json").is_file():
            found = "a file" if self.folder.is_file() else "no config.json"
            raise Unsupported(f"{folder}: expected the folder of a published checkpoint, with config.json and *.safetensors (found {found})")
        self.config = read_config(self.folder / "config.json")
        layout = layout_of(self.config.architectures)
        self.renames = [(re.compile(theirs), ours) for theirs, ours in layout.names]
        self.turned = re.compile(layout.turned or "$^")
        files = sorted(self.folder.glob("*.safetensors"))
        if not files:
            raise Unsupported(f"{folder}: no *.safetensors there")
        for path in files:
            self._index(path)
        if not hasattr(self.config, "tie_word_embeddings"):
            self.config.tie_word_embeddings = "lm_head.weight" not in self.places
        self._complete_heads()

    def _complete_heads(self):
        """The length of a head, which classes take as a constant or as a share of the width where config.json does not say it."""
        name, c = "layers.0.self_attn.q_proj.weight", self.config
        if name not in self.places or hasattr(c, "kv_lora_rank") or getattr(c, "num_attention_heads", None) is None:
            return
        rows, heads = self.places[name][2]["shape"][0], c.num_attention_heads
        if hasattr(c, "num_sliding_attention_heads") and c.layer_types[0] == "sliding_attention":
            heads = c.num_sliding_attention_heads
        said = getattr(c, "head_dim", None)
        if "head_dim" in c.said and said and rows != heads * said:
            raise Unsupported(f"{name} has {rows} rows, but config.json says {heads} heads of {said}")
        if rows % heads:
            raise Unsupported(f"{name} has {rows} rows, which are not {heads} heads")
        if said or rows != c.hidden_size:
            c.head_dim = rows // heads

    def _index(self, path):
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > min(path.stat().st_size, 100 << 20):
                raise Unsupported(f"{path}: not a file of safetensors")
            header = read_json(path, file.read(size))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if OTHERS.search(name):
                self.left_out.append(name)
                continue
            if entry["dtype"] not in PLAIN:
                raise Unsupported(f"{path}: {name} is {entry['dtype']}; {', '.join(PLAIN)} are read")
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            wanted = math.prod(entry["shape"]) * np.dtype(PLAIN[entry["dtype"]]).itemsize
            if end - begin != wanted or end > path.stat().st_size:
                raise Unsupported(f"{path}: {name} is {wanted} bytes by its shape and at {begin} to {end} of {path.stat().st_size}: fetch "
                                  "the file again")
            self.places[self._renamed(unified(name))] = (path, begin, entry)

    def _renamed(self, name):
        for theirs, ours in self.renames:
            name = theirs.sub(ours, name)
        return name

    def __contains__(self, name):
        return name in self.places

    def __iter__(self):
        return (name for name in self.places if not name.endswith(SCALE))

    def __getitem__(self, name):
        values = self._raw(name)
        if self.turned.search(name):
            values = values.swapaxes(-1, -2)
        if name + SCALE not in self.places:
            return values
        scale = self._raw(name + SCALE)
        if scale.size == 1:
            return values * scale.reshape(())
        blocks = np.repeat(np.repeat(scale, 128, -2), 128, -1)
        return values * blocks[..., :values.shape[-2], :values.shape[-1]]

    def _raw(self, name):
        path, offset, entry = self.places[name]
        raw = np.memmap(path, PLAIN[entry["dtype"]], "r", offset, tuple(entry["shape"]) or (1,))
        if entry["dtype"] == "BF16":
            return (raw.astype(np.uint32) << 16).view(np.float32)
        if entry["dtype"] == "U8":
            return raw
        return FP8[raw] if entry["dtype"] == "F8_E4M3" else raw.astype(np.float32)


def rope_of(config):
    """As later versions of `transformers` write it, of any version."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    rope.setdefault("rope_theta", config.get("rope_theta", 10000.0))
    rope["rope_type"] = rope.get("rope_type") or rope.pop("type", None) or "default"
    if rope["rope_type"] == "su":  # the name in Phi-3's first files
        rope["rope_type"] = "longrope"
    if rope["rope_type"] == "mrope":  # of text, all sections have the same position
        rope["rope_type"] = "default"
    if rope["rope_type"] == "yarn":
        rope = dict(beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=0.0) | rope
    if "partial_rotary_factor" in config:
        rope.setdefault("partial_rotary_factor", config["partial_rotary_factor"])
    return rope


def read_config(path):
    """The text model's part, with what `transformers` takes where a file says nothing."""
    whole = read_json(path)
    config = whole | whole.get("text_config", {})
    config["architectures"] = whole.get("architectures") or config.get("architectures") or []
    layout = layout_of(config["architectures"])
    config = layout.defaults | config | {"said": {key for key, value in config.items() if value is not None}}
    if layout.complete:
        layout.complete(config)
    config.setdefault("rms_norm_eps", 1e-6)
    config.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    config.setdefault("n_group", None)
    config.setdefault("topk_group", None)
    if "kv_lora_rank" in config:
        config.setdefault("q_lora_rank", None)
        config.setdefault("v_head_dim", config["hidden_size"] // config["num_attention_heads"])
    if "full_attention" not in (config.get("rope_parameters") or {}):
        config["rope_parameters"] = rope_of(config)
    windows.complete(config, next(map(class_of, config["architectures"]), ""))
    return types.SimpleNamespace(**config)

