// Packed layouts of weights: the blocks of neighbouring rows interleaved, and a mark after each group that shows
// whether it was packed.
#pragma once

#include "device.hpp"

#include <tessera/kernel.h>
#include <tessera/tensor.h>

#include <cstdint>
#include <vector>

namespace tessera::simulated {

// `count` is set. The list lives until the process ends.
const tsr_layout* const* layout_list(uint32_t& count);

// The layouts that products take of a weight on a device, best first, for tsr_kernel_plan; nullptr: canonical only.
const char* const* layouts_of(const tsr_tensor& weight, const tsr_device_info& device, const Options& options) noexcept;

// Where in its packed storage a weight lies.
struct PackedWeight {
    const tsr_layout* layout = nullptr;  // null: the weight is canonical
    uint64_t offset = 0;                 // of its first group
    int64_t groups = 0;
    uint64_t bytes = 0;
    uint64_t canonical_bytes = 0;  // of the same rows

    // Throws sdk::Failure(TSR_UNSUPPORTED) for a layout that is none of this plugin's, or does not fit the weight.
    static PackedWeight of(const tsr_tensor& weight);
};

// Canonical rows of packed ones. Throws sdk::Failure(TSR_INVALID_ARGUMENT) for groups that nobody packed.
std::vector<char> unpacked_rows(const PackedWeight& weight, int64_t elements, const char* packed);

}  // namespace tessera::simulated
