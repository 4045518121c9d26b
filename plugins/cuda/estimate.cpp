#include "estimate.hpp"

#include <algorithm>

namespace tessera::cuda_ops {
namespace {

// From one launch to the next of a recording.
constexpr double kLaunchSeconds = 3e-6;
// The share of a card's memory bandwidth that kernels of this kind are known to reach.
constexpr double kMemoryShare = 0.75;

}  // namespace

double attention_macs_a_clock(const tsr_device_info& device, bool tensor_cores, bool latent) noexcept {
    // In f32 both operands come from shared memory, an element of each for a multiply-add.
    if (!tensor_cores) return 24;
    // Dense rates of f16 with sums in f32 (vendors' whitepapers; on Hopper and later data-centre cards that of
    // mma.sync, 62 % of the whole), times the share that the instruction mix allows (docs/measurements/cuda-static.md),
    // times what softmax, barriers and edges leave: a guess until a card has measured it.
    constexpr double kLeft = 0.75;
    const uint32_t capability = device.compute_capability;
    if (capability == 800) return 1024 * (latent ? 0.82 : 0.7) * kLeft;
    if (capability >= 900 && capability < 1200) return 2540 / 2.0 * (latent ? 0.66 : 0.6) * kLeft;
    return 256 * kLeft;
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
