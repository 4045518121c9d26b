#include "weight_kernels.hpp"

namespace tessera::x86 {

std::span<const WeightKernels* const> weight_kernels() noexcept {
    static constexpr const WeightKernels* kAll[] = {
#define TSR_ADDRESS(id, Name) &k##Name,
        TSR_FLOAT_TYPES(TSR_ADDRESS) TSR_BLOCK_TYPES(TSR_ADDRESS)
#undef TSR_ADDRESS
    };
    return kAll;
}

const WeightKernels* find_weight_kernels(tsr_type type) noexcept {
    for (const WeightKernels* kernels : weight_kernels()) {
        if (kernels->type == type) return kernels;
    }
    return nullptr;
}

}  // namespace tessera::x86
