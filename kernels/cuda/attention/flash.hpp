// Flash attention by tiles of rows, on tensor cores or in f32: which kernel a node runs, and how its launches are cut.
#pragma once

#include "../ops.hpp"

#include <tessera/cpu/checks/attention.hpp>
#include <tessera/device.h>

#include <cstdint>

namespace tessera::cuda_ops {

// A kernel, by its tile (kernels/flash_tiles.hpp).
struct FlashKernel {
    const char* name;  // without FlashKernels::suffix; nullptr: none
    int32_t rows, tokens, threads;
    uint32_t shared_bytes;  // of a block
    int32_t blocks;         // of a multiprocessor
    const cuda::Module* module;
};

// The two kernels of a node: for few rows, and for many. Both nameless if the plugin or the card has none for its
// shape; in f32 the one for few rows may be missing alone.
struct FlashKernels {
    FlashKernel small{}, large{};
    bool tensor_cores = false;
    const char* suffix = "";  // of the names: how rows of keys and values are read
};

// What names of kernels that read a cache end with. `direct`: rows of keys and values are of one type and lie at
// multiples of 16 bytes. nullptr: no kernel reads such a mixture.
const char* flash_suffix(const Build& build, tsr_type keys, tsr_type values, bool direct) noexcept;
// Of rows that kernels before wrote: f16 for tensor cores, else f32.
const char* flash_suffix_of_written(const Build& build) noexcept;
inline constexpr const char* kFlashDecoded = "_decoded";  // to f16, for tensor cores

FlashKernels flash_kernels(const cpu::AttentionShape& shape, const char* suffix, const Build& build,
                           const tsr_device_info& device) noexcept;

// How many heads share keys.
inline int64_t group_of(const cpu::AttentionShape& shape) noexcept {
    return shape.heads / shape.kv_heads;
}

}  // namespace tessera::cuda_ops
