"""The small random models whose logits are recorded.

Every case names one model; `runs` are the token counts recorded with it. Sizes are chosen so that a
model takes milliseconds to compute and its logits 30 to 90 KB, and so that every branch that a loader takes for a real file
(projection of q, gating, groups, YaRN, layouts of wkv_b, tied embeddings, rope tables) is taken by one of them.
"""

# The attention shapes of the published DeepSeek-V2 and V3 models, which kernels are specialised for...
REAL = dict(kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
# ...and others, which nothing may be specialised for.
SMALL = dict(kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32, v_head_dim=32)


def yarn(mscale, factor=40.0, base=10000.0, fast=32, slow=1, original=4096):
    return dict(rope_type="yarn", rope_theta=base, factor=factor, original_max_position_embeddings=original,
                beta_fast=fast, beta_slow=slow, mscale=mscale, mscale_all_dim=mscale)


def plain(base=10000.0):
    return dict(rope_type="default", rope_theta=base)


PLAIN = plain()
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=128)

MILLION = dict(rope_type="default", rope_theta=1e6)
HALF = dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5)
TINY = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=264)
FEW = dict(runs=dict(short=96), positions=24)

# gains: q sharpens attention, router spreads the gates' logits, down and expert_down set how much the blocks add.
CASES = {
    "v2-plain": dict(
        family="v2", seed=1, layout="joint", runs=dict(short=160), gains=dict(q=2.0, router=1.5, expert_down=3.0),
        config=dict(**REAL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=None,
                    intermediate_size=128, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
                    n_shared_experts=2, moe_intermediate_size=32, topk_method="greedy", routed_scaling_factor=1.0,
                    vocab_size=288, rope_parameters=PLAIN)),
    # Groups by their best expert, a large routed scale, all three of wkv_b, wk_b and wv_b (in two dimensions);
    # no gating key, as converters wrote V2 at first.
    "v2-groups": dict(
        family="v2", seed=2, layout="all", gating_key=False, runs=dict(short=192),
        gains=dict(q=2.0, router=1.5, expert_down=0.4),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, q_lora_rank=48,
                    intermediate_size=128, first_k_dense_replace=1, n_routed_experts=16, num_experts_per_tok=3,
                    n_shared_experts=1, moe_intermediate_size=32, topk_method="group_limited_greedy", n_group=4,
                    topk_group=2, routed_scaling_factor=16.0, vocab_size=288, rope_parameters=yarn(0.707))),
    # Groups by their best two of biased sigmoid scores; wk_b and wv_b alone, in three dimensions.
    "v3-groups": dict(
        family="v3", seed=3, layout="absorbed", runs=dict(short=192), gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, q_lora_rank=48,
                    intermediate_size=128, first_k_dense_replace=1, n_routed_experts=12, num_experts_per_tok=4,
                    n_shared_experts=1, moe_intermediate_size=32, n_group=4, topk_group=2, norm_topk_prob=True,
                    routed_scaling_factor=2.5, vocab_size=299, rope_parameters=PLAIN)),
    # One group, no q_lora, and a further prediction layer that a runtime skips.
    "v3-ungrouped": dict(
        family="v3", seed=4, layout="absorbed", nextn=True, runs=dict(short=128),
        gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=None,
                    intermediate_size=128, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
                    n_shared_experts=1, moe_intermediate_size=32, n_group=1, topk_group=1, norm_topk_prob=True,
                    routed_scaling_factor=2.446, vocab_size=270, rope_parameters=PLAIN)),
    # YaRN at the real attention shapes, and past the trained context.
    "v3-yarn": dict(
        family="v3", seed=5, layout="joint", runs=dict(short=160, long=4224), gains=dict(q=2.0, router=1.5, bias=0.25),
        config=dict(**REAL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=64,
                    intermediate_size=128, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
                    n_shared_experts=1, moe_intermediate_size=32, n_group=2, topk_group=1, norm_topk_prob=True,
                    routed_scaling_factor=2.5, vocab_size=288, rope_parameters=yarn(1.0))),
    # The same path at small shapes, which a plain implementation finishes in seconds.
    "v3-yarn-small": dict(
        family="v3", seed=6, layout="joint", runs=dict(short=128, long=4224), gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=32,
                    intermediate_size=128, first_k_dense_replace=0, n_routed_experts=8, num_experts_per_tok=2,
                    n_shared_experts=1, moe_intermediate_size=32, n_group=4, topk_group=2, norm_topk_prob=True,
                    routed_scaling_factor=2.5, vocab_size=288, rope_parameters=yarn(1.0))),
    # YaRN whose ramp is one pair wide, one group of many experts, a scale of weights.
    "kimi-k2": dict(
        family="kimi-k2", seed=20, layout="absorbed", runs=dict(short=128), gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=32,
                    intermediate_size=96, first_k_dense_replace=1, n_routed_experts=12, num_experts_per_tok=4,
                    n_shared_experts=1, moe_intermediate_size=32, n_group=1, topk_group=1, norm_topk_prob=True,
                    routed_scaling_factor=2.827, vocab_size=262, rope_parameters=yarn(1.0, 32.0, 50000.0, 1, 1))),
    # Values that are longer than the part of keys without rope, no key of gating, a layer of prediction.
    "glm-flash": dict(
        family="glm-flash", seed=21, layout="absorbed", nextn=True, gating_key=False, runs=dict(short=128),
        gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=48, v_head_dim=64, hidden_size=64,
                    num_hidden_layers=2, num_attention_heads=2, q_lora_rank=48, intermediate_size=96, n_routed_experts=8,
                    num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=32, n_group=1, topk_group=1,
                    norm_topk_prob=True, routed_scaling_factor=1.8, rms_norm_eps=1e-5, vocab_size=262,
                    rope_parameters=plain(1e6))),
    # Values as long as keys with rope, queries that are not compressed, the whole of wkv_b.
    "gigachat3": dict(
        family="gigachat", seed=22, layout="joint", runs=dict(short=128), gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32, v_head_dim=48, hidden_size=64,
                    num_hidden_layers=2, num_attention_heads=3, q_lora_rank=None, intermediate_size=96,
                    first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1,
                    moe_intermediate_size=32, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.0,
                    vocab_size=262, rope_parameters=plain(1e5))),
    # Sparse attention that chooses all tokens; groups, YaRN.
    "deepseek32": dict(
        family="deepseek32", seed=24, layout="absorbed", runs=dict(short=128), gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=32,
                    intermediate_size=96, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
                    n_shared_experts=1, moe_intermediate_size=32, n_group=2, topk_group=1, norm_topk_prob=True,
                    routed_scaling_factor=2.5, vocab_size=262, index_topk=128, index_head_dim=32, index_n_heads=2,
                    rope_parameters=yarn(1.0))),
    # The same with indexers in some layers, and a layer of prediction.
    "glm-dsa": dict(
        family="glm-dsa", seed=25, layout="absorbed", nextn=True, runs=dict(short=128),
        gains=dict(q=2.0, router=1.5, bias=0.15),
        config=dict(kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=48, v_head_dim=64, hidden_size=64,
                    num_hidden_layers=3, num_attention_heads=2, q_lora_rank=32, intermediate_size=96,
                    first_k_dense_replace=2, n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1,
                    moe_intermediate_size=32, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                    rms_norm_eps=1e-5, vocab_size=262, index_topk=128, index_head_dim=32, index_n_heads=2,
                    indexer_types=["full", "full", "shared"], rope_parameters=plain(1e6))),
    # Queries that are scaled by their position, from 32 tokens on; softmax routers whose weights are normalised.
    "mistral4": dict(
        family="mistral4", seed=26, layout="absorbed", runs=dict(short=160), gains=dict(q=2.0, router=1.5),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=32,
                    intermediate_size=96, first_k_dense_replace=0, n_routed_experts=8, num_experts_per_tok=2,
                    n_shared_experts=1, moe_intermediate_size=32, n_group=1, topk_group=1, norm_topk_prob=True,
                    routed_scaling_factor=1.0, vocab_size=262,
                    rope_parameters=yarn(1.0, 8.0, original=32) | dict(llama_4_scaling_beta=0.5))),
    # Embeddings, residuals and logits that are scaled, factors of rope.
    "minicpm3": dict(
        family="minicpm3", seed=27, layout="joint", runs=dict(short=128), gains=dict(q=2.0, output=1.0),
        config=dict(kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32, hidden_size=96, num_hidden_layers=3,
                    num_attention_heads=4, q_lora_rank=48, intermediate_size=96, vocab_size=262,
                    rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=8192,
                                         short_factor=[1.0, 1.06, 1.125, 1.25, 1.5, 2.0, 2.5, 3.0],
                                         long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0]))),
    # Dense, with tied embeddings.
    "youtu": dict(
        family="youtu", seed=23, layout="absorbed", runs=dict(short=128), gains=dict(q=2.0),
        config=dict(**SMALL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=48,
                    intermediate_size=96, tie_word_embeddings=True, vocab_size=262, rope_parameters=plain(1.6e6))),
    "qwen3moe-norm": dict(
        family="qwen3moe", seed=7, runs=dict(short=160), gains=dict(q=1.0, router=1.5, expert_down=3.0),
        config=dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                    intermediate_size=128, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
                    norm_topk_prob=True, vocab_size=288, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "qwen3moe-plain": dict(
        family="qwen3moe", seed=8, runs=dict(short=160), gains=dict(q=1.0, router=1.5, expert_down=5.0),
        config=dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
                    intermediate_size=128, num_experts=12, num_experts_per_tok=4, moe_intermediate_size=32,
                    norm_topk_prob=False, vocab_size=270, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    # Dense, with tied embeddings as the small ones of the family have them.
    "qwen3-tied": dict(
        family="qwen3", seed=11, runs=dict(short=160), gains=dict(q=1.0),
        config=dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                    intermediate_size=96, tie_word_embeddings=True, vocab_size=270,
                    rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    # Windows of the last tokens in two layers of three, beyond a page and beyond several of them.
    "qwen3-window": dict(
        family="qwen3", seed=12, runs=dict(short=400), gains=dict(q=1.0),
        config=dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                    intermediate_size=64, tie_word_embeddings=True, vocab_size=270, use_sliding_window=True, sliding_window=70,
                    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                    rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    # Past the window and the clamps; YaRN's ramp ends between pairs.
    "gpt-oss": dict(
        family="gpt-oss", seed=60, runs=dict(short=300), gains=dict(q=1.0, router=1.5, expert_gate_up=8.0, expert_down=0.5),
        config=dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                    intermediate_size=32, num_local_experts=6, num_experts_per_tok=3, vocab_size=264, sliding_window=70,
                    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                    rope_parameters=dict(rope_type="yarn", rope_theta=150000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0,
                                         truncate=False, original_max_position_embeddings=512))),
    # Five layers with a window and a rotary embedding of their own, then one that sees all, with scaled positions.
    "gemma3": dict(
        family="gemma3", seed=61, runs=dict(short=160), positions=24, gains=dict(down=1.0),
        config=dict(hidden_size=32, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                    intermediate_size=64, tie_word_embeddings=True, vocab_size=264, sliding_window=70, query_pre_attn_scalar=16,
                    rope_parameters=dict(sliding_attention=plain(), full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6)))),
    "mimo2": dict(
        family="mimo2", seed=62, runs=dict(short=160), positions=24, gains=dict(q=1.0, router=1.5, bias=0.15),
        config=dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1, head_dim=24, v_head_dim=16,
                    intermediate_size=64, moe_intermediate_size=32, n_routed_experts=6, num_experts_per_tok=3, vocab_size=264,
                    sliding_window=71, layer_types=["full_attention", "sliding_attention", "sliding_attention"],
                    mlp_layer_types=["dense", "sparse", "sparse"], attention_value_scale=0.707,
                    rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=5e6, partial_rotary_factor=0.334),
                                         sliding_attention=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.334)))),
    # Past the window and the clamps, of experts and of shared ones; Llama 3's scaling where there is no window.
    "step35": dict(
        family="step35", seed=63, runs=dict(short=160), positions=24, gains=dict(q=1.0, router=1.5, bias=0.15),
        config=dict(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_sliding_attention_heads=6, num_key_value_heads=2,
                    head_dim=16, intermediate_size=64, moe_intermediate_size=32, n_routed_experts=6, num_experts_per_tok=3,
                    share_expert_dim=32, vocab_size=264, sliding_window=70, pad_token_id=3, moe_router_scaling_factor=3.0,
                    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
                    mlp_layer_types=["dense", "sparse", "sparse", "sparse"], swiglu_limits=[None, 0.0, 0.75, 0.5],
                    swiglu_limits_shared=[0.0, None, 0.0, 0.5],
                    rope_parameters=dict(full_attention=LLAMA3 | dict(rope_theta=5e6, partial_rotary_factor=0.5),
                                         sliding_attention=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=1.0)))),
    "llama-plain": dict(
        family="llama", seed=9, runs=dict(short=160), gains=dict(q=2.0),
        config=dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
                    intermediate_size=96, vocab_size=288, rope_parameters=PLAIN)),
    # A head size that is not embedding / heads, grouped queries, tied embeddings, llama-3 rope scaling.
    "llama-gqa": dict(
        family="llama", seed=10, runs=dict(short=256), gains=dict(q=2.0),
        config=dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2, head_dim=32,
                    intermediate_size=96, tie_word_embeddings=True, vocab_size=277, rope_parameters=LLAMA3)),
    # Architectures of one file each over the same parts: small, so that many fit.
    "qwen2": dict(
        family="qwen2", seed=20, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, intermediate_size=64, tie_word_embeddings=True, rope_parameters=MILLION)),
    "qwen2moe": dict(
        family="qwen2moe", seed=21, **FEW, gains=dict(q=2.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, intermediate_size=64, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                    shared_expert_intermediate_size=64, norm_topk_prob=False, rope_parameters=MILLION)),
    # Biases, normalised heads of which a half is rotated, a prediction layer.
    "glm4moe": dict(
        family="glm4moe", seed=22, **FEW, nextn=True, gains=dict(q=1.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, n_routed_experts=6, num_experts_per_tok=2,
                    n_shared_experts=1, moe_intermediate_size=32, first_k_dense_replace=1, norm_topk_prob=True,
                    routed_scaling_factor=2.5, attention_bias=True, use_qk_norm=True, rope_parameters=HALF)),
    # As Air: heads are not normalised.
    "glm4moe-air": dict(
        family="glm4moe", seed=23, **FEW, gains=dict(q=2.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, n_routed_experts=6, num_experts_per_tok=2,
                    n_shared_experts=1, moe_intermediate_size=32, first_k_dense_replace=1, norm_topk_prob=True,
                    routed_scaling_factor=1.0, attention_bias=True, use_qk_norm=False, rope_parameters=HALF)),
    "minimax-m2": dict(
        family="minimax-m2", seed=24, **FEW, gains=dict(q=1.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, head_dim=16, intermediate_size=32, num_local_experts=6, num_experts_per_tok=2,
                    rope_parameters=HALF)),
    "seed-oss": dict(
        family="seed_oss", seed=25, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, head_dim=32, intermediate_size=64, rope_parameters=MILLION)),
    "dots1": dict(
        family="dots1", seed=26, **FEW, gains=dict(q=1.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, n_routed_experts=6, num_experts_per_tok=2,
                    n_shared_experts=2, moe_intermediate_size=32, first_k_dense_replace=1, norm_topk_prob=True,
                    routed_scaling_factor=2.5, sliding_window=None, rope_parameters=PLAIN)),
    "hunyuan-moe": dict(
        family="hunyuan-moe", seed=27, **FEW, gains=dict(q=1.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, head_dim=16, intermediate_size=32, num_experts=6, moe_topk=2,
                    tie_word_embeddings=True, rope_parameters=PLAIN)),
    "hunyuan-dense": dict(
        family="hunyuan-dense", seed=28, **FEW, gains=dict(q=1.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, tie_word_embeddings=True, rope_parameters=PLAIN)),
    "ernie4_5": dict(
        family="ernie4_5", seed=29, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, tie_word_embeddings=True, rope_parameters=PLAIN)),
    # Experts in every second layer after the first; softmax with a bias on selection, and no key for the gating.
    "ernie4_5-moe": dict(
        family="ernie4_5-moe", seed=30, **FEW, gains=dict(q=2.0, router=1.5, expert_down=3.0, bias=0.05),
        config=dict(**(TINY | dict(num_hidden_layers=4)), head_dim=16, intermediate_size=64, moe_num_experts=6, moe_k=2,
                    moe_num_shared_experts=2, moe_intermediate_size=32, moe_layer_start_index=1,
                    moe_layer_end_index=3, moe_layer_interval=2, tie_word_embeddings=True, rope_parameters=PLAIN)),
    # The fourth of five layers has no rotary embedding.
    "smollm3": dict(
        family="smollm3", seed=31, **FEW, gains=dict(q=2.0),
        config=dict(**(TINY | dict(num_hidden_layers=5)), intermediate_size=64, tie_word_embeddings=True,
                    rope_parameters=MILLION)),
    "olmo2": dict(
        family="olmo2", seed=32, **FEW, gains=dict(q=1.0),
        config=dict(**TINY, intermediate_size=64, tie_word_embeddings=True, rope_parameters=PLAIN)),
    "exaone4": dict(
        family="exaone4", seed=33, **FEW, gains=dict(q=1.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, tie_word_embeddings=True, sliding_window=None,
                    layer_types=["full_attention"] * 2, rope_parameters=MILLION)),
    # Norms before and after, gate and up in one matrix.
    "glm4": dict(
        family="glm4", seed=34, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, attention_bias=True, rope_parameters=HALF)),
    "chatglm": dict(
        family="chatglm", seed=35, **FEW, fused=True, gains=dict(q=2.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, attention_bias=True, tie_word_embeddings=True,
                    rope_parameters=HALF)),
    "phi3": dict(
        family="phi3", seed=36, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, intermediate_size=64, sliding_window=None, tie_word_embeddings=True,
                    rope_parameters=dict(rope_type="default", rope_theta=250000.0))),
    # LongRoPE, three quarters of a head, a window.
    "phi3-long": dict(
        family="phi3", seed=64, **FEW, gains=dict(q=2.0),
        config=dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=264,
                    intermediate_size=64, sliding_window=70, tie_word_embeddings=True,
                    rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=4096,
                                         partial_rotary_factor=0.75, short_factor=[1.0, 1.06, 1.125, 1.25, 1.5, 2.0],
                                         long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0]))),
    # Layers with a window of 70 tokens; the fourth has none, and no rotary embedding.
    "exaone4-window": dict(
        family="exaone4", seed=65, runs=dict(short=160), positions=24, gains=dict(q=1.0),
        config=dict(**(TINY | dict(num_hidden_layers=5)), head_dim=16, intermediate_size=64, sliding_window=70,
                    layer_types=["sliding_attention"] * 3 + ["full_attention", "sliding_attention"], rope_parameters=MILLION)),
    "minicpm": dict(
        family="minicpm", seed=66, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, intermediate_size=64, tie_word_embeddings=True, embedding_multiplier=12.0,
                    residual_multiplier=0.99, attention_multiplier=8 ** -0.5, logits_scaling=0.125, rope_parameters=PLAIN)),
    # q, k and v in one matrix, and gate and up of experts, too; groups by their best two.
    "bailingmoe2": dict(
        family="bailingmoe2", seed=37, **FEW, fused=True, gains=dict(q=1.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, n_routed_experts=8, num_experts_per_tok=2, n_group=4,
                    topk_group=2, n_shared_experts=1, moe_intermediate_size=32, first_k_dense_replace=1,
                    norm_topk_prob=True, routed_scaling_factor=2.5, attention_bias=False, use_qk_norm=True,
                    rope_parameters=HALF)),
    # Embeddings, residuals, scores and logits are scaled.
    "granite": dict(
        family="granite", seed=38, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, intermediate_size=64, tie_word_embeddings=True, embedding_multiplier=12.0,
                    residual_multiplier=0.22, attention_multiplier=0.25, logits_scaling=8.0, rope_parameters=PLAIN)),
    "granitemoe": dict(
        family="granitemoe", seed=39, **FEW, gains=dict(q=2.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, intermediate_size=32, num_local_experts=6, num_experts_per_tok=2,
                    shared_intermediate_size=64, tie_word_embeddings=True, embedding_multiplier=12.0,
                    residual_multiplier=0.22, attention_multiplier=0.25, logits_scaling=6.0, rope_parameters=PLAIN)),
    # Past the trained context, where attention is sharper.
    "mistral3": dict(
        family="mistral3", seed=40, **FEW, gains=dict(q=2.0),
        config=dict(**TINY, head_dim=16, intermediate_size=64, tie_word_embeddings=True, sliding_window=None,
                    rope_parameters=dict(rope_type="yarn", rope_theta=1e6, factor=8.0,
                                         original_max_position_embeddings=32, beta_fast=32.0, beta_slow=1.0,
                                         mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1))),
    "mixtral": dict(
        family="mixtral", seed=41, **FEW, gains=dict(q=2.0, router=1.5, expert_down=3.0),
        config=dict(**TINY, head_dim=16, intermediate_size=32, num_local_experts=6, num_experts_per_tok=2, sliding_window=None,
                    rope_parameters=dict(rope_type="default", rope_theta=1e6))),
}
