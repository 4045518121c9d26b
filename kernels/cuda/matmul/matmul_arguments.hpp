// What products of a row with a matrix have in common: sizes and arguments.
#pragma once

#include "../launches.hpp"

#include <cstdint>

namespace tessera::cuda_ops {

inline int64_t batch_of(const tsr_tensor& x) noexcept {
    return x.rank == 3 ? x.dims[1] : 1;
}

// Refuses in `plan` a matmul whose counts kernels do not take; returns whether it did. The node has passed
// check_matmul.
inline bool refuse_size(const tsr_node& node, tsr_kernel_plan& plan) noexcept {
    const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1], &y = *node.outputs[0];
    if (weight.range != TSR_RANGE_FIXED) {
        sdk::refuse(plan, "matmul: required bounded weights; supported: fixed ones; missing: that");
        return true;
    }
    constexpr int64_t kMaximum = INT32_MAX / 64;
    if (x.dims[0] <= kMaximum && y.dims[0] <= kMaximum && batch_of(x) <= int64_t{kMaximumGrid}) return false;
    sdk::refuse(plan, "matmul: required %lld x %lld, batch %lld; supported: up to %lld, batch %u; missing: larger",
                static_cast<long long>(x.dims[0]), static_cast<long long>(y.dims[0]),
                static_cast<long long>(batch_of(x)), static_cast<long long>(kMaximum), kMaximumGrid);
    return true;
}

// Without activation_bytes and vectors.
inline cuda_kernels::Matmul matmul_arguments(const tsr_node& node, const tsr_launch& launch) noexcept {
    const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1], &y = *node.outputs[0];
    cuda_kernels::Matmul a{};
    a.x = operand_address(node, launch, 0);
    a.weight = operand_address(node, launch, 1);
    a.y = operand_address(node, launch, 2);
    a.activations = launch.workspace;
    a.rows = rows_of(x, launch);
    a.x_row = x.strides[x.rank - 1];
    a.y_row = y.strides[y.rank - 1];
    a.weight_row = weight.strides[1];
    a.batch = static_cast<int32_t>(batch_of(x));
    if (a.batch > 1) {
        a.x_batch = x.strides[1];
        a.y_batch = y.strides[1];
        a.weight_batch = weight.strides[2];
    }
    a.k = static_cast<int32_t>(x.dims[0]);
    a.n = static_cast<int32_t>(y.dims[0]);
    return a;
}

}  // namespace tessera::cuda_ops
