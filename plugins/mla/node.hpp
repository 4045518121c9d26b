// The abstract op "mla_attention": multi-head latent attention as in DeepSeek-V2 (arXiv 2405.04434, section 2.1).
//
// Inputs (shapes fastest dimension first; R rows over TSR_RANGE_ROWS):
//   0 q          f32 [(nope + rope) * H, R] or [nope + rope, H, R], before rope; rope applies
//                to the last `rope` elements of each head. May be written to: no other node reads it.
//   1 kv         f32 [kv_lora + rope, R]: the output of kv_a_mqa, before norm and rope
//   2 kv_norm    f32 [kv_lora]
//   3 wkv_b      any [kv_lora, H * (nope + v)], of each head nope rows for keys and then v rows for values; or none
//   4 wk_b       any [nope, kv_lora, H] or [nope, kv_lora * H] (attn_k_b of a file: the key part, transposed); or none
//   5 wv_b       any [kv_lora, v, H] or [kv_lora, v * H] (attn_v_b of a file); or none
//   6 positions  i32 [R]
//   7 sequences  i32 [R]
//   8 page_table i32 [P, S]
//   9 rope_factors f32 [rope / 2], which divide rope's frequencies; or none. It may be left out.
// Either wkv_b is present, or wk_b and wv_b are.
// Output: f32 [v * H, R], dense, one head after the other.
// Attributes: heads, nope, rope, v, kv_lora, epsilon (f), scale (f), and those of the op "rope" (ops.h) with the same
// defaults: rope_mode (s, "norm"), rope_base (f), rope_freq_scale (f), rope_ext_factor (f), rope_attn_factor (f),
// rope_beta_fast (f), rope_beta_slow (f), rope_original_context.
#pragma once

#include <tessera/cpp/node.hpp>
#include <tessera/graph.h>

#include <cstdint>

namespace tessera::mla {

enum : uint32_t {
    kQ = 0,
    kKv = 1,
    kKvNorm = 2,
    kWkvB = 3,
    kWkB = 4,
    kWvB = 5,
    kPositions = 6,
    kSequences = 7,
    kPageTable = 8,
    kRopeFactors = 9,
    kInputs = 10
};

struct Sizes {
    int64_t heads, nope, rope, v, latent;  // latent: kv_lora

    int64_t key() const noexcept { return nope + rope; }
    int64_t row() const noexcept { return latent + rope; }  // of the latent cache
};

// Checks the node's attributes and operands. Throws sdk::Failure(TSR_INVALID_ARGUMENT) naming what does not fit.
Sizes checked_sizes(const tsr_node& node);

// Shape inference.
void infer(const tsr_node& node, tsr_tensor& output);

}  // namespace tessera::mla
