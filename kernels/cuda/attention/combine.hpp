// How the kernel that joins spans of attention divides a head (attention.cu).
#pragma once

namespace tessera::cuda_kernels {

inline constexpr int kCombineColumns = 32;  // elements of a head that a block joins at once

}  // namespace tessera::cuda_kernels
