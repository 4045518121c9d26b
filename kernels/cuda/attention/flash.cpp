#include "flash.hpp"

#include "flash_tiles.hpp"
#include "flash_tiles_f32.hpp"

#include <algorithm>
#include <string_view>

namespace tessera::cuda_ops {
namespace {

template <class Tile>
constexpr FlashKernel kernel_of(const char* name, const cuda::Module* module, bool decoded = false) noexcept {
    FlashKernel kernel = {name, Tile::kRows, Tile::kTokens, Tile::kThreads, Tile::kShared, Tile::kBlocks, module};
    if constexpr (requires { typename Tile::Decoded; }) {
        if (decoded) kernel.shared_bytes = Tile::Decoded::kShared;
    }
    return kernel;
}

// What a block of the card can have: as its driver says, at most what its compute capability has (CUDA C++ Programming
// Guide, technical specifications).
int64_t shared_bytes_of(const tsr_device_info& device) noexcept {
    const uint32_t capability = device.compute_capability;
    const int64_t known = capability == 800 ? 163 << 10 : capability >= 900 && capability < 1200 ? 227 << 10 : 99 << 10;
    const auto said = static_cast<int64_t>(device.shared_memory_block_bytes);
    return said > 0 ? std::min(said, known) : known;
}

bool is(const cpu::AttentionShape& shape, cpu::AttentionVariant variant, int64_t dk, int64_t dv) noexcept {
    return shape.variant == variant && shape.dk == dk && shape.dv == dv;
}

constexpr const char *kF32 = "_f32", *kF16 = "_f16";

FlashKernels kernels_in_f32(const cpu::AttentionShape& shape, std::string_view suffix, const Build& build) noexcept {
    using namespace cuda_kernels;
    using cpu::AttentionVariant;
    if (is(shape, AttentionVariant::kPlain, 192, 128))
        return {{}, kernel_of<Heads192F32>("flash_192_128", build.flash_heads_f32)};
    if (is(shape, AttentionVariant::kPlain, 128, 128))
        return {{}, kernel_of<Heads128F32>("flash_128_128", build.flash_heads_f32)};
    if (is(shape, AttentionVariant::kPlain, 64, 64))
        return {{}, kernel_of<Heads64F32>("flash_64_64", build.flash_heads_f32)};
    if (is(shape, AttentionVariant::kPrefix, 576, 512)) {
        const FlashKernel small = kernel_of<MlaSmallF32>("flash_mla_small", build.flash_mla_f32);
        return {small, suffix == kF32 ? small : kernel_of<MlaLargeF32>("flash_mla_large", build.flash_mla_f32)};
    }
    return {};
}

FlashKernels kernels_on_tensor_cores(const cpu::AttentionShape& shape, bool decoded, const Build& build,
                                     const tsr_device_info& device) noexcept {
    using namespace cuda_kernels;
    if (is(shape, cpu::AttentionVariant::kPlain, 192, 128)) {
        return {kernel_of<Heads192Small>("flash_192_128_small", build.flash_heads, decoded),
                kernel_of<Heads192Large>("flash_192_128_large", build.flash_heads, decoded)};
    }
    if (is(shape, cpu::AttentionVariant::kPlain, 128, 128)) {
        return {kernel_of<Heads128Small>("flash_128_128_small", build.flash_heads, decoded),
                kernel_of<Heads128Large>("flash_128_128_large", build.flash_heads, decoded)};
    }
    if (is(shape, cpu::AttentionVariant::kPlain, 64, 64)) {
        return {kernel_of<Heads64Small>("flash_64_64_small", build.flash_heads, decoded),
                kernel_of<Heads64Large>("flash_64_64_large", build.flash_heads, decoded)};
    }
    const bool wide = build.flash_mla_wide && shared_bytes_of(device) >= MlaLargeWide::Decoded::kShared &&
                      cuda::find_image(*build.flash_mla_wide, device.compute_capability);
    if (is(shape, cpu::AttentionVariant::kPrefix, 576, 512)) {
        if (wide) {
            // Multiprocessors with 228 KB of shared memory have room for two blocks that do not decode.
            return {kernel_of<MlaSmallWide>("flash_mla_small_wide", build.flash_mla_wide, decoded),
                    device.compute_capability >= 900 && !decoded
                        ? kernel_of<MlaLargeTwice>("flash_mla_large_twice", build.flash_mla_wide)
                        : kernel_of<MlaLargeWide>("flash_mla_large_wide", build.flash_mla_wide, decoded)};
        }
        return {kernel_of<MlaSmall>("flash_mla_small", build.flash_mla, decoded),
                kernel_of<MlaLarge>("flash_mla_large", build.flash_mla, decoded)};
    }
    return {};
}

}  // namespace

const char* flash_suffix(const Build& build, tsr_type keys, tsr_type values, bool direct) noexcept {
    if (build.flash_mla)
        return !direct ? kFlashDecoded : keys == TSR_TYPE_F16 ? kF16 : keys == TSR_TYPE_BF16 ? "_bf16" : kFlashDecoded;
    const auto in_f32 = [](tsr_type type) {
        return type == TSR_TYPE_F32 ? kF32 : type == TSR_TYPE_F16 || type == TSR_TYPE_BF16 ? "_halves" : "_blocks";
    };
    return std::string_view(in_f32(keys)) == in_f32(values) ? in_f32(keys) : nullptr;
}

const char* flash_suffix_of_written(const Build& build) noexcept {
    return build.flash_mla ? kF16 : kF32;
}

FlashKernels flash_kernels(const cpu::AttentionShape& shape, const char* suffix, const Build& build,
                           const tsr_device_info& device) noexcept {
    if (!suffix || (!build.flash_mla && !build.flash_mla_f32)) return {};
    FlashKernels kernels =
        build.flash_mla ? kernels_on_tensor_cores(shape, std::string_view(suffix) == kFlashDecoded, build, device)
                        : kernels_in_f32(shape, suffix, build);
    kernels.tensor_cores = build.flash_mla && kernels.large.name;
    kernels.suffix = suffix;
    return kernels;
}

}  // namespace tessera::cuda_ops
