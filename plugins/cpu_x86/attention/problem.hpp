// What a node of flash_attention or tiled_attention asks for, checked and measured out before any run.
#pragma once

#include "shape.hpp"

#include <tessera/cpu/checks/attention.hpp>

#include <algorithm>

namespace tessera::cpu::attention {

enum class Form { kPlain, kPrefix, kProjected };

// Operands: 0 q, 1 k, 2 v?, 3 positions, 4 sequences, 5 page table, 6 wk?, 7 wv?; 8 output (all inputs present or not).
struct Problem {
    Form form = Form::kPlain;
    int heads = 0;
    int kv_heads = 0;
    int group = 0;                 // query heads of one key head, and lanes of one row in a unit of work
    int latent = 0;                // projected: elements of the cached row that are multiplied with the weights
    int unprojected = 0;           // projected: elements after them that are part of every head's key as they are
    int64_t weight_row_bytes = 0;  // projected: of the larger canonical row of the weights
    HeadShape shape;               // of a head, as it is attended
    float scale = 1;
    int64_t max_rows = 0;
    int64_t max_sequences = 0;
    int64_t max_tokens = 0;
    bool hadamard = false;  // projected: rows of the weights want hadamard()
    bool exact = false;     // f32 arithmetic

    int projected_key() const noexcept { return shape.key - unprojected; }
    // Units of work over different keys: heads with keys of their own.
    int key_units() const noexcept { return form == Form::kProjected ? heads : kv_heads; }
    HeadShape latent_shape() const noexcept {
        HeadShape s;
        s.key = s.first_part = latent;
        return s;
    }
    // Multiplications of one row with one token, expansion aside.
    double macs_a_token() const noexcept { return static_cast<double>(heads) * (shape.key + shape.value); }
};

// Reads a node; false after a refusal.
inline bool read_problem(const tsr_node& node, tsr_kernel_plan& plan, Problem& problem) noexcept {
    Check check(node, plan);
    check.counts(6, 8, 1);
    check.attributes(kAttentionAttributes);
    check.activation(0, "q", 3);
    check.cache(1, "the key cache");
    check.integers(3, "positions", 1);
    check.integers(4, "sequences", 1);
    check.integers(5, "the page table", 2);
    check.activation(check.out(), "the output", 3);
    if (!check) return false;
    const bool with_v = sdk::has_input(node, 2);
    const bool projected = sdk::has_input(node, 6) || sdk::has_input(node, 7);
    const int64_t dk = check.at(0).dims[0], heads = check.at(0).dims[1], rows = check.at(0).dims[2];
    const int64_t dv = check.at(check.out()).dims[0];
    check.dims(check.out(), "the output", {dv, heads, rows});
    check.dim(3, "positions", 0, rows);
    check.dim(4, "sequences", 0, rows);
    check.same_range(0, 3);
    check.same_range(0, 4);
    check.same_range(0, check.out());
    if (dk > 4096 || dv > 4096 || heads > 65536)
        check.no("attention: required heads of %lld/%lld; supported: up to 4096", (long long)dk, (long long)dv);
    const int64_t wanted_dv = sdk::int_attribute(node, "head_dim_v", dv);
    if (wanted_dv != dv)
        check.no("attention: head_dim_v is %lld, the output has %lld", (long long)wanted_dv, (long long)dv);
    if (!check) return false;

    Problem p;
    p.heads = static_cast<int>(heads);
    p.shape.key = p.shape.first_part = static_cast<int>(dk);
    p.shape.value = static_cast<int>(dv);
    p.scale = static_cast<float>(sdk::float_attribute(node, "scale", 1));
    p.max_rows = rows;
    p.max_sequences = check.at(5).dims[1];
    p.max_tokens = std::min(sdk::int_attribute(node, "max_tokens", INT64_MAX), check.at(5).dims[0] * TSR_PAGE_TOKENS);
    p.exact = check.at(1).type == TSR_TYPE_F32;
    if (with_v) {
        if (projected) check.no("attention: required a value cache and weights; supported: one of them");
        check.cache(2, "the value cache");
        const int64_t kv = sdk::int_attribute(node, "kv_heads", 1);
        if (kv < 1 || heads % kv != 0)
            check.no("attention: %lld heads over %lld key heads; supported: whole groups", (long long)heads,
                     (long long)kv);
        if (!check) return false;
        check.dim(1, "the key cache", 0, kv * dk);
        check.dim(2, "the value cache", 0, kv * dv);
        if (!check) return false;
        p.form = Form::kPlain;
        p.kv_heads = static_cast<int>(kv);
        p.group = static_cast<int>(heads / kv);
        p.exact = p.exact || check.at(2).type == TSR_TYPE_F32;
    } else if (projected) {
        check.weight(6, "wk", 3);
        check.weight(7, "wv", 3);
        if (!check) return false;
        const int64_t c = check.at(6).dims[0], expanded = check.at(6).dims[1];
        const int64_t unprojected = dk - expanded;
        if (unprojected < 0 || c < 1 || c > 4096)
            check.no("attention: wk makes %lld of a key of %lld", (long long)expanded, (long long)dk);
        check.dims(6, "wk", {c, expanded, heads});
        check.dims(7, "wv", {c, dv, heads});
        check.dim(1, "the key cache", 0, c + unprojected);
        if (!check) return false;
        p.form = Form::kProjected;
        p.hadamard = sdk::int_attribute(node, "hadamard", 0) != 0;
        p.kv_heads = 1;
        p.group = 1;
        p.latent = static_cast<int>(c);
        p.weight_row_bytes = static_cast<int64_t>(std::max(format_bytes(check.at(6).type, static_cast<size_t>(c)),
                                                           format_bytes(check.at(7).type, static_cast<size_t>(c))));
        p.unprojected = static_cast<int>(unprojected);
    } else {
        check.dim(1, "the key cache", 0, dk);
        if (dv > dk)
            check.no("attention: values of %lld cannot be a prefix of keys of %lld", (long long)dv, (long long)dk);
        if (!check) return false;
        p.form = Form::kPrefix;
        p.kv_heads = 1;
        p.group = p.heads;
        p.shape.prefix = true;
        // With parts of its own the value's scale does not suffer from a strong rest of the key.
        if (dv < dk && dv % 32 == 0) p.shape.first_part = static_cast<int>(dv);
    }
    problem = p;
    return true;
}

}  // namespace tessera::cpu::attention
