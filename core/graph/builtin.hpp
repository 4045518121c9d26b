// Inside core/graph: shape inference and lowerings of the ops in ops.h. Functions throw sdk::Failure.
#pragma once

#include <tessera/graph.h>

namespace tessera::builtin {

void infer_get_rows(const tsr_node& node, tsr_tensor* const* out);
void infer_rms_norm(const tsr_node& node, tsr_tensor* const* out);
void infer_matmul(const tsr_node& node, tsr_tensor* const* out);
void infer_matmul_group(const tsr_node& node, tsr_tensor* const* out);
void infer_gated_ffn(const tsr_node& node, tsr_tensor* const* out);
void infer_matmul_id(const tsr_node& node, tsr_tensor* const* out);
void infer_weighted_sum(const tsr_node& node, tsr_tensor* const* out);
void infer_moe_ffn(const tsr_node& node, tsr_tensor* const* out);
void infer_moe_route(const tsr_node& node, tsr_tensor* const* out);
void infer_rope(const tsr_node& node, tsr_tensor* const* out);
void infer_add_mul(const tsr_node& node, tsr_tensor* const* out);
void infer_hadamard(const tsr_node& node, tsr_tensor* const* out);
void infer_silu_mul(const tsr_node& node, tsr_tensor* const* out);
void infer_convert(const tsr_node& node, tsr_tensor* const* out);
void infer_transpose(const tsr_node& node, tsr_tensor* const* out);
void infer_cache_write(const tsr_node& node, tsr_tensor* const* out);
void infer_attention(const tsr_node& node, tsr_tensor* const* out);
void infer_cached_attention(const tsr_node& node, tsr_tensor* const* out);

}  // namespace tessera::builtin
