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

// get_rows: 0 table, 1 ids; output.
inline void check_get_rows(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(2, 2, 1);
    check.weight(0, "the table", 2);
    check.integers(1, "ids", 1);
    check.activation(check.out(), "the output", 2);
    if (!check) return;
    check.dims(check.out(), "the output", {check.at(0).dims[0], check.at(1).dims[0]});
    check.same_range(1, check.out());
    if (!check) return;
    work = row_work(check.at(check.out()), 1);
    plan.supported = 1;
}

// Checks that the output has x's rank, dims and range.
inline bool check_like(Check& check, uint32_t index, const char* what, uint32_t like) noexcept {
    if (!check) return false;
    const tsr_tensor& wanted = check.at(like);
    check.rank(index, what, wanted.rank);
    check.dims(index, what, {wanted.dims[0], wanted.dims[1], wanted.dims[2], wanted.dims[3]});
    return check.same_range(like, index);
}

// Checks that there is one input, and an output like it.
inline bool check_one_input(Check& check) noexcept {
    check.counts(1, 1, 1);
    check.activation(0, "x", 0);
    check.activation(check.out(), "the output", 0);
    return check_like(check, check.out(), "the output", 0);
}

// rms_norm: 0 x, 1 weight; output.
inline void check_rms_norm(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(2, 2, 1);
    check.activation(0, "x", 0);
    check.activation(1, "the weight", 1);
    check.activation(check.out(), "the output", 0);
    check_like(check, check.out(), "the output", 0);
    if (!check) return;
    check.dim(1, "the weight", 0, check.at(0).dims[0]);
    if (!sdk::find_attribute(node, "epsilon"))
        check.no("rms_norm: required without epsilon; supported: with; missing: it");
    if (!check) return;
    work = row_work(check.at(0), 2);
    plan.supported = 1;
}

// add, mul, silu_mul, glu: 0 a, 1 b; output.
inline void check_pair(const tsr_node& node, tsr_kernel_plan& plan, Work& work, bool may_broadcast) noexcept {
    Check check(node, plan);
    check.counts(2, 2, 1);
    check.activation(0, "the first operand", 0);
    check.activation(1, "the second operand", 0);
    check.activation(check.out(), "the output", 0);
    check_like(check, check.out(), "the output", 0);
    if (!check) return;
    if (may_broadcast && check.at(1).rank == 1 && check.at(1).range == TSR_RANGE_FIXED) {
        check.dim(1, "the second operand", 0, check.at(0).dims[0]);
    } else {
        check_like(check, 1, "the second operand", 0);
    }
    if (!check) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

inline void check_add(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    check_pair(node, plan, work, true);
}
inline void check_mul(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    check_pair(node, plan, work, true);
}
inline void check_silu_mul(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    check_pair(node, plan, work, false);
}

inline void check_glu_op(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (check_glu(check, node)) check_pair(node, plan, work, false);
}

// add_id: 0 x, 1 bias, 2 ids; output.
inline void check_add_id(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(3, 3, 1);
    check.activation(0, "x", 3);
    check.activation(1, "the bias", 2);
    check.integers(2, "ids", 2);
    check.activation(check.out(), "the output", 3);
    check_like(check, check.out(), "the output", 0);
    if (!check) return;
    const tsr_tensor& x = check.at(0);
    check.dim(1, "the bias", 0, x.dims[0]);
    check.dims(2, "ids", {x.dims[1], x.dims[2]});
    check.same_range(0, 2);
    if (!check) return;
    work = row_work(x, 1);
    plan.supported = 1;
}

// weighted_sum: 0 x, 1 weights; output.
inline void check_weighted_sum(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(2, 2, 1);
    check.activation(0, "x", 3);
    check.activation(1, "the weights", 2);
    check.activation(check.out(), "the output", 2);
    if (!check) return;
    const tsr_tensor& x = check.at(0);
    check.dims(1, "the weights", {x.dims[1], x.dims[2]});
    check.dims(check.out(), "the output", {x.dims[0], x.dims[2]});
    check.same_range(0, 1);
    check.same_range(0, check.out());
    if (!check) return;
    work = row_work(x, 1);
    plan.supported = 1;
}

// rope: 0 x, 1 positions, 2 factors?; output.
inline void check_rope(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(2, 3, 1);
    check.activation(0, "x", 3);
    check.integers(1, "positions", 1);
    check.activation(check.out(), "the output", 3);
    check_like(check, check.out(), "the output", 0);
    if (!check) return;
    const int64_t d = check.at(0).dims[0];
    check.dim(1, "positions", 0, check.at(0).dims[2]);
    check.same_range(0, 1);
    if (sdk::has_input(node, 2)) {
        check.activation(2, "factors", 1);
        check.dim(2, "factors", 0, d / 2);
    }
    const std::string_view mode = sdk::string_attribute(node, "mode", "");
    if (d % 2 != 0)
        check.no("rope: required %lld elements; supported: pairs; missing: odd counts", static_cast<long long>(d));
    if (mode != "norm" && mode != "neox")
        check.no("rope: required another mode; supported: norm, neox; missing: that mode");
    if (!(sdk::float_attribute(node, "base", 0) > 0))
        check.no("rope: required without a positive base; supported: with one");
    const bool ramp = sdk::find_attribute(node, "ramp_low") && sdk::find_attribute(node, "ramp_high");
    if (sdk::float_attribute(node, "ext_factor", 0) != 0 && !ramp &&
        sdk::int_attribute(node, "original_context", 0) < 1) {
        check.no("rope: required ext_factor without original_context or a ramp; supported: with; missing: it");
    }
    if (!check) return;
    work = row_work(check.at(0), 4);
    plan.supported = 1;
}

// scale_by_position: 0 x, 1 positions; output.
inline void check_scale_by_position(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(2, 2, 1);
    check.activation(0, "x", 0);
    check.integers(1, "positions", 1);
    check.activation(check.out(), "the output", 0);
    check_like(check, check.out(), "the output", 0);
    if (!check) return;
    const tsr_tensor& x = check.at(0);
    if (x.rank < 2) check.no("scale_by_position: required one row; supported: rows; missing: their dimension");
    if (!check) return;
    check.dim(1, "positions", 0, x.dims[x.rank - 1]);
    check.same_range(0, 1);
    if (!sdk::find_attribute(node, "scale") || sdk::int_attribute(node, "length", 0) < 1)
        check.no("scale_by_position: required without scale or a length; supported: with; missing: them");
    if (!check) return;
    work = row_work(x, 1);
    plan.supported = 1;
}

// scale: 0 x; output.
inline void check_scale(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_one_input(check)) return;
    if (!sdk::find_attribute(node, "factor")) check.no("scale: required without factor; supported: with; missing: it");
    if (check.at(0).rank < 2) check.no("scale: required one row; supported: rows; missing: their dimension");
    if (!check) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

// hadamard: 0 x; output.
inline void check_hadamard(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_one_input(check)) return;
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
};

}  // namespace tessera::cpu
