// Checks of gated_ffn and moe_ffn; see checks/elementwise.hpp.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/cpu/glu.hpp>
#include <tessera/ops.h>

#include <cstdint>
#include <cstring>

namespace tessera::cpu {

// Whether the node is a moe_ffn, whose gate, up and down are one matrix an expert.
inline bool is_routed(const tsr_node& node) noexcept {
    return std::strcmp(node.op, TSR_OP_MOE_FFN) == 0;
}
// The input that is gate; up and down follow.
inline uint32_t first_matrix(const tsr_node& node) noexcept {
    return is_routed(node) ? 3 : 1;
}

// What a kernel computes: down(silu(gate) * up) alone, or all that ops.h says, with biases and other activations.
enum class Networks : uint8_t { kPlain, kAll };

// Whether operands and attributes are as ops.h asks and the kernel takes them; else the refusal is in the plan of
// `check`.
inline bool check_ffn(Check& check, const tsr_node& node, Networks taken = Networks::kPlain) noexcept {
    if (taken == Networks::kAll) return check_glu(check, node) && check.operands();
    return check.attributes({}) && check.operands(first_matrix(node) + 3);
}

}  // namespace tessera::cpu
