// What each plugin of this folder's kernels defines: the code that gains from wider vectors. All else is compiled once,
// and linked into each of them. Beside this it defines the float formats (matmul/weight_kernels.hpp).
#pragma once

#include "matmul/gemm.hpp"
#include "matmul/weight_kernels.hpp"
#include "rates.hpp"

#include <tessera/device.h>

#include <string_view>

namespace tessera::x86 {

struct AttentionCode;

// What a processor with certain flags runs.
struct Vectors {
    const char* name;  // for people
    const PanelTable* panels;
    const AttentionCode* int16;   // attention in 16-bit integers
    const AttentionCode* floats;  // in f32
    const AttentionCode* bytes;   // in bytes; nullptr: not faster
    Processor processor;          // for rates

    Macs macs(const WeightKernels& kernels) const noexcept { return product_rates(processor, kernels.type); }
};

// Whether the device's processor has a flag, as /proc/cpuinfo names it. Any thread.
inline bool has_flag(const tsr_device_info* device, std::string_view flag) noexcept {
    if (!device || !device->cpu_flags) return false;
    for (const char* const* f = device->cpu_flags; *f; ++f) {
        if (flag == *f) return true;
    }
    return false;
}

// Chosen by the device's flags; the plugin's minimum where `device` is NULL or has none. Lives as long as the library;
// any thread.
const Vectors& vectors_of(const tsr_device_info* device) noexcept;

}  // namespace tessera::x86
