#include "flash.hpp"

#include "kernels/flash_tiles.hpp"

#include <algorithm>

namespace tessera::cuda_ops {
namespace {

template <class Tile>
constexpr FlashKernel kernel_of(const char* name, const cuda::Module* module) noexcept {
    return {name, Tile::kRows, Tile::kTokens, Tile::kThreads, Tile::kShared, Tile::kBlocks, module};
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
    const auto is = [&](int64_t dk, int64_t dv) {
        return shape.form == cpu::AttentionForm::kPlain && shape.dk == dk && shape.dv == dv;
    };
    if (is(192, 128)) {
        return {kernel_of<Heads192Small>("flash_192_128_small", build.flash_heads),
                kernel_of<Heads192Large>("flash_192_128_large", build.flash_heads)};
    }
    if (is(128, 128)) {
        return {kernel_of<Heads128Small>("flash_128_128_small", build.flash_heads),
                kernel_of<Heads128Large>("flash_128_128_large", build.flash_heads)};
    }
    if (is(64, 64)) {
        return {kernel_of<Heads64Small>("flash_64_64_small", build.flash_heads),
                kernel_of<Heads64Large>("flash_64_64_large", build.flash_heads)};
    }
    const bool wide = build.flash_mla_wide && shared_bytes_of(device) >= MlaLargeWide::kShared &&
                      cuda::find_image(*build.flash_mla_wide, device.compute_capability);
    if (shape.form == cpu::AttentionForm::kPrefix && shape.dk == MlaSmall::kDk && shape.dv == MlaSmall::kDv) {
        if (wide) {
            return {kernel_of<MlaSmallWide>("flash_mla_small_wide", build.flash_mla_wide),
                    kernel_of<MlaLargeWide>("flash_mla_large_wide", build.flash_mla_wide)};
        }
        return {kernel_of<MlaSmall>("flash_mla_small", build.flash_mla),
                kernel_of<MlaLarge>("flash_mla_large", build.flash_mla)};
    }
    return {};
}

}  // namespace tessera::cuda_ops
