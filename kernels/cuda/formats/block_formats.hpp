// What the host and kernels know alike of the block formats. Freestanding.
#pragma once

#include <tessera/types.h>

namespace tessera::cuda_kernels {

// Whether elements are scale * code + offset rather than scale * code (piece.hpp).
constexpr bool has_offsets(tsr_type type) {
    return type == TSR_TYPE_Q4_1 || type == TSR_TYPE_Q5_1 || type == TSR_TYPE_Q2_K || type == TSR_TYPE_Q4_K ||
           type == TSR_TYPE_Q5_K;
}

// Elements of a block; 1 of other types.
constexpr int block_elements(tsr_type type) {
    switch (type) {
#define TESSERA_CASE(id, number, name, elements, bytes, prefix) \
    case TSR_TYPE_##id:                                         \
        return elements;
        TSR_TYPES(TESSERA_CASE)
#undef TESSERA_CASE
        default:
            return 1;
    }
}

// Whether a scale serves 16 elements rather than 32 or more.
constexpr bool scales_by_sixteen(tsr_type type) {
    switch (type) {
        case TSR_TYPE_Q2_K:
        case TSR_TYPE_Q3_K:
        case TSR_TYPE_Q6_K:
        case TSR_TYPE_IQ2_K:
        case TSR_TYPE_IQ3_K:
        case TSR_TYPE_IQ4_K:
        case TSR_TYPE_IQ5_K:
        case TSR_TYPE_IQ6_K:
        case TSR_TYPE_IQ1_M:
        case TSR_TYPE_IQ1_M_ROW:
        case TSR_TYPE_IQ2_XS:
        case TSR_TYPE_IQ2_S:
            return true;
        default:
            return false;
    }
}
// Whether products of many rows by tensor cores multiply with it what they decode, so that blocks alone have a scale.
constexpr bool multiplies_with_scales(tsr_type type) {
    return type == TSR_TYPE_Q2_K || type == TSR_TYPE_Q3_K || type == TSR_TYPE_IQ1_M;
}
// Whether tensor cores can multiply with codes times integer scales as two int8.
constexpr bool has_split_products(tsr_type type) {
    return scales_by_sixteen(type) && !multiplies_with_scales(type) && block_elements(type) == 256;
}

// Whether products of few rows read activations as e0 e16 e1 e17 .. within 32 elements, as nibbles lie in a weight
// (where codes are int8; see NibbleLevels).
constexpr bool reads_interleaved(tsr_type type) {
    return type == TSR_TYPE_IQ4_NL || type == TSR_TYPE_IQ4_XS || type == TSR_TYPE_IQ4_KS || type == TSR_TYPE_MXFP4;
}

// Whether products of few rows read sums of activations.
constexpr bool reads_sums(tsr_type type) {
    return has_offsets(type) || type == TSR_TYPE_Q4_0 || type == TSR_TYPE_Q6_K;
}

}  // namespace tessera::cuda_kernels
