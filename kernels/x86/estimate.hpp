// What work costs on a processor, in seconds: by its cores, their clock, the memory bandwidth of the team and what a
// barrier of it takes. Plain arithmetic without instructions of its own: a plan may ask about any machine.
#pragma once

#include <tessera/cpp/call_cost.hpp>
#include <tessera/device.h>
#include <tessera/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tessera::x86 {

// What a node does at one number of rows and of cached tokens.
struct Amount {
    double bytes = 0;    // of memory, read and written
    double seconds = 0;  // of arithmetic: one core at kReferenceHz
};

class Estimate {
  public:
    // The clock at which the rates of this folder are said.
    static constexpr double kReferenceHz = 3.1e9;

    // `device` may be NULL, and what it does not say is that of a desktop with two channels of DDR4.
    explicit Estimate(const tsr_device_info* device) noexcept {
        const auto threads = device && device->threads > 0 ? device->threads : 1;
        // Hardware threads of one core share what it can do.
        const auto cores = device && device->processors > 0 ? std::min(device->processors, threads) : threads;
        // In large teams shares of work are uneven, and clocks fall when all cores compute: another program's prompts
        // on a Xeon of 128 cores reached three quarters of what the cores do one by one.
        constexpr double kHalfUsed = 350;
        const double used = 1 / (1 + (cores - 1) / kHalfUsed);
        // Kernels reach a little less than the rates say, which were measured alone and with their data near.
        constexpr double kInModel = 0.95;
        speed_ = kInModel * used * cores * (device && device->clock_hz > 0 ? device->clock_hz / kReferenceHz : 1);
        bandwidth_ = kInModel * (device && device->memory_bandwidth > 0 ? device->memory_bandwidth : 25e9);
        barrier_ = sdk::barrier_seconds(device);
    }

    double barrier() const noexcept { return barrier_; }

    // Memory and arithmetic overlap, but for the knee where one is as long as the other.
    double work(const Amount& amount) const noexcept {
        const double memory = amount.bytes / bandwidth_, arithmetic = amount.seconds / speed_;
        const double longer = std::max(memory, arithmetic), shorter = std::min(memory, arithmetic);
        if (longer <= 0) return 0;
        const double square = (shorter / longer) * (shorter / longer);
        return longer * std::sqrt(std::sqrt(1 + square * square));
    }

    // Of a node of `barriers` barriers, its last one included, which the host adds together with the call.
    double node(const Amount& amount, int barriers) const noexcept {
        return std::max(barriers - 1, 0) * barrier_ + work(amount);
    }

    // The four estimates of a plan. Pass the first two again where nothing depends on cached tokens.
    void write(tsr_kernel_plan& plan, int barriers, const Amount& one, const Amount& all, const Amount& one_full,
               const Amount& all_full) const noexcept {
        plan.seconds_one_row = node(one, barriers);
        plan.seconds_all_rows = std::max(plan.seconds_one_row, node(all, barriers));
        plan.seconds_one_row_full = std::max(plan.seconds_one_row, node(one_full, barriers));
        plan.seconds_all_rows_full = std::max(plan.seconds_all_rows, node(all_full, barriers));
        plan.bytes_one_row = one.bytes;
        plan.bytes_all_rows = all.bytes;
    }

  private:
    double speed_;      // of all cores, in cores at kReferenceHz
    double bandwidth_;  // bytes/s
    double barrier_;    // seconds
};

}  // namespace tessera::x86
