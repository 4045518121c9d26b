// What all kernels hand to the device.
#pragma once

#include "kernels/arguments.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/kernel.h>

#include <algorithm>
#include <cstdint>

namespace tessera::cuda_ops {

static_assert(sizeof(cuda_kernels::RowRange) == sizeof(tsr_range));

// The largest extent of a grid in y and z; kernels go on from there in steps of the grid.
inline constexpr uint32_t kMaximumGrid = 65535;

// Element 0 of operand `index`, an address of the device.
inline char* operand_address(const tsr_node& node, const tsr_launch& launch, uint32_t index) noexcept {
    return static_cast<char*>(launch.data[index]) + sdk::operand(node, index).offset;
}

inline int32_t maximum_rows(const tsr_tensor& tensor) noexcept {
    return static_cast<int32_t>(tensor.dims[tensor.rank - 1]);
}

// The rows of the slowest dimension of `tensor`: which, for the kernel.
inline cuda_kernels::Rows rows_of(const tsr_tensor& tensor, const tsr_launch& launch) noexcept {
    if (tensor.range == TSR_RANGE_FIXED) return {nullptr, maximum_rows(tensor), 0};
    return {reinterpret_cast<const cuda_kernels::RowRange*>(launch.ranges + tensor.range), 0, 0};
}

// How many there are at most.
inline uint32_t row_bound(const tsr_tensor& tensor, const tsr_launch& launch) noexcept {
    const int32_t maximum = maximum_rows(tensor);
    if (tensor.range == TSR_RANGE_FIXED) return static_cast<uint32_t>(maximum);
    return static_cast<uint32_t>(std::clamp(launch.row_bounds[tensor.range], 0, maximum));
}

inline bool multiple(uint64_t value, uint64_t of) noexcept {
    return value % of == 0;
}

}  // namespace tessera::cuda_ops
