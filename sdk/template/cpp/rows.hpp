// Element-wise work on f32 tensors, row by row.
#pragma once

#include <tessera/cpp/node.hpp>

#include <cstdint>

namespace example {

// Refuses operands that are not canonical f32 tensors with dense rows, all of the shape of operand 0; true if the plan
// may go on. Operands are counted over inputs, then outputs.
bool accept_rows(const tsr_node& node, tsr_kernel_plan& plan) noexcept;

// Rows of operand 0 that this run works on, counted over all dimensions but the first.
struct Rows {
    int64_t begin;
    int64_t end;
};
Rows actual_rows(const tsr_node& node, const tsr_run& run) noexcept;

// The row of operand `index` that has this number.
float* row_of(const tsr_node& node, const tsr_run& run, uint32_t index, int64_t row) noexcept;

// The part of `rows` that one worker computes. Every row is computed by one worker alone, so the result does not depend
// on how many there are.
inline Rows share_of(Rows rows, const tsr_run& run) noexcept {
    const int64_t count = rows.end - rows.begin;
    return {rows.begin + count * run.worker / run.workers, rows.begin + count * (run.worker + 1) / run.workers};
}

}  // namespace example
