#include "estimate.hpp"

#include <tessera/extensions/estimate_constants.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace tessera::simulated {
namespace {

// Of recorded launches, one after another.
constexpr double kLaunchSeconds = 3e-6;
// The share of a card's memory bandwidth that the best known kernels for one row reach.
constexpr double kMemoryShare = 0.75;
// The share of its arithmetic that products of quantised weights reach in prompts.
constexpr double kArithmeticShare = 0.25;

// Multiply-adds of int8 or f16 products a clock and multiprocessor: tensor cores from 7.0 on (GeForce cards sum f16 in
// f32 at half rate); half of what dp4a can do on 6.1, where the same lanes unpack the weights; f32 on 6.0.
double macs_a_clock(uint32_t capability) noexcept {
    if (capability >= 1000 && capability < 1200) return 4096;
    if (capability >= 900 && capability < 1000) return 2048;
    if (capability == 800) return 1024;
    if (capability >= 700) return 512;
    return capability >= 610 ? 256 : 64;
}

struct Rates {
    double bytes, macs;  // a second
};

Rates rates_of(const tsr_device_info& device) noexcept {
    const double processors = device.processors > 0 ? device.processors : 30;
    const double clock = device.clock_hz > 0 ? device.clock_hz : 1.5e9;
    const double bandwidth = device.memory_bandwidth > 0 ? device.memory_bandwidth : 350e9;
    return {bandwidth * kMemoryShare, processors * clock * macs_a_clock(device.compute_capability) * kArithmeticShare};
}

}  // namespace

void write_estimate(const cpu::Work& work, const tsr_device_info& device, tsr_kernel_plan& plan) noexcept {
    const Rates rates = rates_of(device);
    cpu::write_estimates(work, plan, [&](double macs, double bytes) {
        return kLaunchSeconds + std::max(macs / rates.macs, bytes / rates.bytes);
    });
}

namespace {

uint32_t list_constants(const tsr_estimate_constants*, const tsr_device_info*, tsr_estimate_constant* constants,
                        uint32_t room) {
    constexpr tsr_estimate_constant kAll[] = {
        {"graph node", "us", kLaunchSeconds * 1e6, nullptr},
        {"launch", "us", kLaunchSeconds * 1e6, nullptr},
        {"share of the memory's bandwidth", "", kMemoryShare, nullptr},
        {"share of the rate of products", "", kArithmeticShare, nullptr},
    };
    const auto count = std::min(room, static_cast<uint32_t>(std::size(kAll)));
    std::copy_n(kAll, count, constants);
    return count;
}

constexpr tsr_estimate_constants kConstants = {sizeof(tsr_estimate_constants), 0, nullptr, list_constants};

}  // namespace

const void* estimate_constants() noexcept {
    return &kConstants;
}

}  // namespace tessera::simulated
