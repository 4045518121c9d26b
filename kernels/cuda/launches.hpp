// What all kernels hand to the device.
#pragma once

#include "arguments.hpp"

#include <tessera/cpp/abi.hpp>
#include <tessera/cpp/node.hpp>
#include <tessera/extensions/launch_pages.h>
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

// How many pages the sequences that have them hold at most; INT64_MAX if the launch does not say. `sequences`: that
// there can be.
inline int64_t page_bound(const tsr_tensor& rows, const tsr_launch& launch, int64_t sequences) noexcept {
    const tsr_chain* const extension =
        sdk::find_extension(launch.next, TSR_LAUNCH_PAGES, static_cast<uint32_t>(sizeof(tsr_launch_pages)));
    if (extension && rows.range != TSR_RANGE_FIXED)
        return reinterpret_cast<const tsr_launch_pages*>(extension)->bounds[rows.range];
    if (launch.token_bound <= 0) return INT64_MAX;  // not known
    const int64_t pages = (launch.token_bound + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS;
    return std::min<int64_t>(row_bound(rows, launch), sequences) * pages;
}

// The same for tensors of rank 1, which are one row.
inline cuda_kernels::Rows rows_of_rank(const tsr_tensor& tensor, const tsr_launch& launch) noexcept {
    return tensor.rank == 1 ? cuda_kernels::Rows{nullptr, 1, 0} : rows_of(tensor, launch);
}
inline uint32_t bound_of_rank(const tsr_tensor& tensor, const tsr_launch& launch) noexcept {
    return tensor.rank == 1 ? 1 : row_bound(tensor, launch);
}

// Rows of one index of the slowest dimension.
inline int64_t inner_rows(const tsr_tensor& tensor) noexcept {
    return (tensor.rank > 2 ? tensor.dims[1] : 1) * (tensor.rank > 3 ? tensor.dims[2] : 1);
}

// Their extents: of the two inner dimensions.
inline void set_inner(const tsr_tensor& tensor, int32_t (&inner)[2]) noexcept {
    inner[0] = tensor.rank > 2 ? static_cast<int32_t>(tensor.dims[1]) : 1;
    inner[1] = tensor.rank > 3 ? static_cast<int32_t>(tensor.dims[2]) : 1;
}

// Strides of rank 1 to 4 as those of two inner dimensions and the slowest one.
inline void set_strides(const tsr_tensor& tensor, int64_t (&strides)[3]) noexcept {
    strides[0] = tensor.rank > 2 ? tensor.strides[1] : 0;
    strides[1] = tensor.rank > 3 ? tensor.strides[2] : 0;
    strides[2] = tensor.rank > 1 ? tensor.strides[tensor.rank - 1] : 0;
}

inline bool multiple(uint64_t value, uint64_t of) noexcept {
    return value % of == 0;
}

}  // namespace tessera::cuda_ops
