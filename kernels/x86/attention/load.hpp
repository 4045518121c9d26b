// From q to the lanes of a panel, and from cached rows to strips of keys and values.
#pragma once

#include "../kit.hpp"
#include "operands.hpp"

namespace tessera::x86::attention {

template <class Isa, class Arithmetic>
struct Load {
    static constexpr int kPanel = Arithmetic::kPanel;

    // All but its queries, which are rows[lane]; nullptr: the lane is not used.
    static void panel(const Operands& o, const Slice& s, int key, int64_t panel, Panel<Arithmetic>& to,
                      const float* (&rows)[kPanel]) noexcept {
        const int lanes = Lanes<Isa, Arithmetic>::count(s, panel);
        for (int i = 0; i < kPanel; ++i) {
            const int64_t lane = panel * kPanel + std::min(i, lanes - 1);
            const int32_t row = o.row_of(s, lane);
            rows[i] = i < lanes ? o.q.floats(o.head_of(key, lane), row) : nullptr;
            to.limits[i] = s.first_position + (row - s.begin);
        }
        to.lanes = lanes;
        to.vectors = Lanes<Isa, Arithmetic>::vectors(s, panel);
    }

    // Prefetches elements [first, first + elements) of `count` rows.
    static void prefetch(const View& cache, const char* const* rows, int count, int64_t first,
                         int64_t elements) noexcept {
        const FormatSize size = format_size(cache.tensor->type);
        const int64_t begin = size.prefix + first / size.elements * size.bytes;
        const int64_t end = size.prefix + (first + elements) / size.elements * size.bytes;
        for (int t = 0; t < count; ++t) {
            for (int64_t line = begin; line < end; line += 64) Isa::prefetch(rows[t] + line);
        }
    }
    // Parts of rows that belong to one head are not adjacent, so the hardware does not prefetch them in time.
    static void prefetch_part(const View& cache, const char* const* rows, int count, int64_t first,
                              int64_t elements) noexcept {
        if (elements != cache.dim(0)) prefetch(cache, rows, count, first, elements);
    }

    static void keys(const Operands& o, Scratch<Arithmetic>& scratch, const Slice& s, int key, int32_t first,
                     int tokens) noexcept {
        const HeadShape& shape = o.shape();
        if (o.has_int16_pages()) {
            int16_keys(o, scratch.strip, shape, s, first, tokens);
        } else {
            const char* rows[kStrip] = {};
            o.find_rows(o.k, s, first, tokens, rows);
            prefetch_part(o.k, rows, tokens, int64_t{key} * shape.key, shape.key);
            Arithmetic::load_keys(scratch.strip, shape, o.k.tensor->type, rows, int64_t{key} * shape.key, 0, tokens, 0);
        }
        if (shape.prefix) Arithmetic::values_of_keys(scratch.strip, shape, 0, tokens, 0);
    }

    // Keys (of `shape`: all elements of a cached row, or the first part) from int16 pages.
    static void int16_keys(const Operands& o, const typename Arithmetic::Strip& strip, const HeadShape& shape,
                           const Slice& s, int32_t first, int tokens) noexcept {
        if constexpr (Arithmetic::kInt16Pages) {
            const int16_t* rows[kStrip];
            for (int t = 0; t < tokens; ++t) rows[t] = o.int16_row(s, first + t);
            Arithmetic::take_keys(strip, shape, rows, 0, tokens);
            for (int t = 0; t < tokens; t += TSR_PAGE_TOKENS) {
                Arithmetic::take_scales(strip, shape, o.int16_pages, o.page_of_token(s, first + t), t,
                                        std::min<int>(TSR_PAGE_TOKENS, tokens - t));
            }
        }
    }

    // Keys and values from byte pages.
    static void byte_pages(const Operands& o, typename Arithmetic::Strip& strip, const Slice& s, int32_t first,
                           int tokens) noexcept {
        for (int t = 0; t < tokens; t += TSR_PAGE_TOKENS)
            Arithmetic::take_page(strip, o.byte_pages, o.page_of_token(s, first + t), t);
    }

    // Of the plain variant; else values are parts of what keys() loaded.
    static void values(const Operands& o, Scratch<Arithmetic>& scratch, const Slice& s, int key, int32_t first,
                       int tokens) noexcept {
        if (o.problem().variant != Variant::kPlain) return;
        const HeadShape& shape = o.shape();
        const char* rows[kStrip] = {};
        o.find_rows(o.v, s, first, tokens, rows);
        prefetch_part(o.v, rows, tokens, int64_t{key} * shape.value, shape.value);
        Arithmetic::load_values(scratch.strip, shape, o.v.tensor->type, rows, int64_t{key} * shape.value, tokens);
    }
};

}  // namespace tessera::x86::attention
