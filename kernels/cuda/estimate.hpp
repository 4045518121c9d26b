// Seconds of nodes on a card as described.
#pragma once

#include "attention/flash.hpp"

#include <tessera/cpu/check.hpp>
#include <tessera/device.h>
#include <tessera/kernel.h>

namespace tessera::cuda_ops {

// What a node's launches do; the totals are those of `work` times the passes over the weight.
struct Cost {
    int launches = 1;
    // Multiply-adds a clock and multiprocessor that the kernel reaches where arithmetic bounds it.
    double macs_a_clock = 64;
    // With the maximum of rows; 0: the same.
    double macs_a_clock_all_rows = 0;
    // How often the largest operand is read with the maximum of rows.
    double passes_all_rows = 1;
    double bytes_of_a_pass = 0;
    // Of sums of spans that one launch writes and another one joins, where max_tokens are cached.
    double partial_bytes_one_row_full = 0;
    double partial_bytes_all_rows_full = 0;
};

// Multiply-adds a clock and multiprocessor of attention, with one row and with many: of heads over a latent row
// (`latent`) or of their own.
void set_attention_rates(const tsr_device_info& device, const FlashKernels& kernels, bool latent, Cost& cost) noexcept;

void write_estimate(const cpu::Work& work, const Cost& cost, const tsr_device_info& device,
                    tsr_kernel_plan& plan) noexcept;

}  // namespace tessera::cuda_ops
