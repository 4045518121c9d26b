"""The small random models whose logits are recorded.

Every case names one model; `runs` are the token counts recorded with it. Sizes are chosen so that all
models and logits together stay under 8 MiB, and so that every branch that a loader takes for a real file
(projection of q, gating, groups, YaRN, layouts of wkv_b, tied embeddings, rope tables) is taken by one of them.
"""

# The attention shapes of the published DeepSeek-V2 and V3 models, which kernels are specialised for...
REAL = dict(kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
# ...and others, which nothing may be specialised for.
SMALL = dict(kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32, v_head_dim=32)


def yarn(mscale):
    return dict(rope_type="yarn", rope_theta=10000.0, factor=40.0, original_max_position_embeddings=4096,
                beta_fast=32, beta_slow=1, mscale=mscale, mscale_all_dim=mscale)


PLAIN = dict(rope_type="default", rope_theta=10000.0)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=128)

# gains: q sharpens attention, router spreads the gates' logits, down and expert_down set how much the blocks add.
CASES = {
    "v2-plain": dict(
        family="v2", seed=1, layout="joint", runs=dict(short=160), gains=dict(q=2.0, router=1.5, expert_down=3.0),
        config=dict(**REAL, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, q_lora_rank=None,
                    intermediate_size=128, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
                    n_shared_experts=2, moe_intermediate_size=32, topk_method="greedy", routed_scaling_factor=1.0,
                    vocab_size=288, rope_parameters=PLAIN)),
}
