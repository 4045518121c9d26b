// The projected variant: computes keys and values of a head from latent rows and its weights.
#pragma once

#include "../kit.hpp"
#include "byte_arithmetic.hpp"
#include "load.hpp"
#include "operands.hpp"

#include <tessera/cpu/hadamard.hpp>

namespace tessera::x86::attention {

template <class Isa, class Arithmetic>
struct Expand {
    static constexpr int kLanes = Isa::kLanes;
    static constexpr int kPanel = Arithmetic::kPanel;

    // The weights of a head, as queries over latent rows.
    static void projections(const Operands& o, Scratch<Arithmetic>& scratch, int head) noexcept {
        if constexpr (kTakesBytes) {
            if (o.has_byte_pages()) return load_weights<Bytes>(o, scratch, head, scratch.byte_projections);
        }
        load_weights<Arithmetic>(o, scratch, head, scratch.projections);
    }

    static void strip(const Operands& o, Scratch<Arithmetic>& scratch, const Slice& s, int32_t first,
                      int tokens) noexcept {
        if (kTakesBytes && o.has_byte_pages())
            project_bytes(o, scratch, s, first, tokens);
        else
            project(o, scratch, s, first, tokens);
        const char *keys[kStrip], *values[kStrip];
        for (int t = 0; t < tokens; ++t) {
            keys[t] = reinterpret_cast<const char*>(scratch.keys + t * scratch.key_stride);
            values[t] = reinterpret_cast<const char*>(scratch.values + t * scratch.value_stride);
        }
        Arithmetic::load_keys(scratch.strip, o.shape(), TSR_TYPE_F32, keys, 0, 0, tokens, 0);
        Arithmetic::load_values(scratch.strip, o.shape(), TSR_TYPE_F32, values, 0, tokens);
    }

  private:
    // Rows of byte pages are multiplied in bytes: codes of q8_0 need no more, and weights, mostly of 4 to 8 bits, lose
    // no more than q8_0 does.
    using Bytes = ByteArithmetic<Isa>;
    static constexpr bool kTakesBytes = kMultipliesBytes<Isa>;

    template <class Product>
    static void load_weights(const Operands& o, Scratch<Arithmetic>& scratch, int head,
                             typename Product::Queries* to) noexcept {
        static_assert(Product::kPanel == kPanel);
        const Problem& problem = o.problem();
        const HeadShape latent = problem.latent_shape();
        const auto load = [&](const View& weight, const PackedRows& packing, int rows, int panels) {
            for (int panel = 0; panel < panels; ++panel) {
                const float* lanes[kPanel] = {};
                for (int i = 0; i < kPanel && panel * kPanel + i < rows; ++i) {
                    float* row = scratch.weight_rows + int64_t{i} * latent.padded_key();
                    decode_elements(weight.tensor->type,
                                    canonical_row(o, scratch, weight, packing, panel * kPanel + i, head), 0,
                                    problem.latent, row);
                    if (problem.hadamard) hadamard(row, problem.latent);
                    lanes[i] = row;
                }
                Product::load_queries(*to++, latent, lanes, 2, 1.0f);
            }
        };
        load(o.wk, o.state().wk, problem.projected_key(), scratch.key_panels);
        load(o.wv, o.state().wv, o.shape().value, scratch.value_panels);
    }

    // scores(panel, to, stride): the products of each panel of weights with the latent rows of a strip.
    template <class Scores>
    static void multiply(const Scratch<Arithmetic>& scratch, Scores&& scores) noexcept {
        for (int i = 0; i < scratch.key_panels; ++i) scores(i, scratch.keys + i * kPanel, scratch.key_stride);
        for (int i = 0; i < scratch.value_panels; ++i)
            scores(scratch.key_panels + i, scratch.values + i * kPanel, scratch.value_stride);
    }

    // Keys and values of a head, to the scratch memory.
    static void project(const Operands& o, Scratch<Arithmetic>& scratch, const Slice& s, int32_t first,
                        int tokens) noexcept {
        const Problem& problem = o.problem();
        const HeadShape latent = problem.latent_shape();
        const tsr_type type = o.k.tensor->type;
        const char* rows[kStrip];
        if (o.has_int16_pages()) {
            Load<Isa, Arithmetic>::int16_keys(o, scratch.latents, latent, s, first, tokens);
        } else {
            o.find_rows(o.k, s, first, tokens, rows);
            Arithmetic::load_keys(scratch.latents, latent, type, rows, 0, 0, tokens, 0);
        }
        multiply(scratch, [&](int panel, float* to, int64_t stride) {
            Arithmetic::template scores<2>(scratch.projections[panel], scratch.latents, latent, 0, tokens, 0, to,
                                           stride, NoAsking());
        });
        float* rest = scratch.keys + problem.projected_key();
        for (int t = 0; t < tokens; ++t, rest += scratch.key_stride) {
            if (o.has_int16_pages())
                o.int16_pages.read(o.page_of_token(s, first + t), (first + t) % TSR_PAGE_TOKENS, problem.latent,
                                   o.k.dim(0), rest);
            else
                decode(type, rows[t], problem.latent, problem.unprojected, rest);
        }
    }

    static void project_bytes(const Operands& o, Scratch<Arithmetic>& scratch, const Slice& s, int32_t first,
                              int tokens) noexcept {
        if constexpr (kTakesBytes) {
            const Problem& problem = o.problem();
            const HeadShape latent = problem.latent_shape();
            Load<Isa, Bytes>::byte_pages(o, scratch.byte_latents, s, first, tokens);
            Bytes::rearrange(scratch.byte_latents, latent, tokens);
            multiply(scratch, [&](int panel, float* to, int64_t stride) {
                Bytes::template scores_of_rearranged<2>(scratch.byte_projections[panel], scratch.byte_latents, latent,
                                                        tokens, to, stride);
            });
            Bytes::decode(scratch.byte_latents, problem.latent, problem.unprojected, tokens,
                          scratch.keys + problem.projected_key(), scratch.key_stride);
        }
    }

    // Rows of a head are requested one after another, so a group is unpacked once.
    static const char* canonical_row(const Operands& o, Scratch<Arithmetic>& scratch, const View& weight,
                                     const PackedRows& packing, int row, int head) noexcept {
        if (!packing.unpack) return weight.row(row, head);
        const int within = row % packing.group_rows;
        if (within == 0) packing.unpack(o.problem().latent, 1, weight.row(row, head), scratch.group_rows);
        return scratch.group_rows + within * weight.tensor->strides[1];
    }

    static void decode(tsr_type type, const char* row, int64_t first, int64_t count, float* to) noexcept {
        int64_t i = 0;
        if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) {
            const auto* x = reinterpret_cast<const uint16_t*>(row) + first;
            for (; i + kLanes <= count; i += kLanes) {
                Isa::store(to + i, type == TSR_TYPE_F16 ? Isa::from_f16(x + i) : Isa::from_bf16(x + i));
            }
        }
        if (i < count) decode_elements(type, row, first + i, count - i, to + i);
    }
};

}  // namespace tessera::x86::attention
