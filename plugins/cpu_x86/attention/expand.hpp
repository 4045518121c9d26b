// The projected form: computes keys and values of a head from latent rows and its weights.
#pragma once

#include "../kit.hpp"
#include "load.hpp"
#include "operands.hpp"

#include <tessera/cpu/hadamard.hpp>

#include <cstring>

namespace tessera::cpu_x86::attention {

template <class Isa, class Arithmetic>
struct Expand {
    static constexpr int kLanes = Isa::kLanes;
    static constexpr int kPanel = Arithmetic::kPanel;

    // The weights of a head, as queries over latent rows.
    static void projections(const Operands& o, Scratch<Arithmetic>& scratch, int head) noexcept {
        const Problem& problem = o.problem();
        const HeadShape latent = problem.latent_shape();
        const auto load = [&](const View& weight, const PackedRows& packing, int rows, int panels,
                              typename Arithmetic::Queries* to) {
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
                Arithmetic::load_queries(to[panel], latent, lanes, 2, 1.0f);
            }
        };
        load(o.wk, o.state().wk, problem.projected_key(), scratch.key_panels, scratch.projections);
        load(o.wv, o.state().wv, o.shape().value, scratch.value_panels, scratch.projections + scratch.key_panels);
    }

    static void chunk(const Operands& o, Scratch<Arithmetic>& scratch, const Segment& s, int32_t first,
                      int tokens) noexcept {
        const Problem& problem = o.problem();
        const HeadShape latent = problem.latent_shape();
        const tsr_type type = o.k.tensor->type;
        const char* rows[kChunk];
        if (o.has_int16_pages()) {
            Load<Isa, Arithmetic>::int16_keys(o, scratch.latents, latent, s, first, tokens);
        } else {
            if (o.has_byte_pages())
                canonical_rows(o, scratch, s, first, tokens, rows);
            else
                o.find_rows(o.k, s, first, tokens, rows);
            Arithmetic::load_keys(scratch.latents, latent, type, rows, 0, 0, tokens, 0);
        }
        for (int i = 0; i < scratch.key_panels; ++i) {
            Arithmetic::template scores<2>(scratch.projections[i], scratch.latents, latent, 0, tokens, 0,
                                           scratch.keys + i * kPanel, scratch.key_stride, NoAsking());
        }
        for (int i = 0; i < scratch.value_panels; ++i) {
            Arithmetic::template scores<2>(scratch.projections[scratch.key_panels + i], scratch.latents, latent, 0,
                                           tokens, 0, scratch.values + i * kPanel, scratch.value_stride, NoAsking());
        }
        const char *keys[kChunk], *values[kChunk];
        for (int t = 0; t < tokens; ++t) {
            float* key = scratch.keys + t * scratch.key_stride;
            float* rest = key + problem.projected_key();
            if (o.has_int16_pages())
                o.int16_pages.read(o.page_of_token(s, first + t), (first + t) % TSR_PAGE_TOKENS, problem.latent,
                                   o.k.dim(0), rest);
            else
                decode(type, rows[t], problem.latent, problem.unprojected, rest);
            keys[t] = reinterpret_cast<const char*>(key);
            values[t] = reinterpret_cast<const char*>(scratch.values + t * scratch.value_stride);
        }
        Arithmetic::load_keys(scratch.chunk, o.shape(), TSR_TYPE_F32, keys, 0, 0, tokens, 0);
        Arithmetic::load_values(scratch.chunk, o.shape(), TSR_TYPE_F32, values, 0, tokens);
    }

  private:
    // Rows of byte pages, as canonical ones in the scratch memory.
    static void canonical_rows(const Operands& o, Scratch<Arithmetic>& scratch, const Segment& s, int32_t first,
                               int tokens, const char** rows) noexcept {
        constexpr int kTokens = BytePages::kTokens, kBlock = BytePages::kBlock;
        const BytePages& pages = o.byte_pages;
        const int64_t row_bytes = pages.row_bytes();
        for (int t = 0; t < tokens; ++t) rows[t] = scratch.cached_rows + t * row_bytes;
        // A chunk begins with a page, so with four tokens.
        for (int t = 0; t < tokens; t += kTokens) {
            const char* page = o.page_of_token(s, first + t);
            const int64_t token = (first + t) % TSR_PAGE_TOKENS;
            const int8_t* codes = pages.codes(page) + pages.first_code(token);
            char* to = scratch.cached_rows + t * row_bytes;
            for (int64_t block = 0; block < pages.elements / kBlock; ++block, to += BytePages::kBlockBytes) {
                // As integers of four tokens, which vectors take apart.
                uint32_t fours[kBlock];
                std::memcpy(fours, codes + block * kBlock * kTokens, sizeof fours);
                for (int i = 0; i < kTokens; ++i) {
                    char* const row = to + i * row_bytes;
                    std::memcpy(row, pages.scales(page, block) + token + i, sizeof(uint16_t));
                    const auto shift = static_cast<int>(8 * pages.first_code(i));
                    for (int e = 0; e < kBlock; ++e) row[sizeof(uint16_t) + e] = static_cast<char>(fours[e] >> shift);
                }
            }
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

}  // namespace tessera::cpu_x86::attention
