// The parameters of a node of flash_attention or tiled_attention, checked before any run.
#pragma once

#include "../kit.hpp"
#include "shape.hpp"

#include <tessera/cpu/checks/attention.hpp>

#include <algorithm>

namespace tessera::x86::attention {

using Variant = AttentionVariant;

inline constexpr int64_t kMaxElements = 4096;  // of a key, a value and a latent row

struct Problem {
    Variant variant = Variant::kPlain;
    int heads = 0;
    int key_units = 0;             // units of work over different keys: heads that have keys of their own
    int group = 0;                 // query heads of one key head, and lanes of one row in a unit of work
    int latent = 0;                // projected: elements of the cached row that are multiplied with the weights
    int unprojected = 0;           // projected: elements after them that are part of every head's key as they are
    int64_t weight_row_bytes = 0;  // projected: of the larger canonical row of the weights
    HeadShape shape;               // of a head, as it is attended
    float scale = 1;
    int64_t max_rows = 0;
    int64_t max_sequences = 0;
    int64_t max_tokens = 0;
    int64_t window = 0;  // tokens that a row sees; 0: all before it
    bool sinks = false;
    bool hadamard = false;    // projected: hadamard() is applied to rows of the weights
    bool exact = false;       // f32 arithmetic
    bool byte_pages = false;  // the cache is in the layout of byte_pages.hpp; set where that is known

    int projected_key() const noexcept { return shape.key - unprojected; }
    // projected: what is multiplied with the weights, and the whole cached row.
    HeadShape latent_shape() const noexcept { return shape_of(latent); }
    HeadShape row_shape() const noexcept { return shape_of(latent + unprojected); }
    // The first token that a row at this position sees, and the most that one sees.
    int64_t first_seen(int64_t position) const noexcept {
        return window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
    }
    int64_t most_seen() const noexcept { return window == 0 ? max_tokens : window; }
    // Lanes of a key head up to which FewLanes may compute them.
    int most_few_lanes() const noexcept {
        return variant == Variant::kPlain ? kFewLanesOfHeads : variant == Variant::kPrefix ? kFewLanes : 0;
    }
    // Multiplications of one row with one token, expansion aside.
    double macs_a_token() const noexcept { return static_cast<double>(heads) * (shape.key + shape.value); }

  private:
    static HeadShape shape_of(int elements) noexcept {
        HeadShape s;
        s.key = s.first_part = elements;
        return s;
    }
};

// Checks and reads a node; false after a refusal.
inline bool read_problem(const tsr_node& node, tsr_kernel_plan& plan, Problem& problem) noexcept {
    Check check(node, plan);
    if (!check_attention(check, node)) return false;
    const AttentionShape shape(node);
    if (shape.dk > kMaxElements || shape.dv > kMaxElements || shape.latent > kMaxElements || shape.heads > 65536) {
        check.no(
            "%s: required %lld heads of %lld/%lld over rows of %lld; supported: 65536 heads, %lld elements; "
            "missing: that size",
            node.op, static_cast<long long>(shape.heads), static_cast<long long>(shape.dk),
            static_cast<long long>(shape.dv), static_cast<long long>(shape.latent),
            static_cast<long long>(kMaxElements));
        return false;
    }
    Problem p;
    p.variant = shape.variant;
    p.heads = static_cast<int>(shape.heads);
    p.key_units = static_cast<int>(shape.kv_heads);
    p.group = static_cast<int>(shape.heads / shape.kv_heads);
    p.shape.key = p.shape.first_part = static_cast<int>(shape.dk);
    p.shape.value = static_cast<int>(shape.dv);
    p.scale = static_cast<float>(shape.scale);
    p.max_rows = shape.rows;
    p.max_sequences = check.at(kPageTable).dims[1];
    p.max_tokens =
        std::min(sdk::int_attribute(node, "max_tokens", INT64_MAX), check.at(kPageTable).dims[0] * TSR_PAGE_TOKENS);
    if (shape.window < p.max_tokens) p.window = shape.window;
    p.sinks = sdk::has_input(node, kSinks);
    const tsr_tensor& k = check.at(kK);
    p.exact = k.type == TSR_TYPE_F32;
    switch (shape.variant) {
        case Variant::kPlain:
            p.exact = p.exact || check.at(kV).type == TSR_TYPE_F32;
            break;
        case Variant::kPrefix:
            p.shape.prefix = true;
            // With a scale of its own the value loses no precision to a large rest of the key.
            if (shape.dv < shape.dk && shape.dv % 32 == 0) p.shape.first_part = static_cast<int>(shape.dv);
            break;
        case Variant::kProjected:
            p.hadamard = shape.hadamard;
            p.latent = static_cast<int>(shape.latent);
            p.unprojected = static_cast<int>(shape.unprojected);
            for (const uint32_t weight : {kWk, kWv}) {
                const size_t bytes = format_bytes(check.at(weight).type, static_cast<size_t>(shape.latent));
                p.weight_row_bytes = std::max(p.weight_row_bytes, static_cast<int64_t>(bytes));
            }
            break;
    }
    problem = p;
    return true;
}

}  // namespace tessera::x86::attention
