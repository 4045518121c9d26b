// Checks of matmul and matmul_id; see checks/elementwise.hpp.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/ops.h>

#include <algorithm>

namespace tessera::cpu {

// matmul: 0 x, 1 weight; output.
inline bool matmul_transposed(const tsr_node& node) noexcept {
    return sdk::int_attribute(node, "transpose_weight", 0) != 0;
}

inline void check_matmul(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(2, 2, 1);
    check.activation(0, "x", 0);
    check.weight(1, "the weight", 0);
    check.activation(check.out(), "the output", 0);
    if (!check) return;
    const tsr_tensor& x = check.at(0);
    const tsr_tensor& weight = check.at(1);
    if (x.rank != 2 && x.rank != 3) check.rank(0, "x", 2);
    if (weight.rank != 2 && weight.rank != 3) check.rank(1, "the weight", 2);
    if (!check) return;
    const bool transposed = matmul_transposed(node);
    const int64_t n = weight.dims[transposed ? 0 : 1];
    const int64_t batch = x.rank == 3 ? x.dims[1] : 1;
    check.dim(0, "x", 0, weight.dims[transposed ? 1 : 0]);
    check.dim(1, "the weight", 2, batch);
    check.rank(check.out(), "the output", x.rank);
    if (x.rank == 3) {
        check.dims(check.out(), "the output", {n, batch, x.dims[2]});
    } else {
        check.dims(check.out(), "the output", {n, x.dims[1]});
    }
    check.same_range(0, check.out());
    if (!check) return;
    const double rows = row_count(x);
    const double macs = static_cast<double>(x.dims[0]) * static_cast<double>(n) * static_cast<double>(batch);
    const double moved = tensor_bytes(x) + tensor_bytes(check.at(check.out()));
    work = {macs, macs * rows, tensor_bytes(weight) + moved / rows, tensor_bytes(weight) + moved, 0, 0, 0, 0};
    plan.supported = 1;
}

// matmul_id: 0 x, 1 weight, 2 ids; output.
inline void check_matmul_id(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(3, 3, 1);
    check.activation(0, "x", 0);
    check.weight(1, "the weight", 3);
    check.integers(2, "ids", 2);
    check.activation(check.out(), "the output", 3);
    if (!check) return;
    const tsr_tensor& x = check.at(0);
    const tsr_tensor& weight = check.at(1);
    const int64_t used = check.at(2).dims[0];
    const int64_t rows = check.at(2).dims[1];
    if (x.rank == 3) {
        check.dims(0, "x", {weight.dims[0], used, rows});
    } else {
        check.rank(0, "x", 2);
        check.dims(0, "x", {weight.dims[0], rows});
    }
    check.dims(check.out(), "the output", {weight.dims[1], used, rows});
    check.same_range(0, check.out());
    check.same_range(2, check.out());
    if (!check) return;
    const double all = row_count(x);
    const double expert_bytes = tensor_bytes(weight) / static_cast<double>(weight.dims[2]);
    const double experts_all = std::min(static_cast<double>(weight.dims[2]), static_cast<double>(used) * all);
    const double macs =
        static_cast<double>(weight.dims[0]) * static_cast<double>(weight.dims[1]) * static_cast<double>(used);
    const double moved = tensor_bytes(x) + tensor_bytes(check.at(check.out()));
    work = {macs,
            macs * all,
            expert_bytes * static_cast<double>(used) + moved / all,
            expert_bytes * experts_all + moved,
            0,
            0,
            0,
            0};
    plan.supported = 1;
}

}  // namespace tessera::cpu
