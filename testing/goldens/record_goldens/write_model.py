"""Write a `transformers` model as GGUF, with the names, shapes and keys that public converters write."""
import math

import gguf
import numpy as np

import seeded
from families import FAMILIES


def byte_letters():
    """The printable letter that byte-level BPE writes for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    stand_in = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(stand_in)) for b in range(256)]


def add_vocabulary(w, family, size):
    """Four special tokens, the 256 bytes, then pairs of lower-case letters, each with its merge."""
    letters = byte_letters()
    tokens = list(FAMILIES[family].special) + letters
    pairs = [(a, b) for a in "etaoinshr" for b in "etaoinshr"][:size - len(tokens)]
    tokens = tokens + [a + b for a, b in pairs]
    assert len(tokens) == size
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(FAMILIES[family].pre)
    w.add_token_list(tokens)
    w.add_token_types([gguf.TokenType.CONTROL] * 4 + [gguf.TokenType.NORMAL] * (size - 4))
    w.add_token_merges([f"{a} {b}" for a, b in pairs])
    w.add_bos_token_id(0)
    w.add_eos_token_id(1)
    w.add_add_bos_token(True)


class Matrices:
    """Writes tensors: matrices as `encode` makes them (data, and a type for the writer or None), the rest as f32."""

    def __init__(self, writer, state, encode):
        """`state` maps names, as transformers has them but for "model.", to arrays."""
        self.writer, self.state, self.encode = writer, state, encode
        self.left = set(self.state)

    def take(self, name):
        self.left.discard(name)
        return self.state[name]

    def half(self, name, values):
        data, kind = self.encode(name, values)
        self.writer.add_tensor(name, data, raw_dtype=kind)

    def experts(self, name, sources):
        """One matrix of each expert, read and encoded one after the other."""
        parts = [self.encode(name, self.take(source)) for source in sources]
        self.writer.add_tensor(name, np.stack([data for data, _ in parts]), raw_dtype=parts[0][1])

    def mxfp4(self, name, blocks, scales):
        """Blocks of 32: an exponent and 16 bytes. Byte i has values 2 i and 2 i + 1 in checkpoints, i and i + 16 in files."""
        low, high = blocks & 15, blocks >> 4
        codes = np.stack([low, high], -1).reshape(*blocks.shape[:-1], 32)
        data = np.concatenate([scales[..., None], codes[..., :16] | codes[..., 16:] << 4], -1)
        self.writer.add_tensor(name, data.reshape(*data.shape[:-2], -1), raw_dtype=gguf.GGMLQuantizationType.MXFP4)

    def bias(self, name, source):
        """If the model has it."""
        if source in self.state:
            self.full(name, self.take(source))

    def full(self, name, values):
        self.writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    def constant(self, name, values):
        """What follows from the configuration."""
        self.full(name, values)


def pair_neighbours(weight, heads):
    """Reorder the rows of q or k so that rope turns neighbours instead of the halves of a head."""
    rows = weight.shape[0]
    return weight.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write_attention_deepseek(m, c, source, block, layout):
    if c.q_lora_rank is None:
        m.half(block + "attn_q.weight", m.take(source + "q_proj.weight"))
    else:
        m.half(block + "attn_q_a.weight", m.take(source + "q_a_proj.weight"))
        m.full(block + "attn_q_a_norm.weight", m.take(source + "q_a_layernorm.weight"))
        m.half(block + "attn_q_b.weight", m.take(source + "q_b_proj.weight"))
    m.half(block + "attn_kv_a_mqa.weight", m.take(source + "kv_a_proj_with_mqa.weight"))
    m.full(block + "attn_kv_a_norm.weight", m.take(source + "kv_a_layernorm.weight"))
    joint = m.take(source + "kv_b_proj.weight")
    heads, nope, v, rank = c.num_attention_heads, c.qk_nope_head_dim, c.v_head_dim, c.kv_lora_rank
    by_head = joint.reshape(heads, nope + v, rank)
    k_b = by_head[:, :nope].transpose(0, 2, 1)
    v_b = by_head[:, nope:]
    if layout in ("joint", "all"):
        m.half(block + "attn_kv_b.weight", joint)
    if layout == "all":
        m.half(block + "attn_k_b.weight", k_b.reshape(heads * rank, nope))
        m.half(block + "attn_v_b.weight", v_b.reshape(heads * v, rank))
    if layout == "absorbed":
        m.half(block + "attn_k_b.weight", k_b)
        m.half(block + "attn_v_b.weight", v_b)
    m.half(block + "attn_output.weight", m.take(source + "o_proj.weight"))
    if source + "indexer.wk.weight" in m.state:
        write_indexer(m, source, block)


def write_indexer(m, source, block):
    """Sparse attention's, of layers that have one. Dense attention does without."""
    for name, theirs in (("attn_q_b.weight", "wq_b.weight"), ("attn_k.weight", "wk.weight"), ("proj.weight", "weights_proj.weight")):
        m.half(f"{block}indexer.{name}", m.take(f"{source}indexer.{theirs}"))
    for part in ("weight", "bias"):
        m.full(f"{block}indexer.k_norm.{part}", m.take(f"{source}indexer.k_norm.{part}"))


def write_attention_plain(m, c, source, block, case):
    family = FAMILIES[case["family"]]
    reorder = family.neighbours and not family.interleaved
    if source + "wqkv.weight" in m.state:
        write_grouped_qkv(m, c, source, block)
    for kind, write in (("weight", m.half), ("bias", m.full)):
        if f"{source}qkv_proj.{kind}" in m.state:
            write(f"{block}attn_qkv.{kind}", m.take(f"{source}qkv_proj.{kind}"))
        parts = []
        for part, heads in (("q", c.num_attention_heads), ("k", c.num_key_value_heads), ("v", 0)):
            name = f"{source}{part}_proj.{kind}"
            if name in m.state:
                values = m.take(name)
                parts.append((part, pair_neighbours(values, heads) if reorder and heads else values))
        if case.get("fused") and parts:
            write(f"{block}attn_qkv.{kind}", np.concatenate([values for _, values in parts]))
        else:
            for part, values in parts:
                write(f"{block}attn_{part}.{kind}", values)
    m.half(block + "attn_output.weight", m.take(source + "o_proj.weight"))
    m.bias(block + "attn_output.bias", source + "o_proj.bias")
    m.bias(block + "attn_sinks.weight", source + "sinks")
    if source + "g_proj.weight" in m.state:
        m.half(block + "attn_gate.weight", m.take(source + "g_proj.weight"))
    for part, name in (("q", "query"), ("k", "key")):
        for norm in (f"{source}{part}_norm.weight", f"{source}{name}_layernorm.weight"):
            if norm in m.state:
                m.full(f"{block}attn_{part}_norm.weight", m.take(norm))


def write_grouped_qkv(m, c, source, block):
    """As InternLM2 has them: for each KV head its heads of queries, then of k and v one."""
    heads, kv_heads = c.num_attention_heads, c.num_key_value_heads
    whole = m.take(source + "wqkv.weight")
    groups = whole.reshape(kv_heads, heads // kv_heads + 2, -1, whole.shape[1])
    for part, values, count in (("q", groups[:, :-2], heads), ("k", groups[:, -2], kv_heads), ("v", groups[:, -1], 0)):
        rows = values.reshape(-1, whole.shape[1])
        m.half(f"{block}attn_{part}.weight", pair_neighbours(rows, count) if count else rows)


def write_ffn(m, source, block, case):
    router = next((n for n in (source + "gate.weight", source + "gate.wg.weight", source + "router.weight") if n in m.state), None)
    if source + "gate_up_proj.weight" in m.state:
        m.half(block + "ffn_up.weight", m.take(source + "gate_up_proj.weight"))
        m.half(block + "ffn_down.weight", m.take(source + "down_proj.weight"))
        return
    if router is None:
        for part in ("gate", "up", "down"):
            m.half(f"{block}ffn_{part}.weight", m.take(f"{source}{part}_proj.weight"))
            m.bias(f"{block}ffn_{part}.bias", f"{source}{part}_proj.bias")
        return
    m.full(block + "ffn_gate_inp.weight", m.take(router))
    m.bias(block + "ffn_gate_inp.bias", source + "router.bias")
    for parent in ("gate.", "gate.moe_statics.", ""):
        bias = source + parent + "e_score_correction_bias"
        if bias in m.state:
            m.full(block + "exp_probs_b.bias", m.take(bias).reshape(-1))
    write_experts(m, source + "experts.", block, case)
    for shared in ("shared_experts.", "shared_expert.", "shared_mlp."):
        if source + shared + "gate_proj.weight" in m.state:
            for part in ("gate", "up", "down"):
                m.half(f"{block}ffn_{part}_shexp.weight", m.take(f"{source}{shared}{part}_proj.weight"))
    if source + "shared_expert_gate.weight" in m.state:
        m.full(block + "ffn_gate_inp_shexp.weight", m.take(source + "shared_expert_gate.weight").reshape(-1))


def write_experts(m, source, block, case):
    """In checkpoints a matrix for each expert; in memory one of all, and gate and up together."""
    if source + "gate_up_proj_blocks" in m.state:
        write_mxfp4_experts(m, source, block)
        return
    if source + "gate_proj" in m.state:  # a tensor of all experts for each part
        for part in ("gate", "up", "down"):
            m.half(f"{block}ffn_{part}_exps.weight", m.take(f"{source}{part}_proj"))
        return
    if source + "gate_up_proj" not in m.state:
        count = 0
        while f"{source}{count}.up_proj.weight" in m.state:
            count += 1
        for part in ("gate", "up", "down"):
            m.experts(f"{block}ffn_{part}_exps.weight", [f"{source}{i}.{part}_proj.weight" for i in range(count)])
        return
    both = m.take(source + "gate_up_proj")
    if source + "gate_up_proj_bias" in m.state:
        write_biased_experts(m, source, block, both)
        return
    half = both.shape[1] // 2
    if case.get("fused"):
        m.half(block + "ffn_gate_up_exps.weight", both)
    else:
        m.half(block + "ffn_gate_exps.weight", both[:, :half])
        m.half(block + "ffn_up_exps.weight", both[:, half:])
    m.half(block + "ffn_down_exps.weight", m.take(source + "down_proj"))


def write_biased_experts(m, source, block, both):
    """As gpt-oss has them: columns are outputs, those of gate and up in turn."""
    biases, down = m.take(source + "gate_up_proj_bias"), m.take(source + "down_proj")
    for part, first in (("gate", 0), ("up", 1)):
        m.half(f"{block}ffn_{part}_exps.weight", both[..., first::2].transpose(0, 2, 1))
        m.full(f"{block}ffn_{part}_exps.bias", biases[..., first::2])
    m.half(block + "ffn_down_exps.weight", down.transpose(0, 2, 1))
    m.full(block + "ffn_down_exps.bias", m.take(source + "down_proj_bias"))


def write_mxfp4_experts(m, source, block):
    """As gpt-oss is published: rows are outputs, those of gate and up in turn."""
    for part, theirs, rows in (("gate", "gate_up", slice(0, None, 2)), ("up", "gate_up", slice(1, None, 2)), ("down", "down", slice(None))):
        blocks, scales, bias = (m.take(f"{source}{theirs}_proj_{kind}") for kind in ("blocks", "scales", "bias"))
        m.mxfp4(f"{block}ffn_{part}_exps.weight", blocks[:, rows], scales[:, rows])
        m.full(f"{block}ffn_{part}_exps.bias", bias[:, rows])


def dense_layers(c):
    """How many of the first layers have no experts."""
    kinds = getattr(c, "mlp_layer_types", None)
    return kinds.index("sparse") if kinds else c.first_k_dense_replace


def add_deepseek_keys(w, c, family, case):
    layout = case["layout"]
    if getattr(c, "n_routed_experts", None):
        w.add_leading_dense_block_count(dense_layers(c))
        w.add_expert_shared_count(c.n_shared_experts)
        w.add_expert_weights_scale(c.routed_scaling_factor)
        w.add_expert_weights_norm(family != "v2" and c.norm_topk_prob)
        sigmoid = FAMILIES[family].sigmoid
        if case.get("gating_key", True):
            w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if sigmoid else gguf.ExpertGatingFuncType.SOFTMAX)
        if c.n_group and not (family == "v2" and c.topk_method == "greedy"):
            w.add_expert_group_count(c.n_group)
            w.add_expert_group_used_count(c.topk_group)
    elif not FAMILIES[family].bare:  # keys that converters write all the same
        w.add_leading_dense_block_count(c.num_hidden_layers)
        w.add_expert_feed_forward_length(c.intermediate_size)
        w.add_expert_shared_count(0)
    if c.q_lora_rank is not None:
        w.add_q_lora_rank(c.q_lora_rank)
    w.add_kv_lora_rank(c.kv_lora_rank)
    key = c.qk_nope_head_dim + c.qk_rope_head_dim
    if layout == "absorbed":
        w.add_head_count_kv(1)
        w.add_key_length(c.kv_lora_rank + c.qk_rope_head_dim)
        w.add_value_length(c.kv_lora_rank)
        w.add_key_length_mla(key)
        w.add_value_length_mla(c.v_head_dim)
    else:
        w.add_head_count_kv(c.num_attention_heads)
        w.add_key_length(key)
        if not FAMILIES[family].bare:
            w.add_value_length(c.v_head_dim)
    w.add_rope_dimension_count(c.qk_rope_head_dim)
    if hasattr(c, "index_topk"):
        add_sparse_attention_keys(w, c)
    rope = c.rope_parameters
    if beta := rope.get("llama_4_scaling_beta"):
        w.add_float32(f"{w.arch}.attention.temperature_scale", beta)
        w.add_uint32(f"{w.arch}.attention.temperature_length", rope["original_max_position_embeddings"])
    if rope["rope_type"] == "yarn":
        # The file has one multiplier; it stands for both only because mscale equals mscale_all_dim.
        assert rope["mscale"] == rope["mscale_all_dim"]
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        w.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])
        if (rope["beta_fast"], rope["beta_slow"]) != (32, 1):
            w.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            w.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])


def add_sparse_attention_keys(w, c):
    for key, value in (("head_count", c.index_n_heads), ("key_length", c.index_head_dim), ("top_k", c.index_topk)):
        w.add_uint32(f"{w.arch}.attention.indexer.{key}", value)
    if kinds := getattr(c, "indexer_types", None):
        w.add_array(f"{w.arch}.attention.indexer.types", [kind == "full" for kind in kinds])


def llama3_rope_factors(rope, head_dim):
    """What each pair's frequency is divided by under llama-3 scaling: the tensor rope_freqs.weight."""
    freqs = rope["rope_theta"] ** -(np.arange(0, head_dim, 2) / head_dim)
    turns = rope["original_max_position_embeddings"] * freqs / (2 * math.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1.0 - smooth) / rope["factor"] + smooth)).astype(np.float32)


def add_rope_scaling(w, m, c, family):
    """Of architectures that say nothing of their own about it."""
    rope = c.rope_parameters
    if rope.get("rope_type") == "llama3":
        m.constant("rope_freqs.weight", llama3_rope_factors(c.rope_parameters, getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads))
    if rope.get("rope_type") == "yarn" and "rope.scaling.type" not in family.keys:
        assert rope.get("mscale", 1.0) == 1.0 and not rope.get("mscale_all_dim") and not rope.get("attention_factor")
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if (rope["beta_fast"], rope["beta_slow"]) != (32, 1):
            w.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            w.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])


def add_key(w, key, value):
    if isinstance(value, list):
        w.add_array(key, value)
        return
    kinds = {bool: w.add_bool, float: w.add_float32, int: w.add_uint32, str: w.add_string}
    kinds[type(value)](key, value)


def nextn_shapes(state, layers, width):
    """Names, as transformers would have them, and shapes of a further prediction layer after the last, as files of V3 may hold; no logit uses it."""
    copied, own = f"layers.{layers - 1}.", f"layers.{layers}."
    shapes = {own + name.removeprefix(copied): shape for name, shape in state.items() if name.startswith(copied)}
    norms = {f"{own}nextn.{name}.weight": (width,) for name in ("enorm", "hnorm", "shared_head_norm")}
    return shapes | {f"{own}nextn.eh_proj.weight": (width, 2 * width)} | norms


def write_nextn_layer(m, c, case):
    write_layer(m, c, c.num_hidden_layers, FAMILIES[case["family"]].architecture, case)
    source, block = f"layers.{c.num_hidden_layers}.nextn.", f"blk.{c.num_hidden_layers}.nextn."
    m.half(block + "eh_proj.weight", m.take(source + "eh_proj.weight"))
    for name in ("enorm", "hnorm", "shared_head_norm"):
        m.full(f"{block}{name}.weight", m.take(f"{source}{name}.weight"))
    m.writer.add_nextn_predict_layers(1)


def write_layer(m, c, i, arch, case):
    source, block = f"layers.{i}.", f"blk.{i}."
    norms = dict(FAMILIES[case["family"]].norms)
    if "attn_norm" in norms:
        m.full(block + "attn_norm.weight", m.take(source + norms.pop("attn_norm") + ".weight"))
    if FAMILIES[case["family"]].latent:
        write_attention_deepseek(m, c, source + "self_attn.", block, case["layout"])
    else:
        write_attention_plain(m, c, source + "self_attn.", block, case)
    for name, norm in norms.items():
        m.full(f"{block}{name}.weight", m.take(f"{source}{norm}.weight"))
    sparse = next((source + name for name in ("block_sparse_moe.", "mlp.") if source + name + "router.weight" in m.state), None)
    shared = source + "shared_mlp.input_linear.weight" in m.state
    if sparse or not shared:
        write_ffn(m, sparse or source + "mlp.", block, case)
    if shared:
        kind = "_shexp" if sparse else ""  # without experts it is the whole network
        for part, half in zip(("gate", "up"), np.split(m.take(source + "shared_mlp.input_linear.weight"), 2)):
            m.half(f"{block}ffn_{part}{kind}.weight", half)
        m.half(f"{block}ffn_down{kind}.weight", m.take(source + "shared_mlp.output_linear.weight"))


def write_file(w, m, c, case, add_tokens):
    """All but the name and the type of the file: keys, with those of the vocabulary by `add_tokens`, and tensors."""
    family = case["family"]
    arch = FAMILIES[family].architecture
    w.add_vocab_size(c.vocab_size)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_block_count(c.num_hidden_layers + (1 if case.get("nextn") else 0))
    w.add_feed_forward_length(c.intermediate_size)
    heads = FAMILIES[family].heads
    w.add_head_count(heads(c) if heads else c.num_attention_heads)
    w.add_rope_freq_base(c.rope_parameters.get("full_attention", c.rope_parameters)["rope_theta"])
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    experts = next((n for n in (getattr(c, name, None) for name in (
        "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")) if n), None)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(c.num_experts_per_tok)
        w.add_expert_feed_forward_length(getattr(c, "moe_intermediate_size", c.intermediate_size))
    if FAMILIES[case["family"]].latent:
        add_deepseek_keys(w, c, family, case)
    else:
        kv_heads = FAMILIES[family].kv_heads
        w.add_head_count_kv(kv_heads(c) if kv_heads else c.num_key_value_heads)
        if case["config"].get("head_dim"):  # converters write these where the config does
            w.add_key_length(c.head_dim)
            w.add_value_length(getattr(c, "v_head_dim", c.head_dim))
    for key, value in FAMILIES[family].keys.items():
        if (said := value(c)) is not None:
            add_key(w, f"{arch}.{key}", said)
    if not FAMILIES[family].latent:
        add_rope_scaling(w, m, c, FAMILIES[family])
    if FAMILIES[family].neighbours and "rope.dimension_count" not in FAMILIES[family].keys:
        head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        w.add_rope_dimension_count(head_dim)
    if family == "step35" and c.rope_parameters["full_attention"]["rope_type"] == "llama3":
        # As long as of whole heads; half of them are rotated where it counts, of which files have the factors first.
        factors = llama3_rope_factors(c.rope_parameters["full_attention"], c.head_dim // 2)
        m.constant("rope_freqs.weight", np.concatenate([factors, np.full_like(factors, 1.5)]))
    if experts and family == "qwen3moe" and not c.norm_topk_prob:
        # Converters write no key here and runtimes normalise; the key says that this model does not.
        w.add_expert_weights_norm(False)
    if case["config"].get("sliding_window"):
        w.add_sliding_window(c.sliding_window)
        if FAMILIES[family].pattern:
            w.add_sliding_window_pattern([kind == "sliding_attention" for kind in c.layer_types])
    add_tokens()
    for length in ("short", "long"):
        if f"{length}_factor" in c.rope_parameters:
            m.constant(f"rope_factors_{length}.weight", np.array(c.rope_parameters[f"{length}_factor"]))

    m.half("token_embd.weight", m.take("embed_tokens.weight"))
    for i in range(c.num_hidden_layers):
        write_layer(m, c, i, arch, case)
    if case.get("nextn"):
        write_nextn_layer(m, c, case)
    m.full("output_norm.weight", m.take("norm.weight"))
    if c.tie_word_embeddings:
        m.left.discard("lm_head.weight")
    else:
        m.half("output.weight", m.take("lm_head.weight"))


class Places(Matrices):
    """Where a file has which weights of a model: `state` has numbers of weights in their place, and they are kept in the order of the file."""

    def __init__(self, writer, state):
        super().__init__(writer, state, lambda name, numbers: (numbers, seeded.F16))
        self.tensors = []  # name, numbers, and whether it is f16
        self.writer, self.file = self, writer

    def add_tensor(self, name, numbers, raw_dtype=None):
        self.tensors.append((name, np.asarray(numbers, dtype=np.int64), raw_dtype == seeded.F16))

    def add_nextn_predict_layers(self, count):
        self.file.add_nextn_predict_layers(count)

    def constant(self, name, values):
        self.file.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))


def write_seeded_model(path, name, config, case, shapes, spread):
    """Writes what the weights are computed from (seeded.py), and returns the weights: an array for each name of `shapes`.

    shapes: of the model's parameters, as transformers has them but for "model."; spread(name, shape): centre and standard deviation of one."""
    family = case["family"]
    if case.get("nextn"):
        shapes = shapes | nextn_shapes(shapes, config.num_hidden_layers, config.hidden_size)
    state, ends = {}, np.cumsum([math.prod(shape) for shape in shapes.values()])
    centres, scales = np.empty(ends[-1]), np.empty(ends[-1])
    for (source, shape), end in zip(shapes.items(), ends):
        numbers = np.arange(end - math.prod(shape), end)
        state[source] = numbers.reshape(shape)
        centres[numbers], scales[numbers] = spread(source, shape)
    w = gguf.GGUFWriter(path, FAMILIES[family].architecture)
    w.add_name(f"random {name}, seed {case['seed']}")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    m = Places(w, state)
    write_file(w, m, config, case, lambda: add_vocabulary(w, family, config.vocab_size))
    assert not m.left, f"not written: {sorted(m.left)}"

    values = np.full(ends[-1], np.nan, dtype=np.float32)
    described = []
    for tensor, numbers, half in m.tensors:
        if np.isfinite(values[numbers]).all():  # the same weights in another layout
            w.add_tensor(tensor, values[numbers].astype(np.float16 if half else np.float32))
            continue
        assert np.isnan(values[numbers]).all(), tensor
        centre = float(centres[numbers.flat[0]])
        assert (centres[numbers] == centre).all(), tensor
        scale = np.float32(scales[numbers].max() / seeded.SPREAD)
        data = seeded.weights(case["seed"], tensor, numbers.shape, seeded.F16 if half else gguf.GGMLQuantizationType.F32, centre, scale)
        values[numbers] = data
        described.append((tensor, data, centre, scale))
    assert np.isfinite(values).all()
    seeded.add_description(w, case["seed"], described)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return {source: values[numbers] for source, numbers in state.items()}
