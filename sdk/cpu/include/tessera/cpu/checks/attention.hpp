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

enum class AttentionForm { kPlain, kPrefix, kProjected };

struct AttentionShape {
    AttentionForm form = AttentionForm::kPlain;
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
            form = AttentionForm::kProjected;
            kv_heads = heads;
            latent = node.inputs[kWk]->dims[0];
            unprojected = k.dims[0] - latent;
        } else if (!sdk::has_input(node, kV)) {
            form = AttentionForm::kPrefix;
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
    check.counts(6, 9, 1);
    check.attributes(kAttentionAttributes);
    check.activation(kQ, "q", 3);
    check.cache(kK, "the k cache");
    check.integers(kPositions, "positions", 1);
    check.integers(kSequences, "sequences", 1);
    check.integers(kPageTable, "page_table", 2);
    check.activation(check.out(), "the output", 3);
    if (!check) return false;
    const bool projected = sdk::has_input(node, kWk) || sdk::has_input(node, kWv);
    const bool plain = sdk::has_input(node, kV);
    if (projected && plain)
        check.no("%s: required v with wk or wv; supported: v alone, or wk and wv without v", node.op);
    if (plain) check.cache(kV, "the v cache");
    if (projected) {
        check.weight(kWk, "wk", 3);
        check.weight(kWv, "wv", 3);
    }
    if (!check) return false;
    const AttentionShape shape(node);
    const int64_t k_elements = check.at(kK).dims[0];
    check.dims(check.out(), "the output", {sdk::int_attribute(node, "head_dim_v", shape.dv), shape.heads, shape.rows});
    check.dim(kPositions, "positions", 0, shape.rows);
    check.dim(kSequences, "sequences", 0, shape.rows);
    check.same_range(kQ, kPositions);
    check.same_range(kQ, kSequences);
    check.same_range(kQ, check.out());
    if (sdk::int_attribute(node, "window", 0) < 0)
        check.no("%s: required a negative window; supported: 0 or more; missing: that", node.op);
    if (sdk::has_input(node, kSinks)) {
        check.activation(kSinks, "sinks", 1);
        check.dim(kSinks, "sinks", 0, shape.heads);
    }
    if (!sdk::find_attribute(node, "scale"))
        check.no("%s: required without scale; supported: with; missing: it", node.op);
    if (shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
        check.no("%s: required %lld heads over %lld of keys; supported: a multiple; missing: that", node.op,
                 static_cast<long long>(shape.heads), static_cast<long long>(shape.kv_heads));
    }
    switch (shape.form) {
        case AttentionForm::kPlain:
            check.dim(kK, "the k cache", 0, shape.kv_heads * shape.dk);
            check.dim(kV, "the v cache", 0, shape.kv_heads * shape.dv);
            if (check) check.dim(kV, "the v cache", 2, check.at(kK).dims[2]);
            break;
        case AttentionForm::kPrefix:
            check.dim(kK, "the k cache", 0, shape.dk);
            if (shape.kv_heads != 1 || shape.dv > shape.dk) {
                check.no(
                    "%s: required values of %lld as a part of keys of %lld, kv_heads %lld; supported: at most the key, "
                    "kv_heads 1; missing: that",
                    node.op, static_cast<long long>(shape.dv), static_cast<long long>(shape.dk),
                    static_cast<long long>(shape.kv_heads));
            }
            break;
        case AttentionForm::kProjected:
            if (shape.unprojected < 0 || shape.unprojected > shape.dk) {
                check.no(
                    "%s: required cache rows of %lld with projections of %lld and keys of %lld; supported: c + p; "
                    "missing: matching shapes",
                    node.op, static_cast<long long>(k_elements), static_cast<long long>(shape.latent),
                    static_cast<long long>(shape.dk));
            }
            check.dims(kWk, "wk", {shape.latent, shape.dk - shape.unprojected, shape.heads});
            check.dims(kWv, "wv", {shape.latent, shape.dv, shape.heads});
            break;
    }
    return static_cast<bool>(check);
}

}  // namespace tessera::cpu
