// The oracle: an algorithm in plain C++ for every op of ops.h but the fused ones. The plugins `reference` and
// `simulated` compute with it, and tests compare all other kernels with it; no production kernel runs it.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cpu/checks/matmul.hpp>
#include <tessera/cpu/checks/storage.hpp>
#include <tessera/kernel.h>
#include <tessera/ops.h>

#include <cstdint>
#include <string_view>

namespace tessera::plain {

using cpu::Work;

struct Op {
    const char* name;
    // Answers `plan` (supported, reason, workspace, minimum scratch) and, on yes, `work`. `slots` is the number of
    // workers that get workspace of their own; further workers may run, but get no work of ops that need workspace.
    // Pure.
    void (*plan)(const tsr_node& node, uint32_t slots, tsr_kernel_plan& plan, Work& work) noexcept;
    // Computes a node that plan has accepted, with the same `slots`. Uses no barrier. Throws sdk::Failure if data is
    // bad (an id or a page out of range).
    void (*run)(const tsr_node& node, uint32_t slots, const tsr_run& run);
};

// Op::plan of an algorithm without workspace.
template <auto kCheck>
void plan_of(const tsr_node& node, uint32_t, tsr_kernel_plan& plan, Work& work) noexcept {
    kCheck(node, plan, work);
}

void plan_attention(const tsr_node& node, uint32_t slots, tsr_kernel_plan& plan, Work& work) noexcept;
void plan_moe_route(const tsr_node& node, uint32_t slots, tsr_kernel_plan& plan, Work& work) noexcept;

// X(name, plan, run): the algorithms. A run is declared here and defined where its kind of op is.
#define TESSERA_PLAIN_OPS(X)                                                                  \
    X(TSR_OP_GET_ROWS, plan_of<cpu::check_get_rows>, run_get_rows)                            \
    X(TSR_OP_RMS_NORM, plan_of<cpu::check_rms_norm>, run_rms_norm)                            \
    X(TSR_OP_MATMUL, plan_of<cpu::check_matmul>, run_matmul)                                  \
    X(TSR_OP_MATMUL_ID, plan_of<cpu::check_matmul_id>, run_matmul_id)                         \
    X(TSR_OP_WEIGHTED_SUM, plan_of<cpu::check_weighted_sum>, run_weighted_sum)                \
    X(TSR_OP_MOE_ROUTE, plan_moe_route, run_moe_route)                                        \
    X(TSR_OP_ROPE, plan_of<cpu::check_rope>, run_rope)                                        \
    X(TSR_OP_SCALE_BY_POSITION, plan_of<cpu::check_scale_by_position>, run_scale_by_position) \
    X(TSR_OP_SCALE, plan_of<cpu::check_scale>, run_scale)                                     \
    X(TSR_OP_SIGMOID_MUL, plan_of<cpu::check_sigmoid_mul>, run_sigmoid_mul)                   \
    X(TSR_OP_ADD, plan_of<cpu::check_add>, run_add)                                           \
    X(TSR_OP_MUL, plan_of<cpu::check_mul>, run_mul)                                           \
    X(TSR_OP_SILU_MUL, plan_of<cpu::check_silu_mul>, run_silu_mul)                            \
    X(TSR_OP_GLU, plan_of<cpu::check_glu_op>, run_glu)                                        \
    X(TSR_OP_ADD_ID, plan_of<cpu::check_add_id>, run_add_id)                                  \
    X(TSR_OP_HADAMARD, plan_of<cpu::check_hadamard>, run_hadamard)                            \
    X(TSR_OP_CONVERT, plan_of<cpu::check_convert>, run_convert)                               \
    X(TSR_OP_TRANSPOSE, plan_of<cpu::check_convert>, run_transpose)                           \
    X(TSR_OP_CACHE_WRITE, plan_of<cpu::check_cache_write>, run_cache_write)                   \
    X(TSR_OP_FLASH_ATTENTION, plan_attention, run_attention)                                  \
    X(TSR_OP_TILED_ATTENTION, plan_attention, run_attention)

#define TESSERA_DECLARE(name, plan, run) void run(const tsr_node&, uint32_t slots, const tsr_run&);
TESSERA_PLAIN_OPS(TESSERA_DECLARE)
#undef TESSERA_DECLARE

inline constexpr Op kOps[] = {
#define TESSERA_ROW(name, plan, run) {name, plan, run},
    TESSERA_PLAIN_OPS(TESSERA_ROW)
#undef TESSERA_ROW
};

inline constexpr uint32_t kOpCount = sizeof kOps / sizeof kOps[0];

// nullptr if no algorithm has that name.
inline const Op* find_op(std::string_view name) noexcept {
    for (const Op& op : kOps) {
        if (name == op.name) return &op;
    }
    return nullptr;
}

}  // namespace tessera::plain
