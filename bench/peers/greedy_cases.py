"""Where ik_llama.cpp does not take a golden model, or computes another than the file describes, and what it is compared with instead.

Each entry says why in the peer's own terms, and gives a model of the same kind that the peer takes, or the change of our file after which we
compute what the peer does: where the tokens are the same then, the difference has no other cause.
"""
import math
from dataclasses import dataclass, field
from typing import Callable

import gguf
import numpy as np

KINDS = {bool: gguf.GGUFValueType.BOOL, float: gguf.GGUFValueType.FLOAT32, int: gguf.GGUFValueType.UINT32, str: gguf.GGUFValueType.STRING}


@dataclass(frozen=True)
class Case:
    why: str
    config: dict = field(default_factory=dict)  # what is otherwise in the configuration of a model that transformers records for this comparison
    case: dict = field(default_factory=dict)    # and in its entry of record_goldens/cases.py
    both: Callable = None    # (architecture, keys, tensors): what is otherwise in both files
    ours: Callable = None    # the same in our file alone, of which we say what the peer does of its own
    reference: str = ""      # where no file says it: the change of record_goldens/numpy_models.py, which then takes our place
    flags: tuple = ()        # of bench/peers/logits.cpp


def key(**values):
    """Sets keys of the architecture; None: takes them away. Two underscores stand for a point."""
    def change(arch, keys, tensors):
        for name, value in values.items():
            full = f"{arch}.{name.replace('__', '.')}"
            keys.pop(full, None)
            if value is not None:
                keys[full] = (value, [KINDS[type(value)]])
    return change


def both_of(*changes):
    def change(arch, keys, tensors):
        for one in changes:
            one(arch, keys, tensors)
    return change


def without(*ends):
    def change(arch, keys, tensors):
        for name in [name for name in tensors if name.endswith(ends)]:
            del tensors[name]
    return change


def output_of_its_own(arch, keys, tensors):
    tensors["output.weight"] = tensors["token_embd.weight"]


def equal_factors_of_heads(arch, keys, tensors):
    """So that it is no matter whether heads are normalised before the rotary embedding or after it."""
    for name in tensors:
        if name.endswith(("attn_q_norm.weight", "attn_k_norm.weight")):
            tensors[name] = np.full_like(tensors[name], 1.25)


def scaled_sums(arch, keys, tensors):
    """residual_scale r times the whole sum: norms follow, so that it is as if block n added r^-n times as much."""
    scale = np.float32(keys.pop(f"{arch}.residual_scale")[0])
    for name in tensors:
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            block = 2 * int(name.split(".")[1]) + name.endswith("ffn_down.weight")
            tensors[name] = tensors[name] / scale ** block


def ramp_of_whole_pairs(arch, keys, tensors):
    """YaRN's ramp from the pair below where it begins to the one above where it ends, by the betas that say so."""
    dims, base, trained = (keys[f"{arch}.{name}"][0] for name in (
        "attention.key_length", "rope.freq_base", "rope.scaling.original_context_length"))

    def pair(beta):
        return dims * math.log(trained / (beta * 2 * math.pi)) / (2 * math.log(base))

    def beta(at):
        return trained / (2 * math.pi * base ** (2 * at / dims))

    key(rope__scaling__yarn_beta_fast=beta(math.floor(pair(32))), rope__scaling__yarn_beta_slow=beta(math.ceil(pair(1))))(arch, keys, tensors)


HEADS_OF_8 = "heads of 8: rows of float32 are read 16 numbers at a time (iqk_gemm_floats.cpp: mul_mat_Qx_Qy_MxN)"
HEADS_OF_EMBEDDING = "loads no heads of another length than embedding / heads"
UNGROUPED = "chooses experts without regard to their groups (llm_build_moe_ffn)"
LAYERS = "loads no whole matrix of queries but in models of 26 and 27 layers (llama-hparams.cpp)"
BESIDE_NORM = "adds experts to the normalised rows instead of the sum so far (build_llama)"
ONE_GROUP = key(expert_group_count=1, expert_group_used_count=1)


def dense_but_last(layers):
    return dict(num_hidden_layers=layers, first_k_dense_replace=layers - 1)


CASES = {
    "bailingmoe2": Case(HEADS_OF_EMBEDDING + "; groups with -ger alone", dict(hidden_size=64), flags=("-ger",)),
    "chatglm": Case(HEADS_OF_EMBEDDING, dict(hidden_size=64)),
    "dots1": Case(HEADS_OF_EMBEDDING + ", nor fewer KV heads", dict(hidden_size=64, num_key_value_heads=4)),
    "ernie4_5-moe": Case("expects experts in each layer after the first ones", dict(moe_layer_interval=1)),
    "gigachat3": Case(LAYERS, dense_but_last(26)),
    "glm-dsa": Case("loads the lengths of GLM-5 alone; without -mla 2 its keys and values are of matrices in q8_0", dict(
        kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=192, v_head_dim=256, num_attention_heads=4,
        index_head_dim=128, index_topk=1024), flags=("-mla",)),
    "glm-flash": Case("takes softmax where the gating is not said, but in models of 47 layers (llama-hparams.cpp)",
                      dict(num_hidden_layers=47, mlp_layer_types=["dense"] * 46 + ["sparse"])),
    "glm4": Case(HEADS_OF_EMBEDDING, dict(hidden_size=64)),
    "gpt-oss": Case("ends YaRN's ramp at whole pairs (ggml_rope_yarn_corr_dims); its configuration says truncate = false", ours=ramp_of_whole_pairs),
    "granite": Case(HEADS_OF_8 + "; residual_scale times the whole sum (build_llama)", dict(hidden_size=64), ours=scaled_sums),
    "granitemoe": Case("knows no shared expert here; " + BESIDE_NORM, dict(hidden_size=64), reference="experts-beside-norm", both=both_of(
        without("_shexp.weight"), key(expert_shared_feed_forward_length=None, residual_scale=1.0))),
    "hunyuan-moe": Case("normalises heads before the rotary embedding (build_hunyuan_moe)", both=equal_factors_of_heads),
    "kimi-k2": Case("reads no betas of YaRN with this architecture", ours=key(
        rope__scaling__yarn_beta_fast=None, rope__scaling__yarn_beta_slow=None)),
    "llama-gqa": Case(HEADS_OF_EMBEDDING + " with factors of the rotary embedding", dict(hidden_size=256)),
    "minicpm": Case(HEADS_OF_8 + "; its scales are its own", dict(hidden_size=64, logits_scaling=0.25, attention_multiplier=0.25)),
    "mistral3": Case("its YaRN has 1 + 0.1 ln(factor) whatever yarn_log_multiplier says (llama-hparams.cpp), and the temperature of a position "
                     "that of the next (llama_set_inputs)", both=key(attention__temperature_scale=0.0), ours=key(rope__scaling__yarn_log_multiplier=None)),
    "mistral4": Case("reads no temperature with this architecture", ours=key(attention__temperature_scale=None, attention__temperature_length=None)),
    "mixtral": Case(BESIDE_NORM, reference="experts-beside-norm"),
    "phi3": Case(HEADS_OF_8, dict(hidden_size=64)),
    "phi3-long": Case("expects factors for all of a head (create_phi3_tensors)", dict(rope_parameters=dict(
        rope_type="longrope", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=4096,
        short_factor=[1.0, 1.06, 1.125, 1.25, 1.5, 2.0, 2.5, 3.0], long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0]))),
    "qwen2": Case(HEADS_OF_8, dict(hidden_size=64)),
    "qwen2moe": Case(HEADS_OF_8, dict(hidden_size=64)),
    "qwen3-window": Case("knows no window of this architecture, for which converters write none", ours=key(
        attention__sliding_window=None, attention__sliding_window_pattern=None)),
    "qwen3moe-plain": Case("normalises weights of experts in any case (build_qwen3moe); converters write nothing else", ours=key(expert_weights_norm=True)),
    "smollm3": Case(HEADS_OF_8, dict(hidden_size=64)),
    "v2-groups": Case(UNGROUPED, ours=ONE_GROUP),
    "v2-plain": Case(LAYERS, dense_but_last(27), dict(runs=dict(short=64))),
    "v3-groups": Case(UNGROUPED, ours=ONE_GROUP),
    "v3-ungrouped": Case(LAYERS, dense_but_last(27)),
    "v3-yarn": Case(UNGROUPED, ours=ONE_GROUP),
    "v3-yarn-small": Case(UNGROUPED, ours=ONE_GROUP),
    "youtu": Case("loads no tied embeddings of this architecture, nor without expert_weights_scale", both=both_of(
        key(expert_weights_scale=1.0), output_of_its_own)),
}
