#include "weight_kernels.hpp"

namespace tessera::cpu_x86 {

std::span<const WeightKernels* const> weight_kernels() noexcept {
    static constexpr const WeightKernels* kAll[] = {
        &kQ4_0,    &kQ4_1,    &kQ5_0,   &kQ5_1,  &kQ6_0, &kQ8_0, &kMxfp4,  &kIq4Nl, &kQ2K,   &kQ3K,
        &kQ4K,     &kQ5K,     &kQ6K,    &kIq4Xs, &kIq1S, &kIq1M, &kIq2Xxs, &kIq2Xs, &kIq2S,  &kIq3Xxs,
        &kIq3S,    &kIq2K,    &kIq3K,   &kIq4K,  &kIq5K, &kIq6K, &kIq2Ks,  &kIq3Ks, &kIq4Ks, &kIq5Ks,
        &kIq1SRow, &kIq1MRow, &kQ8KF16, &kQ8Row, &kF32,  &kF16,  &kBf16};
    return kAll;
}

const WeightKernels* find_weight_kernels(tsr_type type) noexcept {
    for (const WeightKernels* kernels : weight_kernels()) {
        if (kernels->type == type) return kernels;
    }
    return nullptr;
}

}  // namespace tessera::cpu_x86
