// The list of reference algorithms: what both plugins that compute with them, and their tests, go through.
#pragma once

#include <tessera/cpu/reference/attention.hpp>
#include <tessera/cpu/reference/matmul.hpp>
#include <tessera/cpu/reference/pointwise.hpp>
#include <tessera/cpu/reference/routing.hpp>
#include <tessera/cpu/reference/storage.hpp>

#include <string_view>

namespace tessera::cpu::reference {

struct Op {
    const char* name;
    // Answers `plan` (supported, reason, workspace, least scratch) and, on yes, `work`. `slots` is the number of
    // workers that get workspace of their own; more of them may run, without being of use where there is workspace.
    // Pure.
    void (*plan)(const tsr_node& node, uint32_t slots, tsr_kernel_plan& plan, Work& work) noexcept;
    // Computes a node that plan has accepted, with the same `slots`. Uses no barrier. Throws sdk::Failure if data is
    // bad (an id or a page out of range).
    void (*run)(const tsr_node& node, uint32_t slots, const tsr_run& run);
};

inline constexpr Op kOps[] = {
    {TSR_OP_GET_ROWS, plan_get_rows, run_get_rows},
    {TSR_OP_RMS_NORM, plan_rms_norm, run_rms_norm},
    {TSR_OP_MATMUL, plan_matmul, run_matmul},
    {TSR_OP_MATMUL_ID, plan_matmul_id, run_matmul_id},
    {TSR_OP_WEIGHTED_SUM, plan_weighted_sum, run_weighted_sum},
    {TSR_OP_MOE_ROUTE, plan_moe_route, run_moe_route},
    {TSR_OP_ROPE, plan_rope, run_rope},
    {TSR_OP_ADD, plan_add, run_add},
    {TSR_OP_MUL, plan_mul, run_mul},
    {TSR_OP_SILU_MUL, plan_silu_mul, run_silu_mul},
    {TSR_OP_HADAMARD, plan_hadamard, run_hadamard},
    {TSR_OP_CONVERT, plan_convert, run_convert},
    {TSR_OP_TRANSPOSE, plan_transpose, run_transpose},
    {TSR_OP_CACHE_WRITE, plan_cache_write, run_cache_write},
    {TSR_OP_FLASH_ATTENTION, plan_attention, run_attention},
    {TSR_OP_TILED_ATTENTION, plan_attention, run_attention},
};

inline constexpr uint32_t kOpCount = sizeof kOps / sizeof kOps[0];

// nullptr if no algorithm has that name.
inline const Op* find_op(std::string_view name) noexcept {
    for (const Op& op : kOps) {
        if (name == op.name) return &op;
    }
    return nullptr;
}

}  // namespace tessera::cpu::reference
