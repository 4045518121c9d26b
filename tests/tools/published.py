"""Golden models as their publishers would have written them: config.json and *.safetensors of a file of tests/goldens.

Written from the published checkpoints' layouts, not from the tool's tables."""
import json
import re
import struct

import numpy as np

LAYER = {"attn_norm.weight": "input_layernorm.weight", "ffn_norm.weight": "post_attention_layernorm.weight",
         "attn_output.weight": "self_attn.o_proj.weight", "attn_output.bias": "self_attn.o_proj.bias",
         "attn_q_norm.weight": "self_attn.q_norm.weight", "attn_k_norm.weight": "self_attn.k_norm.weight",
         "attn_q_a.weight": "self_attn.q_a_proj.weight", "attn_q_a_norm.weight": "self_attn.q_a_layernorm.weight",
         "attn_q_b.weight": "self_attn.q_b_proj.weight", "attn_kv_a_mqa.weight": "self_attn.kv_a_proj_with_mqa.weight",
         "attn_kv_a_norm.weight": "self_attn.kv_a_layernorm.weight", "attn_kv_b.weight": "self_attn.kv_b_proj.weight",
         "attn_sinks.weight": "self_attn.sinks", "attn_qkv.weight": "self_attn.qkv_proj.weight",
         "ffn_gate_inp.weight": "mlp.gate.weight", "exp_probs_b.bias": "mlp.gate.e_score_correction_bias",
         "ffn_gate_inp_shexp.weight": "mlp.shared_expert_gate.weight",
         "indexer.attn_q_b.weight": "self_attn.indexer.wq_b.weight", "indexer.attn_k.weight": "self_attn.indexer.wk.weight",
         "indexer.proj.weight": "self_attn.indexer.weights_proj.weight", "indexer.k_norm.weight": "self_attn.indexer.k_norm.weight",
         "indexer.k_norm.bias": "self_attn.indexer.k_norm.bias"}
for part in "qkv":
    LAYER |= {f"attn_{part}.{kind}": f"self_attn.{part}_proj.{kind}" for kind in ("weight", "bias")}
for part in ("gate", "up", "down"):
    LAYER |= {f"ffn_{part}.weight": f"mlp.{part}_proj.weight", f"ffn_{part}_exps.weight": f"mlp.experts.*.{part}_proj.weight",
              f"ffn_{part}_shexp.weight": f"mlp.shared_experts.{part}_proj.weight"}
MODEL = {"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight", "output_norm.weight": "model.norm.weight"}

AFTER = {"post_attention_norm.weight": "post_attention_layernorm.weight", "post_ffw_norm.weight": "post_feedforward_layernorm.weight"}
FUSED_UP = {"ffn_up.weight": "mlp.gate_up_proj.weight"}
SPARSE = {"ffn_gate_inp.weight": "block_sparse_moe.gate.weight", "ffn_gate_exps.weight": "block_sparse_moe.experts.*.w1.weight",
          "ffn_down_exps.weight": "block_sparse_moe.experts.*.w2.weight", "ffn_up_exps.weight": "block_sparse_moe.experts.*.w3.weight"}
HUNYUAN = {"attn_q_norm.weight": "self_attn.query_layernorm.weight", "attn_k_norm.weight": "self_attn.key_layernorm.weight",
           "ffn_gate_inp.weight": "mlp.gate.wg.weight",
           **{f"ffn_{part}_shexp.weight": f"mlp.shared_mlp.{part}_proj.weight" for part in ("gate", "up", "down")}}
# Of architectures: what is otherwise.
OTHER = {
    "olmo2": AFTER, "exaone4": AFTER, "seed_oss": {"post_attention_norm.weight": "post_attention_layernorm.weight"},
    "glm4moe": {"post_attention_norm.weight": "post_attention_layernorm.weight"},
    "glm4": FUSED_UP | {"ffn_norm.weight": "post_attention_layernorm.weight", "post_attention_norm.weight": "post_self_attn_layernorm.weight",
                        "post_ffw_norm.weight": "post_mlp_layernorm.weight"},
    "chatglm": FUSED_UP, "phi3": FUSED_UP,
    "minimax-m2": SPARSE | {"exp_probs_b.bias": "block_sparse_moe.e_score_correction_bias"},
    "qwen2moe": {f"ffn_{part}_shexp.weight": f"mlp.shared_expert.{part}_proj.weight" for part in ("gate", "up", "down")},
    "hunyuan-moe": HUNYUAN, "hunyuan-dense": HUNYUAN,
    "ernie4_5-moe": {"exp_probs_b.bias": "mlp.moe_statics.e_score_correction_bias"},
    "granitemoe": {"ffn_gate_inp.weight": "block_sparse_moe.router.layer.weight"},
    "gpt-oss": {"post_attention_norm.weight": "post_attention_layernorm.weight", "ffn_gate_inp.weight": "mlp.router.weight",
                "ffn_gate_inp.bias": "mlp.router.bias"},
    "gemma3": {"post_attention_norm.weight": "post_attention_layernorm.weight", "ffn_norm.weight": "pre_feedforward_layernorm.weight",
               "post_ffw_norm.weight": "post_feedforward_layernorm.weight"},
    "step35": {"attn_gate.weight": "self_attn.g_proj.weight", "ffn_gate_inp.weight": "moe.gate.weight", "exp_probs_b.bias": "moe.router_bias",
               **{f"ffn_{part}_exps.weight": f"moe.{part}_proj.weight" for part in ("gate", "up", "down")},
               **{f"ffn_{part}_shexp.weight": f"share_expert.{part}_proj.weight" for part in ("gate", "up", "down")}},
    "mimo2": {"attn_sinks.weight": "self_attn.attention_sink_bias"},
    "bailingmoe2": {"attn_qkv.weight": "attention.query_key_value.weight", "attn_output.weight": "attention.dense.weight",
                    "attn_q_norm.weight": "attention.query_layernorm.weight", "attn_k_norm.weight": "attention.key_layernorm.weight",
                    "exp_probs_b.bias": "mlp.gate.expert_bias", "token_embd.weight": "model.word_embeddings.weight"},
}
TURNED = {"llama", "granite", "granitemoe", "smollm3", "mistral3"}  # rows of q and k are those of pairs
SHIFTED = {"gemma3", "step35"}  # norms are what is added to 1
PREFIX = {"gemma3": "language_model.", "mistral3": "language_model.", "mistral4": "language_model."}


def halves_of_pairs(rows, heads):
    """From pairs of neighbours to halves of each head."""
    width = len(rows) // heads
    out = np.empty_like(rows)
    for head in range(heads):
        one = rows[head * width:(head + 1) * width]
        out[head * width:(head + 1) * width] = np.concatenate([one[0::2], one[1::2]])
    return out


def split_experts(name, values):
    return {name.replace("*", str(i)): values[i] for i in range(len(values))}


def joint_kv_b(tensors, block):
    """[heads * (nope + value), rank] of the two that files hold."""
    k, v = tensors[block + "attn_k_b.weight"], tensors[block + "attn_v_b.weight"]
    return np.concatenate([k.swapaxes(1, 2), v], 1).reshape(-1, k.shape[1])


def interleaved(first, second, axis):
    shape = list(first.shape)
    shape[axis] *= 2
    return np.stack([first, second], axis + 1).reshape(shape)


def published_tensors(arch, case, tensors):
    """By name. `tensors`: of the golden model, outermost dimension first."""
    c, made, names = case["config"], {}, LAYER | MODEL | OTHER.get(arch, {})
    mixtral = case["family"] == "mixtral"
    if mixtral:
        names = names | SPARSE
    for name, values in tensors.items():
        at = re.match(r"blk\.(\d+)\.(.*)", name)
        if name.startswith(("rope_freqs", "rope_factors")):
            continue
        if not at:
            made[names[name]] = values - 1 if arch in SHIFTED and values.ndim == 1 else values
            continue
        if int(at[1]) >= c["num_hidden_layers"]:
            continue
        base, part = f"model.layers.{at[1]}.", at[2]
        block = f"blk.{at[1]}."
        if part in ("attn_k_b.weight", "attn_v_b.weight"):
            if block + "attn_kv_b.weight" not in tensors:
                made[base + "self_attn.kv_b_proj.weight"] = joint_kv_b(tensors, block)
            continue
        if arch in ("granitemoe", "gpt-oss") and "_exps" in part or arch == "granitemoe" and "_shexp" in part:
            continue
        if part == "ffn_gate_up_exps.weight":
            for i, both in enumerate(values):
                for half, kind in zip(np.split(both, 2), ("gate", "up")):
                    made[f"{base}mlp.experts.{i}.{kind}_proj.weight"] = half
            continue
        if arch == "chatglm" and part.startswith("attn_qkv"):
            q = c["num_attention_heads"] * c["head_dim"]
            k = c["num_key_value_heads"] * c["head_dim"]
            for one, letter in zip(np.split(values, [q, q + k]), "qkv"):
                made[f"{base}self_attn.{letter}_proj.{part.split('.')[1]}"] = one
            continue
        if arch in TURNED and part in ("attn_q.weight", "attn_k.weight"):
            values = halves_of_pairs(values, c["num_attention_heads" if part[5] == "q" else "num_key_value_heads"])
        if part == "ffn_gate_inp_shexp.weight":
            values = values.reshape(1, -1)
        if arch == "ernie4_5-moe" and part == "exp_probs_b.bias":
            values = values.reshape(1, -1)
        if arch in SHIFTED and "norm" in part:
            values = values - 1
        made |= split_experts(base + names[part], values) if "*" in names[part] else {base + names[part]: values}
    for i in range(c["num_hidden_layers"]):
        joint_experts(arch, f"model.layers.{i}.", f"blk.{i}.", tensors, made)
    prefix = PREFIX.get(arch, "")
    return {prefix + name: values for name, values in made.items()}


def joint_experts(arch, base, block, tensors, made):
    """Experts of one layer in one tensor."""
    def of(name):
        return tensors[block + name]
    if arch == "granitemoe":
        made[base + "block_sparse_moe.input_linear.weight"] = np.concatenate([of("ffn_gate_exps.weight"), of("ffn_up_exps.weight")], 1)
        made[base + "block_sparse_moe.output_linear.weight"] = of("ffn_down_exps.weight")
        made[base + "shared_mlp.input_linear.weight"] = np.concatenate([of("ffn_gate_shexp.weight"), of("ffn_up_shexp.weight")])
        made[base + "shared_mlp.output_linear.weight"] = of("ffn_down_shexp.weight")
    if arch == "gpt-oss":  # of the variant in bf16
        both = interleaved(of("ffn_gate_exps.weight"), of("ffn_up_exps.weight"), 1)
        made[base + "mlp.experts.gate_up_proj"] = both.swapaxes(1, 2)
        made[base + "mlp.experts.down_proj"] = of("ffn_down_exps.weight").swapaxes(1, 2)
        made[base + "mlp.experts.gate_up_proj_bias"] = interleaved(of("ffn_gate_exps.bias"), of("ffn_up_exps.bias"), 1)
        made[base + "mlp.experts.down_proj_bias"] = of("ffn_down_exps.bias")


def published_config(arch, case, eps):
    """As publishers write it: what `transformers` 5 calls rope_parameters under the names of before."""
    c = dict(case["config"])
    rope = c.pop("rope_parameters")
    whole = rope.get("full_attention", rope)
    c.update(rms_norm_eps=eps, rope_theta=whole["rope_theta"], architectures=[CLASSES[case["family"]] + "ForCausalLM"])
    c["max_position_embeddings"] = int(rope.get("factor", 1) * rope.get("original_max_position_embeddings", 8192))
    if "partial_rotary_factor" in whole:
        c["partial_rotary_factor"] = whole["partial_rotary_factor"]
    scaling = {key: value for key, value in whole.items() if key not in ("rope_theta", "rope_type", "partial_rotary_factor")}
    if whole["rope_type"] != "default":
        c["rope_scaling"] = scaling | {"type": whole["rope_type"]}
    if case["family"] in ADAPT:
        c = ADAPT[case["family"]](c, rope)
    return c


def hunyuan(c, rope):
    if "moe_topk" in c:
        layers = c["num_hidden_layers"]
        c.update(moe_topk=[c["moe_topk"]] * layers, num_shared_expert=[1] * layers, moe_intermediate_size=[c["intermediate_size"]] * layers)
    # The golden's base, reached by the factor that the publisher gives.
    width = c["head_dim"]
    c["rope_theta"] /= 2.0 ** (width / (width - 2))
    c["rope_scaling"] = dict(type="dynamic", alpha=2.0, factor=1.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)
    return c


def bailing(c, rope):
    c.update(num_experts=c.pop("n_routed_experts"), num_shared_experts=c.pop("n_shared_experts"), moe_router_enable_expert_bias=True)
    return c


def gemma(c, rope):
    c["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    del c["tie_word_embeddings"]  # true where nothing says otherwise
    return dict(architectures=["Gemma3ForConditionalGeneration"], text_config=c)


def mimo(c, rope):
    c["hybrid_layer_pattern"] = [int(kind == "sliding_attention") for kind in c.pop("layer_types")]
    c["moe_layer_freq"] = [int(kind == "sparse") for kind in c.pop("mlp_layer_types")]
    c.update(swa_num_key_value_heads=2 * c["num_key_value_heads"], swa_rope_theta=rope["sliding_attention"]["rope_theta"],
             sliding_window_size=c["sliding_window"], layernorm_epsilon=c.pop("rms_norm_eps"), n_shared_experts=None,
             swa_num_attention_heads=c["num_attention_heads"], swa_head_dim=c["head_dim"], swa_v_head_dim=c["v_head_dim"],
             routed_scaling_factor=None, norm_topk_prob=True)
    return c


def minimax(c, rope):
    c["rotary_dim"] = int(c["head_dim"] * c.pop("partial_rotary_factor"))
    return c


def mistral(c, rope):
    del c["rope_theta"], c["rope_scaling"]
    model = "mistral4" if "kv_lora_rank" in c else "ministral3"
    return dict(architectures=["Mistral3ForConditionalGeneration"], text_config=c | dict(model_type=model, rope_parameters=rope))


def qwen(c, rope):
    if not c.get("use_sliding_window"):
        c.update(use_sliding_window=False, sliding_window=4096, max_window_layers=28)
    return c


def flash(c, rope):
    return c | dict(first_k_dense_replace=1)


def ernie(c, rope):
    return c | dict(use_bias=False)


def phi(c, rope):
    """The trained context stands beside the scaling, whose factor is the whole context's share."""
    if "rope_scaling" in c:
        c["original_max_position_embeddings"] = c["rope_scaling"].pop("original_max_position_embeddings")
        del c["rope_scaling"]["factor"]
    return c


def step(c, rope):
    """Lists have an entry for a layer that predicts a further token."""
    kinds, further = c.pop("layer_types"), ["sliding_attention"]
    of_layers = [rope[kind] for kind in kinds + further]
    groups = c.pop("num_key_value_heads")
    c.pop("partial_rotary_factor")
    c.update(num_attention_groups=groups, moe_num_experts=c.pop("n_routed_experts"), moe_top_k=c.pop("num_experts_per_tok"),
             attention_other_setting=dict(num_attention_heads=c.pop("num_sliding_attention_heads"), num_attention_groups=groups, head_dim=c["head_dim"]),
             layer_types=kinds + further, rope_theta=[one["rope_theta"] for one in of_layers],
             partial_rotary_factors=[one["partial_rotary_factor"] for one in of_layers], yarn_only_types=["full_attention"],
             moe_layers_enum=",".join(str(i) for i, kind in enumerate(c.pop("mlp_layer_types")) if kind == "sparse"),
             swiglu_limits=c["swiglu_limits"] + [0.0], swiglu_limits_shared=c["swiglu_limits_shared"] + [0.0], num_nextn_predict_layers=1,
             norm_expert_weight=True, moe_router_activation="sigmoid", use_head_wise_attn_gate=True, zero_centered=True)
    c["rope_scaling"]["rope_type"] = c["rope_scaling"].pop("type")
    return c


ADAPT = {"phi3": phi, "step35": step, "glm-flash": flash, "hunyuan-moe": hunyuan, "hunyuan-dense": hunyuan, "bailingmoe2": bailing, "gemma3": gemma, "mimo2": mimo,
         "minimax-m2": minimax, "mistral3": mistral, "mistral4": mistral, "qwen2": qwen, "qwen3": qwen, "qwen3moe": qwen, "qwen2moe": qwen, "ernie4_5-moe": ernie}
CLASSES = {
    "v2": "DeepseekV2", "v3": "DeepseekV3", "kimi-k2": "DeepseekV3", "gigachat": "DeepseekV3", "glm-flash": "Glm4MoeLite",
    "deepseek32": "DeepseekV32", "glm-dsa": "GlmMoeDsa", "mistral4": "Mistral3", "minicpm3": "MiniCPM3", "youtu": "Youtu", "llama": "Llama",
    "mixtral": "Mixtral", "qwen3": "Qwen3", "qwen3moe": "Qwen3Moe", "qwen2": "Qwen2", "qwen2moe": "Qwen2Moe", "glm4moe": "Glm4Moe",
    "minimax-m2": "MiniMaxM2", "seed_oss": "SeedOss", "dots1": "Dots1", "hunyuan-moe": "HunYuanMoEV1", "hunyuan-dense": "HunYuanDenseV1",
    "ernie4_5": "Ernie4_5", "ernie4_5-moe": "Ernie4_5_Moe", "smollm3": "SmolLM3", "olmo2": "Olmo2", "glm4": "Glm4", "chatglm": "Glm",
    "phi3": "Phi3", "bailingmoe2": "BailingMoeV2", "granite": "Granite", "granitemoe": "GraniteMoeShared", "mistral3": "Mistral3",
    "gpt-oss": "GptOss", "gemma3": "Gemma3", "mimo2": "MiMoV2Flash", "step35": "Step3p5", "exaone4": "Exaone4"}
KINDS = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.uint8): "U8"}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": KINDS[values.dtype], "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values).tobytes())
