// Which rows a launch works on, as the device knows them.
#pragma once

#include "arguments.hpp"

#include <tessera/cuda/simt.hpp>

namespace tessera::cuda_kernels {

SIMT_DEVICE RowRange actual_rows(const Rows& rows) {
    return rows.bounded ? *rows.bounded : RowRange{0, rows.fixed};
}

template <class T>
SIMT_DEVICE const T* at(const void* base, int64_t bytes) {
    return reinterpret_cast<const T*>(static_cast<const char*>(base) + bytes);
}
template <class T>
SIMT_DEVICE T* at(void* base, int64_t bytes) {
    return reinterpret_cast<T*>(static_cast<char*>(base) + bytes);
}

SIMT_DEVICE float infinity() {
    return simt::bits_as<float>(0x7F800000u);
}

// The sum over a warp, in every lane; the order does not depend on anything.
SIMT_DEVICE float warp_sum(float value) {
    return simt::reduce_sum(value);
}

// The maximum over a warp of what is not NaN, in every lane.
SIMT_DEVICE float warp_maximum(float value) {
    return simt::reduce_maximum(value);
}

}  // namespace tessera::cuda_kernels
