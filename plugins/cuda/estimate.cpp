#include "estimate.hpp"

#include <algorithm>

namespace tessera::cuda_ops {
namespace {

// From one launch to the next of a recording.
constexpr double kLaunchSeconds = 3e-6;
// The share of a card's memory bandwidth that kernels of this kind are known to reach.
constexpr double kMemoryShare = 0.75;

}  // namespace

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
