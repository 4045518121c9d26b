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
    cpu::Work passes = work;
    passes.bytes_all_rows += (cost.passes_all_rows - 1) * cost.bytes_of_a_pass;
    cpu::write_estimates(passes, plan, [&](double macs, double bytes) {
        return cost.launches * kLaunchSeconds + std::max(macs / rate, bytes / bandwidth);
    });
    plan.bytes_all_rows = passes.bytes_all_rows;
}

}  // namespace tessera::cuda_ops
