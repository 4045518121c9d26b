"""What publishers' checkpoints call otherwise than the classes of `transformers` that FAMILIES has.

`transformers` renames tensors and configurations while it loads them; so does this. One row for each class that needs it.
"""
from dataclasses import dataclass, field

from conversion.errors import Unsupported


@dataclass(frozen=True)
class Layout:
    family: str = ""      # of FAMILIES, where no family has the class
    defaults: dict = field(default_factory=dict)  # what config.json may leave out
    names: tuple = ()     # of tensors: pattern (of `re`), replacement
    turned: str = ""      # a pattern of those whose last two dimensions are the other way round
    complete: object = None  # completes a dict of the configuration
    dense: str = ""  # the family of models of the class that have no experts


def first_of(value):
    """Of a number for each layer, all of them alike."""
    if not isinstance(value, list):
        return value
    if len(set(value)) != 1:
        raise Unsupported(f"config.json: layers differ in a list of numbers: {value[:8]}")
    return value[0]


def fixed(**values):
    """What no key of a file says has to be what the architecture computes."""
    def check(c):
        for key, value in values.items():
            if c.get(key, value) != value:
                raise Unsupported(f"config.json: {key} is {c[key]}; {value} is computed")
    return check


def complete_hunyuan(c):
    if "moe_topk" in c:
        c["num_experts_per_tok"] = first_of(c["moe_topk"])
    if first_of(c.get("num_shared_expert", 1)) != 1:
        raise Unsupported(f"config.json: num_shared_expert is {c['num_shared_expert']}; one shared expert is converted")
    if "moe_intermediate_size" in c:
        c["moe_intermediate_size"] = first_of(c["moe_intermediate_size"])
    if c.get("use_cla"):
        raise Unsupported("config.json: use_cla (layers that share keys and values) is not converted")
    rope = c.get("rope_scaling") or {}
    if rope.get("type") == "dynamic" and rope.get("alpha"):
        # The base for the whole context, whatever the length: theta * alpha^(d / (d - 2)).
        width = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
        c["rope_theta"] = c.get("rope_theta", 10000.0) * rope["alpha"] ** (width / (width - 2))
        c["rope_scaling"] = None


def complete_ernie(c):
    if "moe_k" in c:
        c["num_experts_per_tok"] = c["moe_k"]


def complete_bailing(c):
    for theirs, ours in (("num_experts", "n_routed_experts"), ("num_shared_experts", "n_shared_experts")):
        if theirs in c:
            c[ours] = c.pop(theirs)


def complete_chatglm(c):
    """ChatGLM2 and 3 and GLM-4 before `transformers` had their class."""
    fixed(rmsnorm=True, post_layer_norm=True, original_rope=True, add_bias_linear=False, apply_residual_connection_post_layernorm=False)(c)
    for theirs, ours in (("num_layers", "num_hidden_layers"), ("kv_channels", "head_dim"), ("ffn_hidden_size", "intermediate_size"),
                         ("layernorm_epsilon", "rms_norm_eps"), ("seq_length", "max_position_embeddings"), ("padded_vocab_size", "vocab_size")):
        if theirs in c:
            c[ours] = c[theirs]
    c["num_key_value_heads"] = c["multi_query_group_num"] if c.get("multi_query_attention") else c["num_attention_heads"]
    c["rope_theta"] = 10000.0 * c.get("rope_ratio", 1.0)


def complete_minimax(c):
    if "rotary_dim" in c:
        c["partial_rotary_factor"] = c["rotary_dim"] / c["head_dim"]


def complete_gemma(c):
    for key in ("final_logit_softcapping", "attn_logit_softcapping"):
        if c.get(key):
            raise Unsupported(f"config.json: {key} is {c[key]}; Gemma 3 has none")
    fixed(use_bidirectional_attention=False)({key: value for key, value in c.items() if value is not None})
    if "full_attention" in c.get("rope_parameters", {}):
        return
    scaling = dict(c.get("rope_scaling") or {})
    whole = dict(rope_theta=c["rope_theta"], rope_type=scaling.pop("type", None) or scaling.get("rope_type", "default"))
    c["rope_parameters"] = dict(full_attention=scaling | whole, sliding_attention=dict(
        rope_type="default", rope_theta=c["rope_local_base_freq"]))


def complete_mimo(c):
    if "hybrid_layer_pattern" in c:
        c["layer_types"] = ["sliding_attention" if one else "full_attention" for one in c["hybrid_layer_pattern"]]
    if "moe_layer_freq" in c:
        c["mlp_layer_types"] = ["sparse" if one else "dense" for one in c["moe_layer_freq"]]
    c.setdefault("rms_norm_eps", c.get("layernorm_epsilon", 1e-5))
    c.setdefault("swa_num_key_value_heads", 2 * c["num_key_value_heads"])
    for ours, whole in (("swa_num_attention_heads", "num_attention_heads"), ("swa_head_dim", "head_dim"), ("swa_v_head_dim", "v_head_dim")):
        if c.get(ours, c[whole]) != c[whole]:
            raise Unsupported(f"config.json: {ours} is {c[ours]}, {whole} {c[whole]}; layers are converted where they are alike")
    if "full_attention" not in (c.get("rope_parameters") or {}):
        share = dict(rope_type="default", partial_rotary_factor=c["partial_rotary_factor"])
        c["rope_parameters"] = dict(full_attention=share | dict(rope_theta=c["rope_theta"]),
                                    sliding_attention=share | dict(rope_theta=c["swa_rope_theta"]))


def complete_hybrid(c):
    """Granite 4's class with attention in all layers."""
    if "mamba" in (c.get("layer_types") or ["mamba"]):
        raise Unsupported("config.json: layer_types has 'mamba'; layers with a recurrent state are not converted")
    if c.get("position_embedding_type") != "rope":
        raise Unsupported(f"config.json: position_embedding_type is {c.get('position_embedding_type')!r}; 'rope' is converted")
    if not c.get("num_local_experts"):  # the shared expert is the whole network
        c["intermediate_size"] = c.get("shared_intermediate_size") or c.get("intermediate_size")


def complete_step(c):
    """Lists may go on for the layers that predict further tokens."""
    layers = c["num_hidden_layers"]
    fixed(moe_router_activation="sigmoid", norm_expert_weight=True, use_head_wise_attn_gate=True, zero_centered=True)(c)
    for theirs, ours in (("num_attention_groups", "num_key_value_heads"), ("moe_num_experts", "n_routed_experts"),
                         ("moe_top_k", "num_experts_per_tok"), ("share_expert_dims", "share_expert_dim")):
        if theirs in c:
            c[ours] = c[theirs]
    windows = c.get("attention_other_setting") or {}
    for theirs, ours in (("num_attention_groups", "num_key_value_heads"), ("head_dim", "head_dim")):
        if windows.get(theirs, c[ours]) != c[ours]:
            raise Unsupported(f"config.json: {theirs} of attention_other_setting is {windows[theirs]}, {ours} {c[ours]}; "
                              "layers are converted where they are alike")
    c.setdefault("num_sliding_attention_heads", windows.get("num_attention_heads", c["num_attention_heads"]))
    if "mlp_layer_types" not in c:
        with_experts = c.get("moe_layers_enum", range(3, layers))
        with_experts = {int(one) for one in (with_experts.split(",") if isinstance(with_experts, str) else with_experts)}
        c["mlp_layer_types"] = ["sparse" if i in with_experts else "dense" for i in range(layers)]
    kinds = c["mlp_layer_types"] = c["mlp_layer_types"][:layers]
    if "sparse" not in kinds or "dense" in kinds[kinds.index("sparse"):]:
        raise Unsupported("config.json: moe_layers_enum says other layers than all after the first ones; those are converted")
    for key, length in (("layer_types", layers), ("swiglu_limits", layers), ("swiglu_limits_shared", layers)):
        c[key] = (c.get(key) or ["full_attention" if key == "layer_types" else None] * length)[:length]
    if "full_attention" in (c.get("rope_parameters") or {}):
        return
    c["rope_parameters"] = {}
    for kind in set(c["layer_types"]) | {"full_attention", "sliding_attention"}:
        layer = c["layer_types"].index(kind) if kind in c["layer_types"] else 0
        one = {key: c[theirs][layer] if isinstance(c[theirs], list) else c[theirs] for key, theirs in (
            ("rope_theta", "rope_theta"), ("partial_rotary_factor", "partial_rotary_factors")) if theirs in c}
        c["rope_parameters"][kind] = dict(rope_type="default", rope_theta=10000.0) | one
    scaling = dict(c.get("rope_scaling") or {})
    if "type" in scaling:
        scaling.setdefault("rope_type", scaling.pop("type"))
    c["rope_parameters"]["full_attention"] |= scaling
    for kind, share in (("full_attention", 0.5), ("sliding_attention", 1.0)):
        if c["rope_parameters"][kind].setdefault("partial_rotary_factor", share) != share:
            raise Unsupported(f"config.json: of {kind} partial_rotary_factors says {c['rope_parameters'][kind]['partial_rotary_factor']}; "
                              f"{share} is computed")


GEMMA3 = Layout(defaults=dict(
    vocab_size=262208, num_attention_heads=8, num_key_value_heads=4, head_dim=256, max_position_embeddings=131072,
    sliding_window=4096, rope_theta=1e6, rope_local_base_freq=10000.0, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256), complete=complete_gemma)
HUNYUAN = Layout(defaults=dict(rms_norm_eps=1e-5), complete=complete_hunyuan)
GRANITE_EXPERTS = (
    (r"\.mlp\.input_linear\.weight$", ".mlp.experts.gate_up_proj"),
    (r"\.mlp\.output_linear\.weight$", ".mlp.experts.down_proj"),
    (r"\.mlp\.router\.layer\.", ".mlp.router."))
GRANITE_SCALES = dict(attention_multiplier=1.0, embedding_multiplier=1.0, residual_multiplier=1.0, logits_scaling=1.0,
                      shared_intermediate_size=0)

STEP = Layout("step35", defaults=dict(moe_router_scaling_factor=1.0, rms_norm_eps=1e-5), complete=complete_step, names=(
    (r"\.moe\.gate\.", ".mlp.gate."), (r"\.moe\.router_bias$", ".mlp.gate.e_score_correction_bias"),
    (r"\.moe\.(gate|up|down)_proj\.weight", r".mlp.experts.\1_proj"), (r"\.share_expert\.", ".mlp.shared_experts.")))

CHATGLM = Layout("chatglm", defaults=dict(partial_rotary_factor=0.5, tie_word_embeddings=False), complete=complete_chatglm, names=(
    (r"^transformer\.embedding\.word_embeddings\.", "embed_tokens."), (r"^transformer\.output_layer\.", "lm_head."),
    (r"^transformer\.encoder\.final_layernorm\.", "norm."), (r"^transformer\.encoder\.layers\.", "layers."),
    (r"\.self_attention\.query_key_value\.", ".self_attn.qkv_proj."), (r"\.self_attention\.dense\.", ".self_attn.o_proj."),
    (r"\.mlp\.dense_h_to_4h\.", ".mlp.gate_up_proj."), (r"\.mlp\.dense_4h_to_h\.", ".mlp.down_proj.")))

# By the class in config.json without "ForCausalLM" or "ForConditionalGeneration".
LAYOUTS = {
    "BailingMoeV2": Layout("bailingmoe2", dict(partial_rotary_factor=0.5), names=(
        (r"^word_embeddings\.", "embed_tokens."), (r"\.attention\.query_key_value\.", ".self_attn.qkv_proj."),
        (r"\.attention\.dense\.", ".self_attn.o_proj."), (r"\.attention\.", ".self_attn."),
        (r"\.gate\.expert_bias$", ".gate.e_score_correction_bias")), complete=complete_bailing),
    "ChatGLM": CHATGLM,
    "ChatGLMModel": CHATGLM,
    "Ernie4_5_Moe": Layout(names=((r"\.mlp\.moe_statics\.", ".mlp.gate.moe_statics."),), complete=complete_ernie,
                           defaults=dict(moe_layer_interval=1)),
    "Ernie4_5": Layout(defaults=dict(head_dim=128)),
    "Gemma3": GEMMA3,
    "Glm": Layout(defaults=dict(head_dim=128, partial_rotary_factor=0.5)),
    "Glm4": Layout(defaults=dict(head_dim=128, partial_rotary_factor=0.5)),
    "Glm4Moe": Layout("glm4moe", dict(partial_rotary_factor=0.5)),
    "Granite": Layout("granite", defaults=GRANITE_SCALES),
    "GraniteMoe": Layout("granitemoe", GRANITE_SCALES, names=GRANITE_EXPERTS),
    "GraniteMoeShared": Layout(defaults=GRANITE_SCALES, names=GRANITE_EXPERTS),
    "GptOss": Layout(complete=fixed(swiglu_limit=7.0)),
    "GraniteMoeHybrid": Layout("granitemoe", dense="granite", defaults=GRANITE_SCALES, names=GRANITE_EXPERTS, complete=complete_hybrid),
    "HunYuanMoEV1": HUNYUAN,
    "HunYuanDenseV1": HUNYUAN,
    "InternLM2": Layout(names=(
        (r"^tok_embeddings\.", "embed_tokens."), (r"^output\.", "lm_head."), (r"\.attention\.wo\.", ".self_attn.o_proj."),
        (r"\.attention\.", ".self_attn."), (r"\.attention_norm\.", ".input_layernorm."), (r"\.ffn_norm\.", ".post_attention_layernorm."),
        (r"\.feed_forward\.w1\.", ".mlp.gate_proj."), (r"\.feed_forward\.w2\.", ".mlp.down_proj."),
        (r"\.feed_forward\.w3\.", ".mlp.up_proj."))),
    "KimiK25": Layout("kimi-k2"),
    "MiMoV2Flash": Layout(names=((r"\.attention_sink_bias$", ".sinks"),), complete=complete_mimo,
                          defaults=dict(attention_value_scale=0.707)),
    "MiniCPM3": Layout(complete=fixed(scale_emb=12, scale_depth=1.4, dim_model_base=256)),
    "MiniMaxM2": Layout(complete=complete_minimax),
    "Mistral": Layout("llama"),
    "Phi3": Layout("phi3", defaults=dict(original_max_position_embeddings=4096)),
    "Qwen2_5_VL": Layout("qwen2"),
    "Qwen3VL": Layout("qwen3"),
    "Qwen3VLMoe": Layout("qwen3moe", turned=r"\.experts\.(gate_up|down)_proj$"),
    "Step3p5": STEP,
    "Step3p7": STEP,
    "SeedOss": Layout(defaults=dict(head_dim=128)),
}
NONE = Layout()
# tokenizer.ggml.pre of the published models, where the recorder of goldens takes another's; a list where they differ.
PRE = {"minimax-m2": ["minimax-m2"], "seed_oss": ["seed-coder"], "hunyuan-moe": ["hunyuan"], "hunyuan-dense": ["hunyuan-dense"],
       "olmo2": ["dbrx"], "exaone4": ["exaone4"], "phi3": ["dbrx"], "granite": ["refact", "dbrx"], "granitemoe": ["refact", "dbrx"]}


def class_of(name):
    return name.removesuffix("ForCausalLM").removesuffix("ForConditionalGeneration")


def layout_of(architectures):
    return next((LAYOUTS[name] for name in map(class_of, architectures) if name in LAYOUTS), NONE)
