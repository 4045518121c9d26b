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

// 0 x, with experts 1 ids and 2 their weights, then gate, up and down, and their biases?; output. Whether the operands
// fit, which kernels go on from.
inline bool check_ffn(Check& check, const tsr_node& node, Networks taken = Networks::kPlain) noexcept {
    const bool routed = is_routed(node);
    const uint32_t first = first_matrix(node), rank = routed ? 3 : 2;
    check.counts(first + 3, taken == Networks::kAll ? first + 6 : first + 3, 1);
    if (taken == Networks::kAll) {
        check_glu(check, node);
    } else {
        check.attributes({});
    }
    check.activation(0, "x", 2);
    if (routed) {
        check.integers(1, "ids", 2);
        check.activation(2, "the weights of experts", 2);
    }
    check.weight(first, "gate", rank);
    check.weight(first + 1, "up", rank);
    check.weight(first + 2, "down", rank);
    check.activation(check.out(), "the output", 2);
    if (!check) return false;
    const tsr_tensor& x = *node.inputs[0];
    const int64_t hidden = node.inputs[first]->dims[1], experts = node.inputs[first]->dims[2];
    check.dims(first, "gate", {x.dims[0]});
    check.dims(first + 1, "up", {x.dims[0], hidden, experts});
    check.dims(first + 2, "down", {hidden, node.outputs[0]->dims[0], experts});
    check.dims(check.out(), "the output", {node.outputs[0]->dims[0], x.dims[1]});
    check.same_range(0, check.out());
    constexpr const char* kBiases[] = {"the gate's bias", "the up's bias", "the down's bias"};
    for (uint32_t i = 0; i < 3 && check; ++i) {
        const uint32_t bias = first + 3 + i;
        if (!sdk::has_input(node, bias)) continue;
        check.activation(bias, kBiases[i], routed ? 2 : 1);
        check.dims(bias, kBiases[i], {node.inputs[first + i]->dims[1], routed ? experts : 1});
    }
    if (routed) {
        check.dim(1, "ids", 1, x.dims[1]);
        check.dims(2, "the weights of experts", {node.inputs[1]->dims[0], x.dims[1]});
        check.same_range(0, 1);
        check.same_range(0, 2);
    }
    return static_cast<bool>(check);
}

}  // namespace tessera::cpu
