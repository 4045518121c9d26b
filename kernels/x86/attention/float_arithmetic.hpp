// Attention in f32: for caches whose rows are more precise than 16-bit integers. The same interface as
// Int16Arithmetic.
#pragma once

#include "../kit.hpp"
#include "../rates.hpp"
#include "asking.hpp"
#include "float_operands.hpp"
#include "unrolled.hpp"

#include <tessera/cpu/exponential.hpp>
#include <tessera/cpu/rows.hpp>

#include <algorithm>

namespace tessera::x86::attention {

template <class Isa>
struct FloatArithmetic : FloatOperands<Isa::kLanes> {
    static constexpr const char* kName = "f32";
    static constexpr double AttentionRates::*kRate = &AttentionRates::floats;
    static constexpr bool kInt16Pages = false;
    static constexpr bool kBytePages = false;
    static constexpr bool kValueRows = false;  // no add_value_rows()
    using Operands = FloatOperands<Isa::kLanes>;
    using Operands::kLanes;
    using Operands::kPanel;
    using typename Operands::Queries;
    using typename Operands::Strip;
    using typename Operands::Weights;
    using Floats = typename Isa::Floats;

    static void load_row(tsr_type type, const char* row, int64_t first, int count, int padded, float* to) noexcept {
        decode_elements(type, row, first, count, to);
        std::fill(to + count, to + padded, 0.0f);
    }
    static void load_keys(const Strip& strip, const HeadShape& shape, tsr_type type, const char* const* rows,
                          int64_t first, int t, int count, int) noexcept {
        for (int i = 0; i < count; ++i) {
            load_row(type, rows[i], first, shape.key, shape.padded_key(),
                     strip.keys + int64_t{t + i} * shape.padded_key());
        }
    }
    static void values_of_keys(const Strip&, const HeadShape&, int, int, int) noexcept {}  // they are the keys
    static void load_values(const Strip& strip, const HeadShape& shape, tsr_type type, const char* const* rows,
                            int64_t first, int tokens) noexcept {
        for (int t = 0; t < tokens; ++t) {
            load_row(type, rows[t], first, shape.value, shape.padded_value(), strip.values + t * strip.value_stride);
        }
    }

    static void load_queries(const Queries& queries, const HeadShape& shape, const float* const* rows, int vectors,
                             float scale) noexcept {
        const int lanes = vectors * kLanes;
        const Floats factor = Isa::splat(scale);
        for (int e = 0; e < shape.padded_key(); e += kLanes) {
            for (int v = 0; v < vectors; ++v) {
                Floats r[kLanes];
                for (int i = 0; i < kLanes; ++i) {
                    const float* row = rows[v * kLanes + i];
                    r[i] = !row                      ? Isa::zero()
                           : e + kLanes <= shape.key ? Isa::load(row + e)
                                                     : Isa::load_first(row + e, std::max(0, shape.key - e));
                }
                Isa::transpose(r);
                for (int i = 0; i < kLanes; ++i) {
                    Isa::store(queries.numbers + int64_t{e + i} * lanes + v * kLanes, Isa::multiply(r[i], factor));
                }
            }
        }
    }

    template <int V>
    static constexpr int kTileRows = V == 1 ? Isa::kTileRows1 : Isa::kTileRows2;

    // Keys stay where they are: the value may be a part of them.
    template <int V, class Asks>
    static void scores(const Queries& queries, const Strip& strip, const HeadShape& shape, int t, int count, int,
                       float* scores, int64_t stride, Asks&& asks) noexcept {
        for (const int end = t + count; t < end; t += kTileRows<V>) {
            const Lines lines = asks.lines(shape.padded_key() / kStepsPerLine<V * kTileRows<V>>);
            key_tile<V, kTileRows<V>, std::remove_cvref_t<Asks>::kAsks>(
                queries.numbers, strip.keys + int64_t{t} * shape.padded_key(), shape.padded_key(), scores + t * stride,
                stride, lines);
        }
    }

    template <int V>
    static void softmax(const Weights& weights, const Strip&, int tokens, float* top, float* sum,
                        float* step) noexcept {
        for (int v = 0; v < V; ++v) {
            softmax_f32<Isa>(weights.scores + v * kLanes, V * kLanes, tokens, top + v * kLanes, sum + v * kLanes);
            Isa::store(step + v * kLanes, Isa::splat(1.0f));
        }
    }

    template <int V, class Asks>
    static void add_values(const Weights& weights, const Strip& strip, const HeadShape& shape, int tokens, bool first,
                           const float* /*step*/, const float* correction, const float* share, float* out,
                           Asks&& asks) noexcept {
        constexpr int kRows = V == 1 ? Isa::kTileRows1 : Isa::kTileRows2;
        constexpr int kRest = V == 1 ? Isa::kRestRows1 : Isa::kRestRows2;
        const int n = shape.padded_value();
        int d = 0;
        for (; d + kRows <= n; d += kRows) {
            add_value_tile<V, kRows>(weights, strip, d, tokens, first, correction, share, out, asks);
        }
        for (; d < n; d += kRest) {
            add_value_tile<V, kRest>(weights, strip, d, tokens, first, correction, share, out, asks);
        }
    }

    static int out_place(int d) noexcept { return d; }
    static constexpr int kOutRun = 4;

  private:
    template <int V, int R, bool kAsks>
    [[gnu::noinline, gnu::flatten]] static void key_tile(const float* queries, const float* keys, int64_t elements,
                                                         float* scores, int64_t stride, Lines lines) noexcept {
        // Three rows are addressed from one pointer, which saves registers.
        static_assert(R % 3 == 0);
        Floats sums[R][V];
        const float* rows[R / 3];
        unrolled<R>([&](auto i) { unrolled<V>([&](auto v) { sums[i][v] = Isa::zero(); }); });
        unrolled<R / 3>([&](auto i) { rows[i] = keys + 3 * i * elements; });
        take_steps<Isa, kAsks, R * V>(
            static_cast<int>(elements), lines, [&]() __attribute__((always_inline)) {
                Floats q[V];
                unrolled<V>([&](auto v) { q[v] = Isa::load(queries + v * kLanes); });
                unrolled<R>([&](auto i) { Isa::template accumulate<V>(sums[i], q, rows[i / 3] + i % 3 * elements); });
                unrolled<R / 3>([&](auto i) { ++rows[i]; });
                queries += V * kLanes;
            });
        unrolled<R>(
            [&](auto i) { unrolled<V>([&](auto v) { Isa::store(scores + i * stride + v * kLanes, sums[i][v]); }); });
    }

    template <int V, int R, class Asks>
    static void add_value_tile(const Weights& weights, const Strip& strip, int d, int tokens, bool first,
                               const float* correction, const float* share, float* out, Asks& asks) noexcept {
        const Lines lines = asks.lines(tokens / kStepsPerLine<R * V>);
        value_tile<V, R, Asks::kAsks>(weights, strip, d, tokens, first, correction, share, out, lines);
    }

    template <int V, int R, bool kAsks>
    [[gnu::noinline, gnu::flatten]] static void value_tile(const Weights& weights, const Strip& strip, int d,
                                                           int tokens, bool first, const float* correction,
                                                           const float* share, float* out, Lines lines) noexcept {
        Floats sums[R][V];
        unrolled<R>([&](auto i) { unrolled<V>([&](auto v) { sums[i][v] = Isa::zero(); }); });
        const float* values = strip.values + d;
        const float* w = weights.scores;
        take_steps<Isa, kAsks, R * V>(
            tokens, lines, [&]() __attribute__((always_inline)) {
                Floats lanes[V];
                unrolled<V>([&](auto v) { lanes[v] = Isa::load(w + v * kLanes); });
                unrolled<R>([&](auto i) { Isa::template accumulate<V>(sums[i], lanes, values + i); });
                values += strip.value_stride;
                w += V * kLanes;
            });
        out += int64_t{d} * V * kLanes;
        unrolled<V>([&](auto v) __attribute__((always_inline)) {
            const Floats c = Isa::load(correction + v * kLanes), e = Isa::load(share + v * kLanes);
            unrolled<R>([&](auto i) __attribute__((always_inline)) {
                float* to = out + (i * V + v) * kLanes;
                Isa::store(to, first ? sums[i][v] : Isa::fma(sums[i][v], e, Isa::multiply(Isa::load(to), c)));
            });
        });
    }
};

}  // namespace tessera::x86::attention
