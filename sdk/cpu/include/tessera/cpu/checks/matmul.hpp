// Checks of matmul and matmul_id; see checks/elementwise.hpp.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/ops.h>

#include <algorithm>

namespace tessera::cpu {

inline bool matmul_transposed(const tsr_node& node) noexcept {
    return sdk::shapes::is_transposed(node);
}

inline void check_matmul(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check.operands()) return;
    const tsr_tensor& x = check.at(0);
    const tsr_tensor& weight = check.at(1);
    const int64_t n = weight.dims[matmul_transposed(node) ? 0 : 1];
    const int64_t batch = x.rank == 3 ? x.dims[1] : 1;
    const double rows = row_count(x);
    const double macs = static_cast<double>(x.dims[0]) * static_cast<double>(n) * static_cast<double>(batch);
    const double moved = tensor_bytes(x) + tensor_bytes(check.at(check.out()));
    work = {macs, macs * rows, tensor_bytes(weight) + moved / rows, tensor_bytes(weight) + moved, 0, 0, 0, 0};
    plan.supported = 1;
}

inline void check_matmul_id(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check.operands()) return;
    const tsr_tensor& x = check.at(0);
    const tsr_tensor& weight = check.at(1);
    const int64_t used = check.at(2).dims[0];
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
