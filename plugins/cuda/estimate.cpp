#include "estimate.hpp"

#include <algorithm>

namespace tessera::cuda_ops {
namespace {

// From one launch to the next of a recording.
constexpr double kLaunchSeconds = 3e-6;
// The share of a card's memory bandwidth that kernels of this kind are known to reach.
constexpr double kMemoryShare = 0.75;

}  // namespace

void set_attention_rates(const tsr_device_info& device, const FlashKernels& kernels, bool latent, Cost& cost) noexcept {
    const uint32_t capability = device.compute_capability;
    // What softmax, barriers and edges leave: a guess until a card has measured it.
    constexpr double kLeft = 0.75;
    if (!kernels.tensor_cores) {
        // By one row both operands come from shared memory, an element of each for a multiply-add. By tiles 32 lanes of
        // each scheduler (16 on 6.0 and from 7.0 on) multiply in 0.9 of all clocks (docs/cuda-attention.md).
        const double tiles = (capability / 10 == 61 ? 128 : 64) * 0.9 * kLeft;
        cost.macs_a_clock = kernels.small.name ? tiles : 24;
        cost.macs_a_clock_all_rows = kernels.large.name ? tiles : 24;
        return;
    }
    // Dense rates of f16 with sums in f32 (vendors' whitepapers; on Hopper and later data-centre cards that of
    // mma.sync, 62 % of the whole), times the share that the instruction mix allows (docs/measurements/cuda-static.md).
    cost.macs_a_clock = 256 * kLeft;
    if (capability == 800) cost.macs_a_clock = 1024 * (latent ? 0.82 : 0.7) * kLeft;
    if (capability >= 900 && capability < 1200) cost.macs_a_clock = 2540 / 2.0 * (latent ? 0.66 : 0.6) * kLeft;
}

void write_estimate(const cpu::Work& work, const Cost& cost, const tsr_device_info& device,
                    tsr_kernel_plan& plan) noexcept {
    // A card about which nothing is known is taken for a small one.
    const double processors = device.processors > 0 ? device.processors : 30;
    const double clock = device.clock_hz > 0 ? device.clock_hz : 1.3e9;
    const double bandwidth = (device.memory_bandwidth > 0 ? device.memory_bandwidth : 300e9) * kMemoryShare;
    const double rate = processors * clock * cost.macs_a_clock;
    const double rate_all =
        processors * clock * (cost.macs_a_clock_all_rows > 0 ? cost.macs_a_clock_all_rows : cost.macs_a_clock);
    cpu::Work passes = work;
    passes.bytes_all_rows += (cost.passes_all_rows - 1) * cost.bytes_of_a_pass;
    // One row is not slower by the kernel of many rows than by that of few.
    cpu::write_estimates(passes, plan, [&](double macs, double bytes) {
        const double arithmetic = macs > work.macs_one_row ? macs / rate_all : macs / rate;
        return cost.launches * kLaunchSeconds + std::max(arithmetic, bytes / bandwidth);
    });
    plan.bytes_all_rows = passes.bytes_all_rows;
}

}  // namespace tessera::cuda_ops
