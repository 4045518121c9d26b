#include "flash.hpp"

#include "kernels/flash_tiles.hpp"

#include <algorithm>

namespace tessera::cuda_ops {
namespace {

template <class Tile>
constexpr FlashKernel kernel_of(const char* name, bool wide) noexcept {
    return {name, Tile::kRows, Tile::kTokens, Tile::kThreads, Tile::kShared, Tile::kBlocks, wide};
}

// What a block of the card can have: as its driver says, at most what its compute capability has (CUDA C++ Programming
// Guide, technical specifications).
int64_t shared_bytes_of(const tsr_device_info& device) noexcept {
    const uint32_t capability = device.compute_capability;
    const int64_t known = capability == 800 ? 163 << 10 : capability >= 900 && capability < 1200 ? 227 << 10 : 99 << 10;
    const auto said = static_cast<int64_t>(device.shared_memory_block_bytes);
    return said > 0 ? std::min(said, known) : known;
}

}  // namespace

FlashKernels flash_kernels(const cpu::AttentionShape& shape, const Build& build,
                           const tsr_device_info& device) noexcept {
    using namespace cuda_kernels;
    if (!build.flash_mla) return {};
    const bool wide = build.flash_mla_wide && shared_bytes_of(device) >= MlaLargeWide::kShared &&
                      cuda::find_image(*build.flash_mla_wide, device.compute_capability);
    if (shape.form == cpu::AttentionForm::kPrefix && shape.dk == MlaSmall::kDk && shape.dv == MlaSmall::kDv) {
        if (wide) {
            return {kernel_of<MlaSmallWide>("flash_mla_small_wide", true),
                    kernel_of<MlaLargeWide>("flash_mla_large_wide", true)};
        }
        return {kernel_of<MlaSmall>("flash_mla_small", false), kernel_of<MlaLarge>("flash_mla_large", false)};
    }
    return {};
}

const cuda::Module& flash_module(const Build& build, const FlashKernel& kernel) noexcept {
    return kernel.wide ? *build.flash_mla_wide : *build.flash_mla;
}

}  // namespace tessera::cuda_ops
