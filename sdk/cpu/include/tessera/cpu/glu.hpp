// The gated linear units of ops.h: of the op "glu", and of gated_ffn and moe_ffn.
#pragma once

#include <tessera/cpu/check.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace tessera::cpu {

enum class Activation : int32_t { kSilu, kGelu, kSwigluOai };

inline constexpr std::array<std::string_view, 3> kActivations = {"silu", "gelu", "swiglu_oai"};  // by Activation
inline constexpr std::array<std::string_view, 3> kGluAttributes = {"activation", "limit", "alpha"};

struct Glu {
    Activation activation = Activation::kSilu;
    float limit = 0;  // 0: none
    float alpha = 0;

    // Of a node that check_glu has accepted; without attributes silu(gate) * up.
    explicit Glu(const tsr_node& node) noexcept
        : limit(static_cast<float>(sdk::float_attribute(node, "limit", 0))),
          alpha(static_cast<float>(sdk::float_attribute(node, "alpha", 1.702))) {
        const auto* const found = std::ranges::find(kActivations, sdk::string_attribute(node, "activation", "silu"));
        if (found != kActivations.end()) activation = static_cast<Activation>(found - kActivations.begin());
    }

    // The op silu_mul.
    bool is_silu_mul() const noexcept { return activation == Activation::kSilu && limit == 0; }
};

// The attributes of a node that has those of a glu alone.
inline bool check_glu(Check& check, const tsr_node& node) noexcept {
    if (!check.attributes(kGluAttributes)) return false;
    const std::string_view activation = sdk::string_attribute(node, "activation", "silu");
    const double limit = sdk::float_attribute(node, "limit", 0);
    if (std::ranges::find(kActivations, activation) == kActivations.end())
        return check.no("%s: required activation %.*s; supported: silu, gelu, swiglu_oai; missing: that one", node.op,
                        static_cast<int>(std::min<size_t>(activation.size(), 40)), activation.data());
    if (!(limit >= 0) || !std::isfinite(limit) || !std::isfinite(sdk::float_attribute(node, "alpha", 1.702)))
        return check.no("%s: required a limit or alpha that is no such number; supported: finite ones; missing: it",
                        node.op);
    if (activation == "gelu" && limit != 0)
        return check.no("%s: required gelu with a limit; supported: without; missing: it", node.op);
    if (activation == "swiglu_oai" && limit == 0)
        return check.no("%s: required swiglu_oai without a limit; supported: with; missing: it", node.op);
    return true;
}

}  // namespace tessera::cpu
