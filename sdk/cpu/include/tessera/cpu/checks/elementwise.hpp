// Checks of nodes whose ops work on one row at a time. Each refuses in `plan` what does not agree with ops.h or cannot
// be computed from canonical data, else sets plan.supported and estimates the work. No allocation, any thread.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/cpu/checks/named.hpp>
#include <tessera/cpu/glu.hpp>
#include <tessera/cpu/hadamard.hpp>
#include <tessera/ops.h>

#include <cmath>

namespace tessera::cpu {

inline void check_get_rows(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check.operands()) return;
    work = row_work(check.at(check.out()), 1);
    plan.supported = 1;
}

inline void check_rms_norm(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.operands();
    if (!sdk::find_attribute(node, "epsilon"))
        check.no("rms_norm: required without epsilon; supported: with; missing: it");
    if (!check) return;
    work = row_work(check.at(0), 2);
    plan.supported = 1;
}

// Of ops without more to ask for, whose cost follows the rows of the first operand. kMacs: for an element.
template <int kMacs>
void check_rows(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check.operands()) return;
    work = row_work(check.at(0), kMacs);
    plan.supported = 1;
}

inline constexpr CheckFunction check_add = check_rows<1>, check_mul = check_rows<1>, check_silu_mul = check_rows<1>,
                               check_add_id = check_rows<1>, check_weighted_sum = check_rows<1>,
                               check_scale = check_rows<1>, check_sigmoid_mul = check_rows<1>;

inline void check_glu_op(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (check_glu(check, node)) check_rows<1>(node, plan, work);
}

inline void check_rope(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.operands();
    const std::string_view mode = sdk::string_attribute(node, "mode", "");
    if (mode != "norm" && mode != "neox")
        check.no("rope: required another mode; supported: norm, neox; missing: that mode");
    if (!(sdk::float_attribute(node, "base", 0) > 0))
        check.no("rope: required without a positive base; supported: with one");
    const bool ramp = sdk::find_attribute(node, "ramp_low");
    if (ramp != (sdk::find_attribute(node, "ramp_high") != nullptr))
        check.no("rope: required one end of a ramp; supported: both or none; missing: the other");
    if (sdk::float_attribute(node, "ext_factor", 0) != 0 && !ramp &&
        sdk::int_attribute(node, "original_context", 0) < 1) {
        check.no("rope: required ext_factor without original_context or a ramp; supported: with; missing: it");
    }
    if (!check) return;
    work = row_work(check.at(0), 4);
    plan.supported = 1;
}

inline void check_scale_by_position(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.operands();
    if (!sdk::find_attribute(node, "scale"))
        check.no("scale_by_position: required without scale; supported: with; missing: it");
    if (!check) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

inline void check_hadamard(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check.operands()) return;
    work = row_work(check.at(0), std::log2(static_cast<double>(hadamard_block(check.at(0).dims[0]))));
    plan.supported = 1;
}

inline constexpr NamedCheck kElementwiseChecks[] = {
    {TSR_OP_GET_ROWS, check_get_rows},
    {TSR_OP_RMS_NORM, check_rms_norm},
    {TSR_OP_ADD, check_add},
    {TSR_OP_MUL, check_mul},
    {TSR_OP_SILU_MUL, check_silu_mul},
    {TSR_OP_GLU, check_glu_op},
    {TSR_OP_ADD_ID, check_add_id},
    {TSR_OP_WEIGHTED_SUM, check_weighted_sum},
    {TSR_OP_ROPE, check_rope},
    {TSR_OP_HADAMARD, check_hadamard},
    {TSR_OP_SCALE_BY_POSITION, check_scale_by_position},
    {TSR_OP_SCALE, check_scale},
    {TSR_OP_SIGMOID_MUL, check_sigmoid_mul},
};

}  // namespace tessera::cpu
