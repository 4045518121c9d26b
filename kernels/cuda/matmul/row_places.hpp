// Whether rows of operands begin where kernels read them: at multiples of what their type's blocks are made of.
#pragma once

#include "../formats/wide_formats.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cpu/check.hpp>

#include <algorithm>

namespace tessera::cuda_ops {

// Bytes of which all blocks of a type, and so all its rows without gaps, begin at multiples: 16 at most; 1 of types
// without rows.
inline int64_t row_alignment(tsr_type type) noexcept {
    const formats::FormatSize size = formats::listed_size(type);
    const auto both = static_cast<int64_t>(size.bytes | size.prefix);
    return both == 0 ? 1 : std::min<int64_t>(both & -both, 16);
}

// Refuses in `plan` a node of which an operand has rows that begin elsewhere, or weights too far apart; returns whether
// it did.
inline bool refuse_places(const tsr_node& node, tsr_kernel_plan& plan) noexcept {
    for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
        const tsr_tensor& tensor = sdk::operand(node, i);
        if (tensor.type == TSR_TYPE_NONE) continue;
        const int64_t alignment = row_alignment(tensor.type);
        if (tensor.offset % alignment != 0) {
            sdk::refuse(plan, "%s: required %s that begins at byte %lld; supported: multiples of %lld; missing: others",
                        node.op, cpu::format_name(tensor.type), static_cast<long long>(tensor.offset),
                        static_cast<long long>(alignment));
            return true;
        }
        for (uint32_t d = 1; d < std::min<uint32_t>(tensor.rank, TSR_MAX_RANK); ++d) {
            const int64_t stride = tensor.strides[d];
            const bool far = d == 1 && tensor.role == TSR_ROLE_WEIGHT && cuda_kernels::has_wide_unit(tensor.type) &&
                             stride > int64_t{cuda_kernels::kMaximumRowStride};
            if (stride % alignment == 0 && !far) continue;
            sdk::refuse(plan, "%s: required rows of %s %lld bytes apart; supported: multiples of %lld%s; missing: that",
                        node.op, cpu::format_name(tensor.type), static_cast<long long>(stride),
                        static_cast<long long>(alignment), far ? " up to 128 MiB" : "");
            return true;
        }
    }
    return false;
}

}  // namespace tessera::cuda_ops
