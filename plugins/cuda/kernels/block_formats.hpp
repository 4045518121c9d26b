// What the host and kernels know alike of the block formats. Freestanding.
#pragma once

#include <tessera/types.h>

namespace tessera::cuda_kernels {

// Whether elements are scale * code + offset rather than scale * code (piece.hpp).
constexpr bool has_offsets(tsr_type type) {
    return type == TSR_TYPE_Q4_1 || type == TSR_TYPE_Q5_1 || type == TSR_TYPE_Q2_K || type == TSR_TYPE_Q4_K ||
           type == TSR_TYPE_Q5_K;
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
