// Attention of few lanes a key head, in f32 along the rows: a single token of a model whose heads have keys of their
// own or share them in small groups. A panel would leave lanes idle, and rows would have to be converted for it; this
// code is bound by reading the cache, so it reads rows whole, in their order, for all key heads of a unit.
#pragma once

#include "../kit.hpp"
#include "shape.hpp"
#include "streams.hpp"
#include "unrolled.hpp"

#include <tessera/cpu/exponential.hpp>
#include <tessera/cpu/formats.hpp>
#include <tessera/types.h>

#include <algorithm>
#include <climits>
#include <cstring>

namespace tessera::x86::attention {

// Asks for what follows while a block of few lanes is computed: one line at a time, since many at once would fill the
// queue of outstanding reads, and the loads of what is computed would wait behind them.
template <class Isa>
class FewAsking {
  public:
    // value_calls: of values() in a block. values: nullptr where they are keys.
    FewAsking(Streams& streams, const CachedRows& keys, const CachedRows* values, int32_t first,
              int value_calls) noexcept
        : streams_(streams),
          keys_(keys),
          values_(values),
          first_(first),
          value_calls_(value_calls),
          ahead_(std::clamp<int64_t>(kBytesAhead / keys.bytes(), kFewBlock * 3 / 2, 4 * kFewBlock)) {}

    // Before keys of `count` tokens from t on are read.
    void keys(int t, int count) noexcept {
        const int64_t row = streams_.key_row(first_ + t);
        until_ = row + ahead_;
        // Where nothing was asked for yet.
        streams_.ask<Isa>(row + count, INT_MAX, keys_, values_);
        dry_ = false;
    }
    // Before values are read.
    void values() noexcept {
        until_ = streams_.value_row(first_) + int64_t{kFewBlock} * ++calls_ / value_calls_ + ahead_;
        dry_ = false;
    }
    void line() noexcept {
        if (lines_.count == 0 && !refill()) return;
        Isa::prefetch_far(lines_.at);
        lines_.at += 64;
        --lines_.count;
    }

  private:
    // As much as memory brings in the time that it takes to answer, several times over.
    static constexpr int64_t kBytesAhead = 48 << 10;

    bool refill() noexcept {
        if (!dry_) lines_ = streams_.lines(until_, INT_MAX, keys_, values_);
        dry_ = lines_.count == 0;
        return !dry_;
    }

    Streams& streams_;
    const CachedRows& keys_;
    const CachedRows* const values_;
    const int32_t first_;
    const int value_calls_;
    const int64_t ahead_;
    int64_t until_ = 0;
    Lines lines_{nullptr, 0};
    bool dry_ = false;
    int calls_ = 0;
};

template <class Isa>
struct FewLanes {
    using Floats = typename Isa::Floats;
    using Asking = FewAsking<Isa>;
    static constexpr int kLanes = Isa::kLanes;

    // Loads vectors of consecutive elements.
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

    // Keys or values of a block: of each row `heads` parts of `elements`, from element `first` on. Of each head there
    // are as many lanes as padded() says.
    struct Rows {
        tsr_type type;
        const char* const* rows;  // [tokens]
        int tokens;
        int64_t first;
        int heads, elements;
        int lanes;
    };
    // Lanes that are computed: code is made for some numbers alone.
    static constexpr int padded(int lanes) noexcept {
        return lanes <= kFewLanes ? lanes : lanes <= 6 ? 6 : lanes <= 8 ? 8 : lanes <= 12 ? 12 : 16;
    }

    // Of rows of `elements`, as scores() takes them: times scale, [elements / kLanes][lanes][kLanes].
    static void load_queries(const float* const* rows, int lanes, int elements, float scale, float* queries) noexcept {
        for (int e = 0; e < elements; e += kLanes) {
            for (int l = 0; l < lanes; ++l, queries += kLanes)
                Isa::store(queries, Isa::multiply(Isa::splat(scale), Isa::load(rows[l] + e)));
        }
    }

    // scores[head * few_scores(lanes) + token * few_width(lanes) + lane] = the query of the lane in queries[head] times
    // the key of the head.
    static void scores(const Rows& keys, const float* const* queries, float* scores, Asking& asking) noexcept {
        with_source(keys.type, [&]<class Source>() {
            with_lanes(keys.lanes, [&](auto lanes) { dot_rows<Source, lanes>(keys, queries, scores, asking); });
        });
    }

    // Scores of a head to weights. top[lane] and sum[lane], of the tokens before, become those of all so far, and
    // correction[lane] what the values so far are to be multiplied by.
    static void softmax(float* scores, int tokens, int lanes, float* top, float* sum, float* correction) noexcept {
        const int width = few_width(lanes), stride = std::max(width, kLanes), period = std::min(width, kLanes);
        const auto end = static_cast<int>(rounded_up(tokens * width, stride));
        std::fill(scores + tokens * width, scores + end, kHidden);
        for (int first = 0; first < lanes; first += kLanes) {
            const int count = std::min(period, lanes - first);
            softmax_of(scores + first, end - first, stride, period, count, top + first, sum + first,
                       correction + first);
        }
    }

    // What out[head] [lane][stride] holds, times correction[head * width + lane] (nothing, if `empty`), plus values
    // times weights, which lie as scores do.
    static void add_values(const Rows& values, const float* weights, bool empty, const float* correction,
                           float* const* out, int64_t stride, Asking& asking) noexcept {
        with_source(values.type, [&]<class Source>() {
            with_lanes(values.lanes, [&](auto lanes) {
                sum_rows<Source, lanes>(values, weights, empty, correction, out, stride, asking);
            });
        });
    }
    static int value_calls(int heads, int elements, int lanes) noexcept {
        int passes = 0;
        with_lanes(lanes, [&](auto count) {
            constexpr int kColumns = vectors_at_once(lanes_at_once(count)) * kLanes;
            passes = (elements / kColumns + elements % kColumns / (2 * kLanes)) * count / lanes_at_once(count);
        });
        return heads * passes;
    }

  private:
    static constexpr int kStep = 8;  // tokens whose keys are multiplied for one head before the next

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
        switch (padded(lanes)) {
            case 1:
                return body(std::integral_constant<int, 1>{});
            case 2:
                return body(std::integral_constant<int, 2>{});
            case 3:
                return body(std::integral_constant<int, 3>{});
            case 4:
                return body(std::integral_constant<int, 4>{});
            case 6:
                return body(std::integral_constant<int, 6>{});
            case 8:
                return body(std::integral_constant<int, 8>{});
            case 12:
                return body(std::integral_constant<int, 12>{});
            default:
                return body(std::integral_constant<int, 16>{});
        }
    }

    // A sum has one order, whatever the number of lanes: rows are computed alone and with others.
    template <class Source, int L>
    static void dot_rows(const Rows& keys, const float* const* queries, float* scores, Asking& asking) noexcept {
        constexpr int kWidth = few_width(L), kGroup = std::min(kWidth, kLanes);
        const int64_t begin = Source::bytes(keys.first), bytes = Source::bytes(keys.elements);
        for (int t = 0; t < keys.tokens; t += kStep) {
            const char* rows[kStep];
            for (int i = 0; i < kStep; ++i) rows[i] = keys.rows[std::min(t + i, keys.tokens - 1)] + begin;
            for (int head = 0; head < keys.heads; ++head) {
                asking.keys(t, kStep);
                float* const to = scores + head * few_scores(L) + t * kWidth;
                dot_step<Source, std::min(L, kGroup), L>(rows, queries[head], keys.elements, to, asking);
                if constexpr (L > kGroup)
                    dot_step<Source, L - kGroup, L>(rows, queries[head] + kGroup * kLanes, keys.elements, to + kGroup,
                                                    asking);
                for (const char*& row : rows) row += bytes;
            }
        }
    }

    // The scores with kStep rows of L lanes, those of a vector, of kAll.
    template <class Source, int L, int kAll>
    [[gnu::always_inline]] static void dot_step(const char* const* rows, const float* queries, int elements, float* to,
                                                Asking& asking) noexcept {
        constexpr int kWidth = few_width(kAll), kTokens = std::max(1, kLanes / kWidth);  // of a vector
        constexpr int kVectors = std::max(1, (4 * L <= kSums ? 4 : 2 * L <= kSums ? 2 : 1) / kTokens);
        constexpr int kTile = kVectors * kTokens;
        static_assert(kStep % kTile == 0);
        for (int i = 0; i < kStep; i += kTile, rows += kTile, to += kTile * kWidth) {
            Floats sums[kVectors][kLanes];
            unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
                unrolled<kLanes>([&](auto n) __attribute__((always_inline)) { sums[v][n] = Isa::zero(); });
            });
            const float* query = queries;
            for (int e = 0; e < elements; e += kLanes, query += kAll * kLanes) {
                unrolled<std::max(1, kTile / 2)>([&](auto) __attribute__((always_inline)) { asking.line(); });
                Floats keys[kTile];
                unrolled<kTile>([&](auto t) __attribute__((always_inline)) { keys[t] = Source::at(rows[t], e); });
                unrolled<L>([&](auto l) __attribute__((always_inline)) {
                    const Floats q = Isa::load(query + l * kLanes);
                    unrolled<kTile>([&](auto t) __attribute__((always_inline)) {
                        Floats& sum = sums[t / kTokens][t % kTokens * std::min(kWidth, kLanes) + l];
                        sum = Isa::fma(keys[t], q, sum);
                    });
                });
            }
            unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
                Isa::store(to + v * kTokens * kWidth, Isa::sums_of(sums[v]));
            });
        }
    }

    // Every vector of scores that lies `stride` floats from the one before, up to `end`; lanes repeat in it after
    // `period`.
    static void softmax_of(float* scores, int end, int stride, int period, int lanes, float* top, float* sum,
                           float* correction) noexcept {
        alignas(64) float some[kLanes];
        const auto repeat = [&] {
            for (int i = period; i < kLanes; ++i) some[i] = some[i - period];
        };
        std::fill_n(some, kLanes, kHidden);
        std::copy_n(top, lanes, some);
        repeat();
        const Floats before = Isa::load(some);
        Floats highest = before;
        for (int i = 0; i < end; i += stride) highest = Isa::maximum(Isa::load(scores + i), highest);
        Isa::store(some, highest);
        for (int i = period; i < kLanes; ++i) some[i % period] = std::max(some[i % period], some[i]);
        repeat();
        highest = Isa::load(some);
        std::copy_n(some, lanes, top);
        // A score that is no number makes the sum none either, by way of `none`.
        Floats total = Isa::zero(), none = Isa::zero();
        for (int i = 0; i < end; i += stride) {
            const Floats score = Isa::load(scores + i);
            const Floats e = exp_not_positive<Isa>(Isa::subtract(score, highest));
            total = Isa::add(total, e);
            none = Isa::fma(score, Isa::zero(), none);
            Isa::store(scores + i, e);
        }
        Isa::store(some, exp_not_positive<Isa>(Isa::subtract(before, highest)));
        std::copy_n(some, lanes, correction);
        Isa::store(some, Isa::add(total, none));
        for (int i = period; i < kLanes; ++i) some[i % period] += some[i];
        for (int i = 0; i < lanes; ++i) sum[i] = sum[i] * correction[i] + some[i];
    }

    // Of a row, beside operands: sums fill the registers, of which there are twice as many where they are wide.
    static constexpr int kSums = kLanes == 16 ? 24 : 12;
    static constexpr int lanes_at_once(int lanes) noexcept { return lanes <= kSums ? lanes : lanes / 2; }
    static constexpr int vectors_at_once(int lanes) noexcept {
        int vectors = 1;
        while (vectors < 8 && 2 * vectors * lanes <= kSums) vectors *= 2;
        return vectors;
    }

    template <class Source, int L>
    static void sum_rows(const Rows& values, const float* weights, bool empty, const float* correction,
                         float* const* out, int64_t stride, Asking& asking) noexcept {
        constexpr int kAtOnce = lanes_at_once(L), kVectors = vectors_at_once(kAtOnce), kWidth = few_width(L);
        const int64_t begin = Source::bytes(values.first), bytes = Source::bytes(values.elements);
        for (int head = 0; head < values.heads; ++head) {
            for (int lane = 0; lane < L; lane += kAtOnce) {
                const Columns block{values.rows,
                                    begin + head * bytes,
                                    values.tokens,
                                    weights + head * few_scores(L) + lane,
                                    correction + head * kWidth + lane,
                                    out[head] + lane * stride,
                                    stride,
                                    empty};
                int d = 0;
                for (; d + kVectors * kLanes <= values.elements; d += kVectors * kLanes)
                    sum_columns<Source, kAtOnce, kWidth, kVectors>(block, d, asking);
                if constexpr (kVectors > 2) {
                    for (; d < values.elements; d += 2 * kLanes)
                        sum_columns<Source, kAtOnce, kWidth, 2>(block, d, asking);
                }
            }
        }
    }

    struct Columns {
        const char* const* rows;
        int64_t begin;
        int tokens;
        const float* weights;
        const float* correction;
        float* out;
        int64_t stride;
        bool empty;
    };

    template <class Source, int L, int kWidth, int N>
    static void sum_columns(const Columns& of, int d, Asking& asking) noexcept {
        Floats sums[L][N];
        const auto out = [&](int l, int n) { return of.out + l * of.stride + d + n * kLanes; };
        unrolled<L>([&](auto l) __attribute__((always_inline)) {
            const Floats c = Isa::broadcast(of.correction + l);
            unrolled<N>([&](auto n) __attribute__((always_inline)) {
                sums[l][n] = of.empty ? Isa::zero() : Isa::multiply(Isa::load(out(l, n)), c);
            });
        });
        asking.values();
        const float* weights = of.weights;
        for (int t = 0; t < of.tokens; ++t, weights += kWidth) {
            unrolled<std::max(1, N / 2)>([&](auto) __attribute__((always_inline)) { asking.line(); });
            const char* const row = of.rows[t] + of.begin;
            Floats x[N];
            unrolled<N>([&](auto n) __attribute__((always_inline)) { x[n] = Source::at(row, d + n * kLanes); });
            unrolled<L>([&](auto l) __attribute__((always_inline)) {
                const Floats w = Isa::broadcast(weights + l);
                unrolled<N>([&](auto n) __attribute__((always_inline)) { sums[l][n] = Isa::fma(x[n], w, sums[l][n]); });
            });
        }
        unrolled<L>([&](auto l) __attribute__((always_inline)) {
            unrolled<N>([&](auto n) __attribute__((always_inline)) { Isa::store(out(l, n), sums[l][n]); });
        });
    }
};

}  // namespace tessera::x86::attention
