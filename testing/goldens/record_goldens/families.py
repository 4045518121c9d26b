"""The families of models that are recorded: all that the tools know of an architecture beside the sizes of cases.py."""
import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    architecture: str          # general.architecture
    transformers: str          # the classes NAMEConfig and NAMEForCausalLM
    pre: str                   # tokenizer.ggml.pre
    special: tuple             # the first four tokens of the vocabulary
    # Rope turns neighbours, so that rows of q and k are written in another order; converters of such write
    # rope.dimension_count, too.
    neighbours: bool = False
    latent: bool = False       # multi-head latent attention
    bare: bool = False         # latent, and converters write no keys of experts and no length of values
    sigmoid: bool = False      # routers: sigmoids with a bias on selection, groups by their best two
    interleaved: bool = False  # with neighbours: transformers turns them, too, and rows stay as they are
    norms: dict = field(default_factory=lambda: NORMS)  # of a layer: in the file, in transformers
    config: str = ""           # the configuration's class, where it has another name
    shifted: bool = False      # norms are 1 + the weight; files hold the sum
    pattern: bool = True       # converters write which layers have a window
    heads: object = None       # of each layer, what makes it of a config
    kv_heads: object = None    # the same
    text: str = ""             # the class of the text alone, without an output matrix, where there is none with it
    # Keys beside those that all have: name after the prefix, what makes it of a config; None: there is no key.
    keys: dict = field(default_factory=dict)


def latent(architecture, transformers, pre, special, sigmoid=True):
    return Family(architecture, transformers, pre, special, latent=True, sigmoid=sigmoid)


DEEPSEEK = ("<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>",
            "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>")
QWEN = ("<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|object_ref_start|>")
GLM = ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|observation|>")
LLAMA3 = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>")
PLAIN = ("<s>", "</s>", "<unk>", "<pad>")

NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
# The norm before the feed-forward network has the name of one after attention.
NORMS_GLM = {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm"}
NORMS_BOTH = {"attn_norm": "input_layernorm", "post_attention_norm": "post_self_attn_layernorm",
              "ffn_norm": "post_attention_layernorm", "post_ffw_norm": "post_mlp_layernorm"}
NORMS_GEMMA = {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
               "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
NORMS_AFTER = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}


def rotated(config):
    share = config.rope_parameters.get("partial_rotary_factor", 1.0)
    return int(config.head_dim * share)


ROTATED = {"rope.dimension_count": rotated}
ROTATED_HALVES = {"rope.dimension_count": lambda c: int(c.hidden_size // c.num_attention_heads
                                                        * c.rope_parameters.get("partial_rotary_factor", 1.0))}


def trained_context(c):
    return c.rope_parameters.get("original_max_position_embeddings") or c.original_max_position_embeddings


def longrope_attn_factor(c):
    if c.rope_parameters["rope_type"] != "longrope":
        return None
    stretch = c.max_position_embeddings / trained_context(c)
    return math.sqrt(1 + math.log(stretch) / math.log(trained_context(c))) if stretch > 1 else 1.0


def unless(implied, value):
    """A number, if it is not what loaders take without the key."""
    return None if value == implied else float(value)


def gemma3_scale(c):
    """Of scores. Loaders take the length of a head; of the model with 62 layers (27B) embedding / heads."""
    implied = c.hidden_size // c.num_attention_heads if c.num_hidden_layers == 62 else c.head_dim
    return None if c.query_pre_attn_scalar == implied else c.query_pre_attn_scalar ** -0.5


SIGMOID = {"expert_gating_func": lambda c: 2}
SHARED = {"leading_dense_block_count": lambda c: c.first_k_dense_replace,
          "expert_shared_count": lambda c: c.n_shared_experts,
          "expert_weights_scale": lambda c: float(c.routed_scaling_factor),
          "expert_weights_norm": lambda c: bool(c.norm_topk_prob)}

SCALES = {"attention.scale": lambda c: float(c.attention_multiplier),
          "embedding_scale": lambda c: float(c.embedding_multiplier),
          "residual_scale": lambda c: float(c.residual_multiplier),
          "logit_scale": lambda c: float(c.logits_scaling)}

FAMILIES = {
    "v2": latent("deepseek2", "DeepseekV2", "deepseek-llm", DEEPSEEK, sigmoid=False),
    "v3": latent("deepseek2", "DeepseekV3", "deepseek-v3", DEEPSEEK),
    "kimi-k2": latent("deepseek2", "DeepseekV3", "kimi-k2", ("[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>")),
    "gigachat": latent("deepseek2", "DeepseekV3", "gigachat", ("<unk>", "<s>", "</s>", "<|message_sep|>")),
    "glm-flash": latent("deepseek2", "Glm4MoeLite", "glm4", GLM),
    "deepseek32": latent("deepseek32", "DeepseekV32", "deepseek-v3", DEEPSEEK),
    "glm-dsa": latent("glm-dsa", "GlmMoeDsa", "glm4", GLM),
    "mistral4": latent("mistral4", "Mistral4", "tekken", ("<unk>", "<s>", "</s>", "[INST]"), sigmoid=False),
    # Halves are turned, as in transformers, and nothing of experts is written.
    "minicpm3": Family("minicpm3", "MiniCPM3", "llama-bpe", PLAIN, latent=True, bare=True),
    "youtu": latent("deepseek2", "Youtu", "youtu", LLAMA3),
    "llama": Family("llama", "Llama", "llama-bpe", LLAMA3, neighbours=True),
    "internlm2": Family("internlm2", "InternLM2", "default", PLAIN, neighbours=True),  # is not recorded: the graph of llama
    "mixtral": Family("llama", "Mixtral", "llama-bpe", LLAMA3, neighbours=True),
    "qwen3": Family("qwen3", "Qwen3", "qwen2", QWEN),
    "qwen3moe": Family("qwen3moe", "Qwen3Moe", "qwen2", QWEN),
    "qwen2": Family("qwen2", "Qwen2", "qwen2", QWEN),
    "qwen2moe": Family("qwen2moe", "Qwen2Moe", "qwen2", QWEN, keys={
        "expert_shared_feed_forward_length": lambda c: c.shared_expert_intermediate_size}),
    "glm4moe": Family("glm4moe", "Glm4Moe", "glm4", GLM, sigmoid=True, norms=NORMS_GLM,
                      keys=ROTATED | SHARED | SIGMOID),
    "minimax-m2": Family("minimax-m2", "MiniMaxM2", "qwen2", PLAIN, sigmoid=True, keys=ROTATED | SIGMOID),
    "seed_oss": Family("seed_oss", "SeedOss", "qwen2", PLAIN, norms=NORMS_GLM),
    "dots1": Family("dots1", "Dots1", "qwen2", PLAIN, sigmoid=True, keys=SHARED | SIGMOID),
    "hunyuan-moe": Family("hunyuan-moe", "HunYuanMoEV1", "qwen2", PLAIN, keys={
        "expert_shared_count": lambda c: 1, "expert_shared_feed_forward_length": lambda c: c.intermediate_size}),
    "hunyuan-dense": Family("hunyuan-dense", "HunYuanDenseV1", "qwen2", PLAIN),
    "ernie4_5": Family("ernie4_5", "Ernie4_5", "qwen2", PLAIN, neighbours=True, interleaved=True),
    "ernie4_5-moe": Family("ernie4_5-moe", "Ernie4_5_Moe", "qwen2", PLAIN, neighbours=True, interleaved=True, keys={
        "interleave_moe_layer_step": lambda c: c.moe_layer_interval,
        "leading_dense_block_count": lambda c: c.moe_layer_start_index,
        "expert_shared_count": lambda c: c.moe_num_shared_experts,
        "expert_shared_feed_forward_length": lambda c: c.moe_num_shared_experts * c.moe_intermediate_size}),
    "smollm3": Family("smollm3", "SmolLM3", "llama-bpe", PLAIN, neighbours=True),
    "olmo2": Family("olmo2", "Olmo2", "qwen2", PLAIN, norms=NORMS_AFTER),
    "glm4": Family("glm4", "Glm4", "glm4", GLM, neighbours=True, interleaved=True, norms=NORMS_BOTH, keys=ROTATED),
    "chatglm": Family("chatglm", "Glm", "chatglm-bpe", GLM, neighbours=True, interleaved=True, keys=ROTATED),
    "phi3": Family("phi3", "Phi3", "gpt-4o", PLAIN, pattern=False, keys=ROTATED_HALVES | {
        # 0 tells Phi-4, which has none, from files of Phi-3 that do not say theirs.
        "attention.sliding_window": lambda c: None if getattr(c, "sliding_window", None) else 0,
        "rope.scaling.original_context_length": trained_context, "rope.scaling.attn_factor": longrope_attn_factor}),
    # What BailingMoeV2 computes: transformers has it under the name of another model alone.
    "bailingmoe2": Family("bailingmoe2", "Glm4Moe", "bailingmoe2", PLAIN, sigmoid=True, keys=ROTATED | SHARED | SIGMOID | {
        "expert_group_count": lambda c: c.n_group, "expert_group_used_count": lambda c: c.topk_group,
        "expert_shared_feed_forward_length": lambda c: c.n_shared_experts * c.moe_intermediate_size}),
    "granite": Family("granite", "Granite", "refact", PLAIN, neighbours=True, keys=SCALES),
    "granitemoe": Family("granitemoe", "GraniteMoeShared", "refact", PLAIN, neighbours=True, keys=SCALES | {
        "expert_shared_feed_forward_length": lambda c: c.shared_intermediate_size or None}),
    "mistral3": Family("mistral3", "Ministral3", "tekken", PLAIN, neighbours=True, keys={
        "rope.scaling.type": lambda c: "yarn",
        "rope.scaling.factor": lambda c: float(c.rope_parameters["factor"]),
        "rope.scaling.original_context_length": lambda c: c.rope_parameters["original_max_position_embeddings"],
        "rope.scaling.yarn_beta_fast": lambda c: float(c.rope_parameters["beta_fast"]),
        "rope.scaling.yarn_beta_slow": lambda c: float(c.rope_parameters["beta_slow"]),
        "rope.scaling.yarn_log_multiplier": lambda c: float(c.rope_parameters["mscale_all_dim"]),
        "attention.temperature_scale": lambda c: float(c.rope_parameters["llama_4_scaling_beta"])}),
    "gpt-oss": Family("gpt-oss", "GptOss", "gpt-4o", ("<|startoftext|>", "<|return|>", "<|start|>", "<|message|>"), norms=NORMS_GLM,
                      pattern=False, keys={
        "rope.scaling.type": lambda c: "yarn",
        "rope.scaling.factor": lambda c: float(c.rope_parameters["factor"]),
        "rope.scaling.original_context_length": lambda c: c.rope_parameters["original_max_position_embeddings"]}),
    "gemma3": Family("gemma3", "Gemma3", "default", ("<pad>", "<eos>", "<bos>", "<unk>"), config="Gemma3Text", norms=NORMS_GEMMA,
                     shifted=True, pattern=False, keys={
        "attention.scale": gemma3_scale,
        "rope.freq_base_swa": lambda c: unless(10000.0, c.rope_parameters["sliding_attention"]["rope_theta"]),
        "rope.scaling.type": lambda c: "linear" if "factor" in c.rope_parameters["full_attention"] else None,
        "rope.scaling.factor": lambda c: c.rope_parameters["full_attention"].get("factor")}),
    # Layers with a window have twice the KV heads.
    "mimo2": Family("mimo2", "MiMoV2Flash", "qwen2", QWEN, sigmoid=True,
                    kv_heads=lambda c: [c.num_key_value_heads * (2 if kind == "sliding_attention" else 1) for kind in c.layer_types],
                    keys=SIGMOID | {
        "rope.dimension_count": lambda c: int(c.head_dim * c.rope_parameters["full_attention"]["partial_rotary_factor"]),
        "rope.freq_base_swa": lambda c: c.rope_parameters["sliding_attention"]["rope_theta"],
        "attention.value_scale": lambda c: c.attention_value_scale}),
    # Layers with a window have further heads, of which they rotate all, and the others half.
    "step35": Family("step35", "Step3p7", "deepseek-v3", DEEPSEEK, config="Step3p7Text", text="Step3p7TextModel", sigmoid=True,
                     shifted=True,
                     heads=lambda c: [c.num_sliding_attention_heads if kind == "sliding_attention" else c.num_attention_heads
                                      for kind in c.layer_types], keys=SIGMOID | {
        "rope.dimension_count": lambda c: c.head_dim,
        "rope.freq_base_swa": lambda c: c.rope_parameters["sliding_attention"]["rope_theta"],
        "leading_dense_block_count": lambda c: c.mlp_layer_types.index("sparse"),
        "moe_every_n_layers": lambda c: 1,
        "expert_shared_feed_forward_length": lambda c: c.share_expert_dim,
        "expert_weights_scale": lambda c: c.moe_router_scaling_factor,
        "expert_weights_norm": lambda c: True,
        "swiglu_clamp_exp": lambda c: [float(limit or 0) for limit in c.swiglu_limits],
        "swiglu_clamp_shexp": lambda c: [float(limit or 0) for limit in c.swiglu_limits_shared]}),
    "exaone4": Family("exaone4", "Exaone4", "qwen2", PLAIN, norms=NORMS_AFTER),
    # What MiniCPM computes, under the name of another model.
    "minicpm": Family("minicpm", "Granite", "llama-bpe", PLAIN, neighbours=True, keys={
        key: scale for key, scale in SCALES.items() if key != "attention.scale"}),
}
