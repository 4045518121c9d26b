// Kernels for AVX2 of ops that work on one row at a time and have no form for wider vectors. The nodes have passed the
// checks of the CPU kit (tessera/cpu/checks). Any number of workers; results do not depend on it.
#pragma once

#include <tessera/cpu/elementwise/rope.hpp>
#include <tessera/kernel.h>

#include <cstdint>

namespace tessera::x86 {

// Throws sdk::Failure(TSR_INVALID_ARGUMENT) for an id that the table does not have.
void run_get_rows(const tsr_node& node, const tsr_run& run);

// As the templates of tessera/cpu/elementwise.
void run_rms_norm(const tsr_node& node, const tsr_run& run);
void run_rope(const tsr_node& node, const cpu::elementwise::RopeTable& table, const tsr_run& run);
void run_add(const tsr_node& node, const tsr_run& run);
void run_mul(const tsr_node& node, const tsr_run& run);
void run_silu_mul(const tsr_node& node, const tsr_run& run);
void run_weighted_sum(const tsr_node& node, const tsr_run& run);

// Any type that can be decoded to any that can be encoded, as f32 in between.
void run_convert(const tsr_node& node, const tsr_run& run) noexcept;
void run_transpose(const tsr_node& node, const tsr_run& run) noexcept;

void run_hadamard(const tsr_node& node, const tsr_run& run) noexcept;

// Experts of a node that run_moe_route takes.
inline constexpr int64_t kMaxRoutedExperts = 4096;

void run_moe_route(const tsr_node& node, const tsr_run& run) noexcept;

}  // namespace tessera::x86
