// What products with weights of q8_0 have in common.
#pragma once

#include "launches.hpp"

#include <tessera/cuda/launch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::cuda_ops {

inline constexpr uint32_t kDp4a = 610;  // compute capability that brought it
inline constexpr std::array kQ8Widths = {16, 8, 4, 2};

// Bytes of one row of activations in the workspace. The image that a card runs decides which of the two forms it is.
inline uint64_t q8_activation_bytes(int64_t k, uint32_t image_capability) noexcept {
    const int64_t blocks = k / cuda_kernels::kQ8Elements;
    return static_cast<uint64_t>(image_capability >= kDp4a ? cuda_kernels::int8_activation_bytes(blocks)
                                                           : cuda_kernels::float_activation_bytes(blocks));
}

// Multiply-adds a clock and multiprocessor.
inline double q8_macs_a_clock(uint32_t image_capability) noexcept {
    return image_capability < kDp4a ? 16 : image_capability < 700 ? 140 : 70;
}

// Rows of q8_0 can be read in vectors of as many bytes as divide where they begin, and how long they are.
inline size_t q8_width_index(const cuda_kernels::Matmul& a) noexcept {
    const int64_t row = a.k / cuda_kernels::kQ8Elements * cuda_kernels::kQ8Bytes;
    uint64_t all = reinterpret_cast<uint64_t>(a.weight) | static_cast<uint64_t>(row | a.weight_row);
    all |= static_cast<uint64_t>(a.weight_batch);  // 0 without a batch
    size_t index = 0;
    // A row ends with half a vector of 16 bytes or not: what lies behind it is not read.
    while (index + 1 < kQ8Widths.size() && !multiple(all, static_cast<uint64_t>(kQ8Widths[index]))) ++index;
    return index;
}

// Puts rows of x into the workspace, as products read them.
inline void launch_quantise(const cuda::Kernel& quantise, tsr_queue queue, const cuda_kernels::Matmul& a,
                            uint32_t rows) {
    const int blocks = a.k / cuda_kernels::kQ8Elements;
    const auto groups =
        static_cast<uint32_t>((blocks + cuda_kernels::kQuantiseWarps - 1) / cuda_kernels::kQuantiseWarps);
    quantise.launch(queue, {groups, std::min(rows, kMaximumGrid), static_cast<uint32_t>(a.batch)},
                    32 * cuda_kernels::kQuantiseWarps, a);
}

}  // namespace tessera::cuda_ops
