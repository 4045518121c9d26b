/* The primitive and fused ops that the core brings, version 1 each.
 *
 * Shapes are written fastest dimension first. R is a bounded number of rows (the slowest dimension); an output takes
 * the range of the input that its R comes from, and kernels touch only rows of the actual range. Activations are f32,
 * dense along their first dimension, and may be strided views. [..]? marks an optional operand. Where an output may
 * share storage with an input, it says "in place". Attributes are ints unless marked (f) float or (s) string.
 *
 * Weights may have any element type and any layout their kernel accepts; "any" means that. Products hide no NaN: one in
 * a row of x makes all results of that row NaN or infinite. */
#pragma once

/* table any or f32 activation [n, T], ids i32 [R] -> f32 [n, R]. Ids lie in [0, T). */
#define TSR_OP_GET_ROWS "get_rows"

/* x f32 [n, ...], weight f32 [n], -> same shape as x: x / sqrt(mean(x^2) + epsilon) * weight, over the first dimension.
 * In place. Attributes: epsilon (f). */
#define TSR_OP_RMS_NORM "rms_norm"

/* x f32 [k, R], weight any [k, n] -> f32 [n, R]: each output is the dot product of a row of x and a row of the weight.
 * Batched: x [k, B, R], weight [k, n, B] -> [n, B, R].
 * Attributes: transpose_weight (default 0): weight is [n, k] or [n, k, B] and is read along its columns. */
#define TSR_OP_MATMUL "matmul"

/* x f32 [k, R], weights any [k, n_i], i = 1 .. m -> m outputs f32 [n_i, R]. Parts: m matmuls. */
#define TSR_OP_MATMUL_GROUP "matmul_group"

/* x f32 [k, R], gate any [k, f], up any [k, f], down any [f, n], [gate bias f32 [f]]?, [up bias f32 [f]]?,
 * [down bias f32 [n]]? -> f32 [n, R]: down(silu(gate(x)) * up(x)), each product plus its bias.
 * Attributes: activation, limit and alpha of the op "glu", which then takes the place of silu and product. A node with
 * one of them has places for the three biases, absent or not. A kernel refuses attributes and operands that it does not
 * know. Parts: matmul_group, add, silu_mul or glu, matmul. */
#define TSR_OP_GATED_FFN "gated_ffn"

/* x f32 [k, R] or [k, K, R], weight any [k, n, E], ids i32 [K, R] -> f32 [n, K, R]: each row by the expert that its id
 * names. An id of -1 names none: its output row is zero. */
#define TSR_OP_MATMUL_ID "matmul_id"

/* x f32 [n, K, R], weights f32 [K, R] -> f32 [n, R]: the sum over K of weight * row. */
#define TSR_OP_WEIGHTED_SUM "weighted_sum"

/* x f32 [n, K, R], bias f32 [n, E], ids i32 [K, R] -> same shape as x: each row plus the bias of the expert that its id
 * names; -1: as it is. In place. */
#define TSR_OP_ADD_ID "add_id"

/* x f32 [k, R], ids i32 [K, R], weights f32 [K, R], gate any [k, f, E], up any [k, f, E], down any [f, n, E],
 * [gate bias f32 [f, E]]?, [up bias f32 [f, E]]?, [down bias f32 [n, E]]? -> f32 [n, R]: the weighted sum of gated_ffn,
 * with its attributes, over the experts that the ids name (-1: none).
 * Parts: matmul_id twice, add_id, silu_mul or glu, matmul_id, weighted_sum. */
#define TSR_OP_MOE_FFN "moe_ffn"

/* logits f32 [E, R], [bias f32 [E]]? -> ids i32 [K, R], weights f32 [K, R], best first.
 * p = softmax or sigmoid of the logits; selection is by s = p + bias. With groups > 1 the experts form that many equal
 * groups in order; only experts of the best groups_used groups can be chosen. A group's score is its best s (softmax)
 * or the sum of its best two (sigmoid). Ties go to the lower index. Weights are the p of the chosen, divided by their
 * sum if normalize (a sum below 6.1e-5, the smallest normal f16, is taken as that), times scale. Attributes: used (K),
 * gating (s) "softmax" or "sigmoid", groups (1), groups_used (1), normalize (0), scale (f, 1), keep_at_least (K) and
 * keep_ratio (f, 0): of the chosen, those past the first keep_at_least whose p is not at least keep_ratio times the
 * largest p of the chosen get id -1 and weight 0, before normalisation. Rows are independent. Sources:
 * DeepSeek-V2 (arXiv 2405.04434), DeepSeek-V3 (arXiv 2412.19437). */
#define TSR_OP_MOE_ROUTE "moe_route"

/* x f32 [d, H, R], positions i32 [R], [factors f32 [d/2]]? -> same shape as x. In place.
 * Rotates pairs by the angle position * frequency: pair i is elements (2i, 2i+1) in mode "norm", (i, i + d/2) in mode
 * "neox"; its frequency is base^(-2i/d) / factors[i]. YaRN (arXiv 2309.00071): with ext_factor != 0, frequency is a
 * blend by the ramp between correction dimensions of beta_fast and beta_slow: mix = ramp(i) * ext_factor, frequency *
 * (freq_scale * (1 - mix) + mix); without it frequency * freq_scale. Sine and cosine are multiplied by attn_factor
 * (which already holds YaRN's own). Attributes: mode (s), base (f), freq_scale (f, 1), ext_factor (f, 0), attn_factor
 * (f, 1), beta_fast (f, 32), beta_slow (f, 1), original_context (0). The ramp: low = max(0, floor(c(beta_fast))), high
 * = min(d
 * - 1, ceil(c(beta_slow))), c(b) = d * ln(original_context / (b * 2 pi)) / (2 ln base), ramp(i) = 1 - clamp((i - low) /
 * max(0.001, high - low), 0, 1). ramp_low and ramp_high (f): low and high themselves; then there is no
 * original_context. */
#define TSR_OP_ROPE "rope"

/* x f32 [n, ..., R], positions i32 [R] -> same shape as x. In place. Row r is multiplied with
 * 1 + scale * ln(floor((positions[r] + offset) / length) + 1): queries whose attention gets sharper far into a text.
 * Attributes: scale (f), length (at least 1), offset (0). */
#define TSR_OP_SCALE_BY_POSITION "scale_by_position"

/* x f32 [n, ..., R] -> same shape as x. In place. x times the attribute factor (f). */
#define TSR_OP_SCALE "scale"

/* x f32 [n, H, R], gate f32 [H, R] -> same shape as x. In place of x. Each row of n times the sigmoid of its number of
 * gate, 1 / (1 + exp(-gate)). */
#define TSR_OP_SIGMOID_MUL "sigmoid_mul"

/* a f32, b f32 of the same shape, or of the shape of a's first dimension alone -> shape of a. In place of a. */
#define TSR_OP_ADD "add"
#define TSR_OP_MUL "mul"

/* gate f32, up f32 of one shape -> the same: gate / (1 + exp(-gate)) * up. In place of either. */
#define TSR_OP_SILU_MUL "silu_mul"

/* gate f32, up f32 of one shape -> the same. In place of either. A gated linear unit (arXiv 2002.05202) by the
 * attribute activation (s):
 *   - "silu": silu(gate) * up, silu(v) = v / (1 + exp(-v)); with a limit min(silu(gate), limit) * clamp(up, -limit,
 * limit)
 *   - "gelu": gelu(gate) * up, gelu(v) = v / 2 * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 * v^3)))
 *   - "swiglu_oai": g / (1 + exp(-alpha * g)) * (u + 1), g = min(gate, limit), u = clamp(up, -limit, limit)
 * Further attributes: limit (f, 0: none), alpha (f, 1.702). NaN stays NaN. */
#define TSR_OP_GLU "glu"

/* x f32 [n, ...] -> same shape as x. In place. Each row, cut into blocks of the largest power of two that divides n, is
 * multiplied with the orthonormal Hadamard matrix of that size, H[i][j] = (-1)^popcount(i & j) / sqrt(size). Applied
 * twice it gives the row itself. Around a cache of few bits it spreads outliers over the row (arXiv 2404.00456). */
#define TSR_OP_HADAMARD "hadamard"

/* Init only. weight any -> the same shape in element type `type`. Attributes: type. */
#define TSR_OP_CONVERT "convert"
/* Init only. weight any [k, n, B] -> [n, k, B] in element type `type` (through f32). Attributes: type. */
#define TSR_OP_TRANSPOSE "transpose"

/* x f32 [n, R], positions i32 [R], sequences i32 [R], page_table i32 [P, S] -> cache [n, TSR_PAGE_TOKENS, pages].
 * The output is always given. Row r goes to page page_table[positions[r] / 64, sequences[r]], token positions[r] % 64,
 * converted to the cache's type (round to nearest even; q8_0 as the public reference quantises). Other tokens of the
 * page stay as they are. */
#define TSR_OP_CACHE_WRITE "cache_write"

/* Attention of R rows over cached tokens. Row r is at positions[r] of sequence slot sequences[r] and sees tokens
 * 0 .. positions[r] of that sequence (its own included: it has been written). Pages past those hold anything, NaN too.
 * q f32 [dk, H, R], k cache, [v cache]?, positions i32 [R], sequences i32 [R], page_table i32 [P, S], [wk any]?,
 * [wv any]?, [sinks f32 [H]]? -> f32 [dv, H, R]: softmax(scale * q k) v.
 * Three variants:
 *   - plain: k rows hold kv_heads * dk, v rows kv_heads * dv elements, one head after the other; query head h uses head
 *     h / (H / kv_heads).
 *   - prefix: no v: kv_heads = 1, k rows hold dk elements, of which the first dv are the value too.
 *   - projected: no v, wk [c, dk - p, H] and wv [c, dv, H]: k rows hold c + p elements; the key of head h is wk_h times
 *     the first c, followed by the last p; its value is wv_h times the first c.
 * Attributes: scale (f), kv_heads, head_dim_v (dv), scratch_bytes: the maximum of workspace; max_tokens: of one
 * sequence; hadamard (0), projected variant: the op "hadamard" was applied to the first c elements of cached rows, as a
 * row of their own, and has to be applied to rows of wk and wv; window (0: none): row r sees the last that many tokens
 * alone, its own included, tokens max(0, positions[r] - window + 1) .. positions[r]; entries of the page table before
 * the page of the first of those are anything, and their pages hold anything.
 * sinks: the softmax of head h has one more score, sinks[h], as it is, that no token has: it takes weight and has no
 * value. A kernel refuses a node with an attribute or an operand that it does not know. flash_attention keeps a running
 * softmax and no scores beyond small tiles; tiled_attention may hold tiles of scores (over heads, rows and pages, with
 * a running maximum and sum) up to the cap. They differ in what kernels claim, not in meaning. */
#define TSR_OP_FLASH_ATTENTION "flash_attention"
#define TSR_OP_TILED_ATTENTION "tiled_attention"

/* Abstract. q f32 [dk, H, R], k f32 [dk, KV, R], v f32 [dv, KV, R] (rope applied to q and k), positions, sequences,
 * page_table, [sinks f32 [H]]? -> f32 [dv, H, R]. Lowerings "flash" and "tiles", family "expanded": cache_write twice,
 * then attention in its plain variant. Attributes: scale (f), window (0) as of flash_attention. */
#define TSR_OP_CACHED_ATTENTION "cached_attention"
