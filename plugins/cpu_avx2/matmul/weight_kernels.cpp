#include "weight_kernels.hpp"

namespace tessera::cpu_avx2 {

const WeightKernels* find_weight_kernels(tsr_type type) noexcept {
    static constexpr const WeightKernels* kAll[] = {&kQ4_0, &kQ4_1, &kQ5_0, &kQ5_1,  &kQ8_0, &kIq4Nl, &kQ2K, &kQ3K,
                                                    &kQ4K,  &kQ5K,  &kQ6K,  &kIq4Xs, &kF32,  &kF16,   &kBf16};
    for (const WeightKernels* kernels : kAll) {
        if (kernels->type == type) return kernels;
    }
    return nullptr;
}

}  // namespace tessera::cpu_avx2
