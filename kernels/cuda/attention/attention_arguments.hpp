// What kernels of attention take, from a node and a launch.
#pragma once

#include "pages.hpp"

#include <tessera/cpu/checks/attention.hpp>

#include <algorithm>
#include <numbers>

namespace tessera::cuda_ops {

// Whether rows of a tensor of rank 3 begin at multiples of 16 bytes.
inline bool rows_aligned(const tsr_tensor& t) noexcept {
    return multiple(static_cast<uint64_t>(t.strides[1] | t.strides[2]) | t.offset, 16);
}
// Whether rows of queries and of the output do, as kernels of many rows in f32 need it.
inline bool ends_aligned(const tsr_node& node) noexcept {
    return rows_aligned(*node.inputs[cpu::kQ]) && rows_aligned(*node.outputs[0]);
}

// Without splits.
inline cuda_kernels::Attention attention_arguments(const tsr_node& node, const cpu::AttentionShape& shape,
                                                   const tsr_launch& launch) noexcept {
    const tsr_tensor &q = *node.inputs[cpu::kQ], &k = *node.inputs[cpu::kK], &y = *node.outputs[0];
    cuda_kernels::Attention p{};
    p.q = operand_address(node, launch, cpu::kQ);
    p.k = operand_address(node, launch, cpu::kK);
    p.k_token = k.strides[1];
    p.k_page = k.strides[2];
    p.k_type = static_cast<int32_t>(k.type);
    if (sdk::has_input(node, cpu::kV)) {
        const tsr_tensor& v = *node.inputs[cpu::kV];
        p.v = operand_address(node, launch, cpu::kV);
        p.v_token = v.strides[1];
        p.v_page = v.strides[2];
        p.v_type = static_cast<int32_t>(v.type);
    }
    p.positions = operand_address(node, launch, cpu::kPositions);
    p.sequences = operand_address(node, launch, cpu::kSequences);
    p.pages = pages_of(node, launch, cpu::kPageTable, k);
    p.y = operand_address(node, launch, node.input_count);
    p.partial = launch.workspace;
    p.rows = rows_of(q, launch);
    p.q_head = q.strides[1];
    p.q_row = q.strides[2];
    p.y_head = y.strides[1];
    p.y_row = y.strides[2];
    p.position = node.inputs[cpu::kPositions]->strides[0];
    p.sequence = node.inputs[cpu::kSequences]->strides[0];
    p.heads = static_cast<int32_t>(shape.heads);
    p.group = static_cast<int32_t>(shape.heads / shape.kv_heads);
    p.dk = static_cast<int32_t>(shape.dk);
    p.dv = static_cast<int32_t>(shape.dv);
    p.splits = 1;
    p.seen_tokens = static_cast<int32_t>(std::min<int64_t>(shape.window, INT32_MAX));
    if (sdk::has_input(node, cpu::kSinks)) {
        p.sinks = operand_address(node, launch, cpu::kSinks);
        p.sink = node.inputs[cpu::kSinks]->strides[0];
    }
    p.scale_log2 = static_cast<float>(shape.scale * std::numbers::log2e);
    return p;
}

}  // namespace tessera::cuda_ops
