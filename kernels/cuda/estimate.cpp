#include "estimate.hpp"

#include "card_constants.hpp"

#include <algorithm>

namespace tessera::cuda_ops {

void set_attention_rates(const tsr_device_info& device, const FlashKernels& kernels, bool latent, Cost& cost) noexcept {
    const uint32_t capability = device.compute_capability;
    const double left = constants_of(capability).attention_share.value;
    if (!kernels.tensor_cores) {
        // By one row both operands come from shared memory, an element of each for a multiply-add. By tiles 32 lanes of
        // each scheduler (16 on 6.0 and from 7.0 on) multiply in 0.9 of all clocks (docs/cuda-attention.md).
        const double tiles = (capability / 10 == 61 ? 128 : 64) * 0.9 * left;
        cost.macs_a_clock = kernels.small.name ? tiles : 24;
        cost.macs_a_clock_all_rows = kernels.large.name ? tiles : 24;
        return;
    }
    // Dense rates of f16 with sums in f32 (vendors' whitepapers), times the share that the instruction mix allows
    // (testing/cuda_code/cuda_sass).
    cost.macs_a_clock = 256 * left;
    if (capability == 800) cost.macs_a_clock = 1024 * (latent ? 0.82 : 0.7) * left;
    if (capability >= 900 && capability < 1200)
        cost.macs_a_clock = 2048 * constants_of(capability).mma_share.value * (latent ? 0.66 : 0.6) * left;
}

void write_estimate(const cpu::Work& work, const Cost& cost, const tsr_device_info& device,
                    tsr_kernel_plan& plan) noexcept {
    // A card about which nothing is known is taken for a small one.
    const double processors = device.processors > 0 ? device.processors : 30;
    const double clock = device.clock_hz > 0 ? device.clock_hz : 1.3e9;
    const CardConstants& constants = constants_of(device.compute_capability);
    const double bandwidth =
        (device.memory_bandwidth > 0 ? device.memory_bandwidth : 300e9) * constants.memory_share.value;
    const double rate = processors * clock * cost.macs_a_clock;
    const double rate_all =
        processors * clock * (cost.macs_a_clock_all_rows > 0 ? cost.macs_a_clock_all_rows : cost.macs_a_clock);
    cpu::Work passes = work;
    passes.bytes_all_rows += (cost.passes_all_rows - 1) * cost.bytes_of_a_pass;
    // One row is not slower by the kernel of many rows than by that of few.
    cpu::write_estimates(passes, plan, [&](double macs, double bytes) {
        const double arithmetic = macs > work.macs_one_row ? macs / rate_all : macs / rate;
        return std::max(arithmetic, bytes / bandwidth);
    });
    // Few rows are recorded, many are launched one by one.
    for (double* seconds : {&plan.seconds_one_row, &plan.seconds_one_row_full})
        *seconds += cost.launches * constants.graph_node.value;
    for (double* seconds : {&plan.seconds_all_rows, &plan.seconds_all_rows_full})
        *seconds += cost.launches * constants.launch.value;
    // Partial sums stay in the second-level cache where it has room; what joins them waits for two loads in turn.
    const auto joining = [&](double partial) {
        if (partial <= 0) return 0.;
        const bool cached = device.l2_bytes == 0 || partial <= static_cast<double>(device.l2_bytes);
        return 2 * constants.memory_latency.value +
               2 * partial / (bandwidth * (cached ? constants.cached_rate.value : 1));
    };
    plan.seconds_one_row_full += joining(cost.partial_bytes_one_row_full);
    plan.seconds_all_rows_full += joining(cost.partial_bytes_all_rows_full);
    plan.bytes_all_rows = passes.bytes_all_rows;
}

}  // namespace tessera::cuda_ops
