// What the host and kernels know alike of the block formats. Freestanding.
#pragma once

#include <tessera/types.h>

namespace tessera::cuda_kernels {

// Whether elements are scale * code + offset rather than scale * code (piece.hpp).
constexpr bool has_offsets(tsr_type type) {
    return type == TSR_TYPE_Q4_1 || type == TSR_TYPE_Q5_1 || type == TSR_TYPE_Q2_K || type == TSR_TYPE_Q4_K ||
           type == TSR_TYPE_Q5_K;
}

}  // namespace tessera::cuda_kernels
