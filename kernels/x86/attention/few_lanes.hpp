// Attention of up to four lanes over one strip, in f32 along the rows: a single token of a model whose heads have keys
// of their own, or nearly so. A panel would leave most of its lanes idle; this code is bound by reading the cache.
#pragma once

#include "../kit.hpp"
#include "shape.hpp"
#include "unrolled.hpp"

#include <tessera/cpu/formats.hpp>
#include <tessera/types.h>

#include <algorithm>
#include <cstring>

namespace tessera::x86::attention {

template <class Isa, class Arithmetic>
struct FewLanes {
    using Floats = typename Isa::Floats;
    static constexpr int kLanes = Isa::kLanes;
    static constexpr int kMaxLanes = kFewLanes;
    // Loads vectors of consecutive elements. `begin` is the offset from the start of every row.
    struct F32 {
        static constexpr int kMultiple = kLanes;
        static int64_t bytes(int64_t elements) noexcept { return elements * 4; }
        static Floats at(const char* row, int e) noexcept { return Isa::load(reinterpret_cast<const float*>(row) + e); }
    };
    struct F16 {
        static constexpr int kMultiple = kLanes;
        static int64_t bytes(int64_t elements) noexcept { return elements * 2; }
        static Floats at(const char* row, int e) noexcept {
            return Isa::from_f16(reinterpret_cast<const uint16_t*>(row) + e);
        }
    };
    struct Bf16 {
        static constexpr int kMultiple = kLanes;
        static int64_t bytes(int64_t elements) noexcept { return elements * 2; }
        static Floats at(const char* row, int e) noexcept {
            return Isa::from_bf16(reinterpret_cast<const uint16_t*>(row) + e);
        }
    };
    struct Q8 {
        static constexpr int kMultiple = 32;
        static int64_t bytes(int64_t elements) noexcept { return elements / 32 * 34; }
        static Floats at(const char* row, int e) noexcept {
            const char* block = row + e / 32 * 34;
            uint16_t d;
            std::memcpy(&d, block, 2);
            return Isa::multiply(Isa::splat(Isa::from_one_f16(d)),
                                 Isa::from_s8(reinterpret_cast<const int8_t*>(block + 2) + e % 32));
        }
    };

    // Whether parts of `elements` at multiples of it can be read from rows of `type`.
    static bool takes(tsr_type type, int elements) noexcept {
        bool yes = false;
        with_source(type,
                    [&]<class Source>() { yes = elements % Source::kMultiple == 0 && elements % (2 * kLanes) == 0; });
        return yes;
    }

    // scores[t * kLanes + lane] = queries[lane] (shape.key elements) times the key of token t, times scale; lanes past
    // `lanes` get zeros. The key begins at element `first` of rows[t]. before(t) is called before that row is read.
    template <class Before>
    static void scores(const float* const* queries, int lanes, float scale, tsr_type type, const char* const* rows,
                       int64_t first, int elements, int tokens, float* scores, Before&& before) noexcept {
        with_source(type, [&]<class Source>() {
            with_lanes(lanes, [&](auto count) {
                dot_rows<Source, count>(queries, scale, rows, first, elements, tokens, scores, before);
            });
        });
    }

    // As add_values of the arithmetics, with plain weights[t * kLanes + lane]; out is one vector
    // of lanes wide, in the order of Arithmetic::out_place. between() is called each kStep tokens, column_groups times
    // over.
    template <class Between>
    static void add_values(const float* weights, int lanes, tsr_type type, const char* const* rows, int64_t first,
                           int elements, int tokens, bool start, const float* correction, const float* share,
                           float* out, Between&& between) noexcept {
        with_source(type, [&]<class Source>() {
            with_lanes(lanes, [&](auto count) {
                sum_rows<Source, count>(weights, rows, first, elements, tokens, start, correction, share, out, between);
            });
        });
    }
    static constexpr int kStep = 4;
    static int column_groups(int lanes, int elements) noexcept {
        const int at_once = vectors_at_once(lanes) * kLanes;
        return elements / at_once + elements % at_once / (2 * kLanes);
    }

  private:
    // Of a row: sums and operands fill the registers, of which there are twice as many where they are wide.
    static constexpr int vectors_at_once(int lanes) noexcept {
        return lanes == 1 ? 8 : (lanes == 2 ? 4 : 2) * (kLanes == 16 ? 2 : 1);
    }

    template <class Body>
    static void with_source(tsr_type type, Body&& body) noexcept {
        switch (type) {
            case TSR_TYPE_F32:
                return body.template operator()<F32>();
            case TSR_TYPE_F16:
                return body.template operator()<F16>();
            case TSR_TYPE_BF16:
                return body.template operator()<Bf16>();
            case TSR_TYPE_Q8_0:
                return body.template operator()<Q8>();
            default:
                return;
        }
    }
    template <class Body>
    static void with_lanes(int lanes, Body&& body) noexcept {
        switch (lanes) {
            case 1:
                return body(std::integral_constant<int, 1>{});
            case 2:
                return body(std::integral_constant<int, 2>{});
            case 3:
                return body(std::integral_constant<int, 3>{});
            default:
                return body(std::integral_constant<int, 4>{});
        }
    }

    template <class Source, int L, class Before>
    static void dot_rows(const float* const* queries, float scale, const char* const* rows, int64_t first, int elements,
                         int tokens, float* scores, Before&& before) noexcept {
        const int64_t begin = Source::bytes(first);
        for (int t = 0; t < tokens; ++t) {
            before(t);
            const char* row = rows[t] + begin;
            Floats even[L], odd[L];
            unrolled<L>([&](auto l) { even[l] = odd[l] = Isa::zero(); });
            for (int e = 0; e < elements; e += 2 * kLanes) {
                const Floats a = Source::at(row, e), b = Source::at(row, e + kLanes);
                unrolled<L>([&](auto l) {
                    even[l] = Isa::fma(a, Isa::load(queries[l] + e), even[l]);
                    odd[l] = Isa::fma(b, Isa::load(queries[l] + e + kLanes), odd[l]);
                });
            }
            float* to = scores + t * kLanes;
            Isa::store(to, Isa::zero());
            unrolled<L>([&](auto l) { to[l] = scale * Isa::sum(Isa::add(even[l], odd[l])); });
        }
    }

    template <class Source, int L, class Between>
    static void sum_rows(const float* weights, const char* const* rows, int64_t first, int elements, int tokens,
                         bool start, const float* correction, const float* share, float* out,
                         Between&& between) noexcept {
        constexpr int kVectors = vectors_at_once(L);
        const int64_t begin = Source::bytes(first);
        int d = 0;
        for (; d + kVectors * kLanes <= elements; d += kVectors * kLanes) {
            sum_columns<Source, L, kVectors>(weights, rows, begin, d, tokens, start, correction, share, out, between);
        }
        for (; d < elements; d += 2 * kLanes) {
            sum_columns<Source, L, 2>(weights, rows, begin, d, tokens, start, correction, share, out, between);
        }
    }

    template <class Source, int L, int N, class Between>
    static void sum_columns(const float* weights, const char* const* rows, int64_t begin, int d, int tokens, bool start,
                            const float* correction, const float* share, float* out, Between&& between) noexcept {
        Floats sums[L][N];
        unrolled<L>([&](auto l) { unrolled<N>([&](auto n) { sums[l][n] = Isa::zero(); }); });
        for (int t = 0; t < tokens; ++t) {
            if (t % kStep == 0) between();
            const char* row = rows[t] + begin;
            Floats w[L];
            unrolled<L>([&](auto l) { w[l] = Isa::broadcast(weights + t * kLanes + l); });
            unrolled<N>([&](auto n) {
                const Floats x = Source::at(row, d + n * kLanes);
                unrolled<L>([&](auto l) { sums[l][n] = Isa::fma(x, w[l], sums[l][n]); });
            });
        }
        alignas(64) float columns[N * kLanes];
        for (int l = 0; l < L; ++l) {
            for (int n = 0; n < N; ++n) Isa::store(columns + n * kLanes, sums[l][n]);
            for (int i = 0; i < N * kLanes; ++i) {
                float& to = out[Arithmetic::out_place(d + i) * kLanes + l];
                to = start ? columns[i] : columns[i] * share[l] + to * correction[l];
            }
        }
    }
};

}  // namespace tessera::x86::attention
