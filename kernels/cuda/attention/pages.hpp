// Operands of the cache, for kernels.
#pragma once

#include "../launches.hpp"
#include "cache.hpp"

namespace tessera::cuda_ops {

static_assert(cuda_kernels::kPageTokens == TSR_PAGE_TOKENS);

// `table`: operand `index` of the node; `pages`: of the cache.
inline cuda_kernels::Pages pages_of(const tsr_node& node, const tsr_launch& launch, uint32_t index,
                                    const tsr_tensor& cache) noexcept {
    const tsr_tensor& table = sdk::operand(node, index);
    cuda_kernels::Pages pages{};
    pages.table = operand_address(node, launch, index);
    pages.by_position = table.strides[0];
    pages.by_sequence = table.strides[1];
    pages.positions = static_cast<int32_t>(table.dims[0]);
    pages.sequences = static_cast<int32_t>(table.dims[1]);
    pages.pages = static_cast<int32_t>(cache.dims[2]);
    return pages;
}

// Whether counts of tokens and pages are those of 32-bit integers, as kernels take them.
inline bool pages_fit(const tsr_tensor& table, const tsr_tensor& cache) noexcept {
    constexpr int64_t kMaximum = INT32_MAX / TSR_PAGE_TOKENS - 1;
    return table.dims[0] <= kMaximum && table.dims[1] <= INT32_MAX && cache.dims[2] <= INT32_MAX;
}

}  // namespace tessera::cuda_ops
