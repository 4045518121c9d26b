// The check of flash_attention and tiled_attention, and the shape of such a node.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <string_view>

namespace tessera::cpu {

// Operands of an attention node.
enum : uint32_t {
    kQ = 0,
    kK = 1,
    kV = 2,
    kPositions = 3,
    kSequences = 4,
    kPageTable = 5,
    kWk = 6,
    kWv = 7,
    kSinks = 8
};

inline constexpr std::string_view kAttentionAttributes[] = {"scale",      "kv_heads", "head_dim_v", "scratch_bytes",
                                                            "max_tokens", "hadamard", "window"};

enum class AttentionVariant { kPlain, kPrefix, kProjected };

struct AttentionShape {
    AttentionVariant variant = AttentionVariant::kPlain;
    int64_t heads = 0;     // H
    int64_t kv_heads = 0;  // heads that have keys of their own; H if projected
    int64_t dk = 0;
    int64_t dv = 0;
    int64_t latent = 0;       // projected: c, what the projections read
    int64_t unprojected = 0;  // projected: p, the last elements of a key
    int64_t rows = 0;         // maximum
    double scale = 0;
    int64_t window = 0;     // tokens that a row sees; 0: all before it
    bool hadamard = false;  // projected: hadamard() is applied to rows of the weights

    explicit AttentionShape(const tsr_node& node) noexcept {
        const tsr_tensor& q = *node.inputs[kQ];
        const tsr_tensor& k = *node.inputs[kK];
        dk = q.dims[0], heads = q.dims[1], rows = q.dims[2];
        dv = node.outputs[0]->dims[0];
        scale = sdk::float_attribute(node, "scale", 0);
        hadamard = sdk::int_attribute(node, "hadamard", 0) != 0;
        window = std::max<int64_t>(0, sdk::int_attribute(node, "window", 0));
        kv_heads = sdk::int_attribute(node, "kv_heads", 1);
        if (sdk::has_input(node, kWk)) {
            variant = AttentionVariant::kProjected;
            kv_heads = heads;
            latent = node.inputs[kWk]->dims[0];
            unprojected = k.dims[0] - latent;
        } else if (!sdk::has_input(node, kV)) {
            variant = AttentionVariant::kPrefix;
        }
    }

    // The first token that a row at this position sees.
    int64_t first_seen(int64_t position) const noexcept {
        return window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
    }
};

// The maximum of scratch memory, in bytes, that the node may use; 0: no limit.
inline uint64_t scratch_cap(const tsr_node& node) noexcept {
    return static_cast<uint64_t>(std::max<int64_t>(0, sdk::int_attribute(node, "scratch_bytes", 0)));
}

// Whether operands and attributes are as ops.h asks; else the refusal is in the plan of `check`.
inline bool check_attention(Check& check, const tsr_node& node) noexcept {
    check.attributes(kAttentionAttributes);
    check.operands();
    if (!sdk::find_attribute(node, "scale"))
        check.no("%s: required without scale; supported: with; missing: it", node.op);
    return static_cast<bool>(check);
}

}  // namespace tessera::cpu
