// Flash attention by tiles of rows, on tensor cores or in f32: which kernel a node runs, and how its launches are cut.
#pragma once

#include "../ops.hpp"

#include <tessera/cpu/checks/attention.hpp>
#include <tessera/device.h>

#include <cstdint>

namespace tessera::cuda_ops {

// A kernel, by its tile (kernels/flash_tiles.hpp).
struct FlashKernel {
    const char* name;  // without the suffix of the cache's type; nullptr: none
    int32_t rows, tokens, threads;
    int32_t shared_bytes, decoded_shared_bytes;  // of a block; the second: of the kernel that decodes the cache
    int32_t blocks;                              // of a multiprocessor
    const cuda::Module* module;
};

// The two kernels of a node: for few rows, and for many. Both nameless if the plugin or the card has none for its
// shape; in f32 the one for few rows may be missing alone.
struct FlashKernels {
    FlashKernel small{}, large{};
    bool tensor_cores = false;
    FlashKernel large_decoded{};  // instead of `large` where the cache is decoded; nameless: the same
};

// keys, values: types of the cache (of prefixes twice the same).
FlashKernels flash_kernels(const cpu::AttentionShape& shape, tsr_type keys, tsr_type values, const Build& build,
                           const tsr_device_info& device) noexcept;

// Which kernels in f32 read rows of a type; nullptr for those of a mixture, which none reads.
const char* flash_f32_suffix(tsr_type keys, tsr_type values) noexcept;

// How many heads share keys.
inline int64_t group_of(const cpu::AttentionShape& shape) noexcept {
    return shape.heads / shape.kv_heads;
}

}  // namespace tessera::cuda_ops
