// Attention in 16-bit integers: keys, values and weights become int16, products are summed in 32 bits.
//
// Each part of a cached row has a scale by which its largest magnitude is 127 * 64 = 8128. A query (and the weights of
// a strip) is scaled so that the sum of its magnitudes stays below 2^31 / 8128: no sum can overflow, whatever the cache
// holds. That leaves 13 bits to a key or value and 12 to 16 bits to a query or weight.
#pragma once

#include "../kit.hpp"
#include "../layouts/int16_pages.hpp"
#include "../rates.hpp"
#include "asking.hpp"
#include "int16_operands.hpp"
#include "unrolled.hpp"

#include <tessera/cpu/exponential.hpp>
#include <tessera/cpu/formats.hpp>
#include <tessera/cpu/rows.hpp>
#include <tessera/formats/codes.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tessera::x86::attention {

template <class Isa>
struct Int16Arithmetic : Int16Operands<Isa::kLanes> {
    using Operands = Int16Operands<Isa::kLanes>;
    using Operands::kLanes;
    using Operands::kPanel;
    using Operands::value_stride;
    using typename Operands::Queries;
    using typename Operands::Strip;
    using typename Operands::ValueRows;
    using typename Operands::Weights;
    using Floats = typename Isa::Floats;
    using Ints = typename Isa::Ints;
    static constexpr const char* kName = "int16";
    static constexpr double AttentionRates::*kRate = &AttentionRates::int16;
    static constexpr bool kInt16Pages = true;  // takes them
    static constexpr bool kBytePages = false;
    // Whether add_value_rows() is the faster way: with 16 registers pairs would be made four times.
    static constexpr bool kValueRows = Isa::kTileRows2 >= 8;
    static constexpr float kLargestKey = Int16Pages::kLargest;
    static constexpr float kLargestSum = 262000;  // times 8128, and half a unit for each of 4096 terms: below 2^31
    static constexpr float kLargestInt16 = 32000;

    // ---- loading ----

    // Keys of tokens t .. t + count of a strip: elements first .. first + shape.key of each of rows[0 .. count), to the
    // rows of `keys` from `slot` on.
    static void load_keys(const Strip& strip, const HeadShape& shape, tsr_type type, const char* const* rows,
                          int64_t first, int t, int count, int slot) noexcept {
        int16_t* keys = strip.keys + int64_t{slot} * shape.padded_key();
        for (int part = 0; part < shape.parts(); ++part) {
            const int begin = shape.part_begin(part);
            const int elements = (part + 1 < shape.parts() ? shape.first_part : shape.key) - begin;
            with_source(type, first + begin, elements, shape.part_end(part) - begin, [&](const auto& source) {
                load_rows(
                    source, rows, count, strip.key_scales[part] + t,
                    [&](int i) { return keys + int64_t{i} * shape.padded_key() + begin; }, [](int) {});
            });
        }
    }
    // The same from rows in int16; take_scales() takes their scales.
    static void take_keys(const Strip& strip, const HeadShape& shape, const int16_t* const* rows, int t,
                          int count) noexcept {
        int16_t* keys = strip.keys + int64_t{t} * shape.padded_key();
        for (int i = 0; i < count; ++i) std::copy_n(rows[i], shape.key, keys + int64_t{i} * shape.padded_key());
    }
    // Values of tokens t .. t + count of a strip (t even) that are a prefix of rows in int16, `stride` elements apart.
    // An odd count ends the strip.
    static void values_of_rows(const Strip& strip, const HeadShape& shape, const int16_t* rows, int64_t stride, int t,
                               int count) noexcept {
        for (int i = 0; i < count; i += 2) {
            const int16_t* row = rows + i * stride;
            pair_values(strip, shape, t + i, row, i + 1 < count ? row + stride : nullptr);
        }
    }
    // The same of keys of the strip, from row `slot` on.
    static void values_of_keys(const Strip& strip, const HeadShape& shape, int t, int count, int slot) noexcept {
        const int64_t stride = shape.padded_key();
        values_of_rows(strip, shape, strip.keys + slot * stride, stride, t, count);
    }
    // Scales of the first `count` rows of a page.
    static void take_scales(const Strip& strip, const HeadShape& shape, const Int16Pages& pages, const char* page,
                            int t, int count) noexcept {
        for (int part = 0; part < shape.parts(); ++part)
            std::copy_n(pages.scales(page, part), count, strip.key_scales[part] + t);
    }

    // Values of all `tokens` of a strip, where they are not a prefix of the keys.
    static void load_values(const Strip& strip, const HeadShape& shape, tsr_type type, const char* const* rows,
                            int64_t first, int tokens) noexcept {
        int16_t* even = strip.value_rows;
        int16_t* odd = even + shape.padded_value();
        with_source(type, first, shape.value, shape.padded_value(), [&](const auto& source) {
            load_rows(
                source, rows, tokens, strip.value_scales, [&](int t) { return t % 2 == 0 ? even : odd; },
                [&](int t) {
                    if (t % 2 == 1)
                        pair_values(strip, shape, t - 1, even, odd);
                    else if (t + 1 == tokens)
                        pair_values(strip, shape, t, even, nullptr);
                });
        });
    }

    // Rows of up to kPanel lanes (nullptr: a lane that is not used), in `vectors` vectors of lanes, times `scale`. A
    // number that is not finite makes the scale of its part NaN.
    static void load_queries(const Queries& queries, const HeadShape& shape, const float* const* rows, int vectors,
                             float scale) noexcept {
        const int lanes = vectors * kLanes;
        alignas(64) static constexpr float kZeros[kLanes] = {};
        for (int part = 0; part < shape.parts(); ++part) {
            const int begin = shape.part_begin(part), end = shape.part_end(part);
            alignas(64) float factors[kPanel];
            for (int lane = 0; lane < lanes; ++lane) {
                Floats sum = Isa::zero(), top = Isa::zero();
                if (rows[lane]) {
                    for (int e = begin; e < end; e += kLanes) {
                        const Floats x = Isa::magnitude(load_padded(rows[lane], e, shape.key));
                        sum = Isa::add(sum, x);
                        top = Isa::maximum(top, x);
                    }
                }
                const float total = Isa::sum(sum), largest = Isa::largest(top);
                factors[lane] = std::min(inverse(total, kLargestSum), inverse(largest, kLargestInt16));
                queries.scales[part][lane] = (factors[lane] > 0 ? scale / factors[lane] : 0.0f) + total * 0.0f;
            }
            for (int e = begin; e < end; e += kLanes) {
                const int place = Isa::place_of(e);
                for (int v = 0; v < vectors; ++v) {
                    Floats r[kLanes];
                    for (int i = 0; i < kLanes; ++i) {
                        const float* row = rows[v * kLanes + i];
                        r[i] = row ? load_padded(row, e, shape.key) : Isa::load(kZeros);
                    }
                    Isa::transpose(r);
                    const Floats f = Isa::load(factors + v * kLanes);
                    for (int i = 0; i < kLanes; i += 2) {
                        int16_t* to = queries.values + (int64_t{(place + i) / 2} * lanes + v * kLanes) * 2;
                        Isa::store_ints(to, Isa::pair(Isa::multiply(r[i], f), Isa::multiply(r[i + 1], f)));
                    }
                }
            }
        }
    }

    // ---- arithmetic ----

    // Tokens of one register tile of V vectors of lanes; what is left of a strip is computed by a tile of a multiple of
    // kRestRows.
    template <int V>
    static constexpr int kTileRows = V == 1 ? Isa::kTileRows1 : Isa::kTileRows2;
    template <int V>
    static constexpr int kRestRows = V == 1 ? Isa::kRestRows1 : Isa::kRestRows2;

    // scores[t * stride + lane] = query of the lane times key of token t, for `count` tokens from t on (and some past
    // them), whose keys are in the rows from `slot` on.
    template <int V, class Asks>
    static void scores(const Queries& queries, const Strip& strip, const HeadShape& shape, int t, int count, int slot,
                       float* scores, int64_t stride, Asks&& asks) noexcept {
        for (const int end = t + count; t < end; t += kTileRows<V>, slot += kTileRows<V>) {
            for (int part = 0; part < shape.parts(); ++part) {
                KeyTile tile = key_tile_of<V>(queries, strip, shape, part, t);
                tile.keys = strip.keys + int64_t{slot} * shape.padded_key() + shape.part_begin(part);
                run_key_tile<V>(tile, end - t, part, scores + t * stride, stride, asks);
            }
        }
    }

    // The same for the first `count` rows of a page in int16, whose scales strip.key_scales has from t on; no row past
    // the page is read.
    template <int V, class Asks>
    static void scores_of_page(const Queries& queries, const Strip& strip, const HeadShape& shape, const int16_t* rows,
                               int t, int count, float* scores, int64_t stride, Asks&& asks) noexcept {
        static_assert(TSR_PAGE_TOKENS % kRestRows<V> == 0);
        for (int i = 0; i < count; i += kTileRows<V>) {
            for (int part = 0; part < shape.parts(); ++part) {
                KeyTile tile = key_tile_of<V>(queries, strip, shape, part, t + i);
                tile.keys = rows + int64_t{i} * shape.padded_key() + shape.part_begin(part);
                run_key_tile<V>(tile, count - i, part, scores + (t + i) * stride, stride, asks);
            }
        }
    }

    // Scores to weights. top[lane], sum[lane]: the largest score and the sum of exp(score - top); step[lane]: the
    // value of a weight of one.
    template <int V>
    static void softmax(const Weights& weights, const Strip& strip, int tokens, float* top, float* sum,
                        float* step) noexcept {
        constexpr int kWidth = V * kLanes;
        for (int v = 0; v < V; ++v) {
            float* x = weights.scores + v * kLanes;
            Floats highest = Isa::splat(kHidden);
            // A NaN among scores is no maximum, but makes the sum NaN by way of `none`; one among scales by way of
            // `weighted`. A hidden token's scale may be one: its weight is zero all the same.
            for (int t = 0; t < tokens; ++t) highest = Isa::maximum(Isa::load(x + t * kWidth), highest);
            Floats total = Isa::zero(), none = Isa::zero(), weighted = Isa::splat(1e-37f), largest = Isa::splat(1e-37f);
            for (int t = 0; t < tokens; ++t) {
                const Floats score = Isa::load(x + t * kWidth);
                const Floats e = exp_not_positive<Isa>(Isa::subtract(score, highest));
                const Floats w = Isa::where_not_less(score, Isa::splat(kHidden / 2),
                                                     Isa::multiply(e, Isa::broadcast(strip.value_scales + t)));
                total = Isa::add(total, e);
                none = Isa::fma(score, Isa::zero(), none);
                weighted = Isa::add(weighted, w);
                largest = Isa::maximum(largest, w);
                Isa::store(x + t * kWidth, w);
            }
            const Floats factor = Isa::minimum(Isa::divide(Isa::splat(kLargestSum), weighted),
                                               Isa::divide(Isa::splat(kLargestInt16), largest));
            Isa::store(top + v * kLanes, highest);
            Isa::store(sum + v * kLanes, Isa::add(total, Isa::fma(weighted, Isa::zero(), none)));
            Isa::store(step + v * kLanes, Isa::divide(Isa::splat(1.0f), factor));
            for (int t = 0; t < tokens; t += 2) {
                const Floats a = Isa::multiply(Isa::load(x + t * kWidth), factor);
                const Floats b = t + 1 < tokens ? Isa::multiply(Isa::load(x + (t + 1) * kWidth), factor) : Isa::zero();
                Isa::store_ints(weights.values + (int64_t{t / 2} * kWidth + v * kLanes) * 2, Isa::pair(a, b));
            }
        }
    }

    // out[d][lane] = out * correction + weighted sum of values * step * share, by lane; without what out holds if
    // `first`.
    template <int V, class Asks>
    static void add_values(const Weights& weights, const Strip& strip, const HeadShape& shape, int tokens, bool first,
                           const float* step, const float* correction, const float* share, float* out,
                           Asks&& asks) noexcept {
        const int n = shape.padded_value();
        const int64_t stride = value_stride(shape);
        int d = 0;
        for (; d + kTileRows<V> <= n; d += kTileRows<V>) {
            add_value_tile<V, kTileRows<V>>(weights, strip, stride, d, tokens, first, step, correction, share, out,
                                            asks);
        }
        for (; d < n; d += kRestRows<V>) {
            add_value_tile<V, kRestRows<V>>(weights, strip, stride, d, tokens, first, step, correction, share, out,
                                            asks);
        }
    }

    // The same from values that are a prefix of rows in int16, of few lanes: pairs are made in registers, once for
    // kRowsLanes lanes, which costs less than writing and reading them. out is [lane][d]. The sums are the same
    // integers.
    template <class Asks>
    static void add_value_rows(const Weights& weights, const ValueRows& rows, const HeadShape& shape, int lanes,
                               int width, int tokens, bool first, const float* step, const float* correction,
                               const float* share, float* out, Asks&& asks) noexcept {
        for (int d = 0; d < shape.padded_value(); d += 2 * kLanes) {
            for (int lane = 0; lane < lanes; lane += kRowsLanes) {
                RowsTile tile{weights.values + 2 * lane, 2 * width,    step + lane,
                              correction + lane,         share + lane, out + int64_t{lane} * shape.padded_value() + d,
                              shape.padded_value()};
                rows_tile<std::remove_cvref_t<Asks>::kAsks>(tile, rows, d, tokens, first, asks);
            }
        }
    }

    // Index of element d of a value in out.
    static int out_place(int d) noexcept { return Isa::pair_place_of(Isa::place_of(d)); }
    // Consecutive elements that stay consecutive in out.
    static constexpr int kOutRun = 4;

  private:
    // Lanes of a tile of add_value_rows(): two vectors of sums each, beside a pair of values and a weight.
    static constexpr int kRowsLanes = 8;
    static constexpr int kMaxFastBlocks = 32;

    static float inverse(float x, float wanted) noexcept { return x > 0 ? wanted / x : 0.0f; }

    static Floats load_padded(const float* row, int e, int elements) noexcept {
        if (e + kLanes <= elements) return Isa::load(row + e);
        return Isa::load_first(row + e, std::max(0, elements - e));
    }

    // Sources: prepare() finds the scales of up to kAtOnce rows, and leaves what write() needs to convert each.
    // Together, because a scale is a long chain of steps that others can overlap.
    static constexpr int kAtOnce = 16;

    template <class Number, float (*Largest)(const Number*, int), void (*Convert)(const Number*, float, int16_t*)>
    struct NumberSource {
        int64_t first;
        int count;
        using States = float[kAtOnce];
        void prepare(const char* const* rows, int n, States& factors, float* scales) const noexcept {
            for (int i = 0; i < n; ++i) {
                const float largest = Largest(reinterpret_cast<const Number*>(rows[i]) + first, count);
                factors[i] = inverse(largest, kLargestKey);
                scales[i] = largest / kLargestKey;
            }
        }
        void write(const char* row, const States& factors, int i, int16_t* to) const noexcept {
            const auto* x = reinterpret_cast<const Number*>(row) + first;
            for (int e = 0; e < count; e += 32) Convert(x + e, factors[i], to + e);
        }
    };
    using F32Source = NumberSource<float, Isa::largest_of_floats, Isa::int16_from_floats>;
    using F16Source = NumberSource<uint16_t, Isa::largest_of_f16, Isa::int16_from_f16>;
    using Bf16Source = NumberSource<uint16_t, Isa::largest_of_bf16, Isa::int16_from_bf16>;

    // Blocks with an f16 scale and 32 codes. The scales of blocks are multiplied in, relative to the largest of the
    // row. Lanes of prepare() are rows: nothing is to be found across lanes.
    struct CodeSource {
        CodeFormat format;
        int64_t first_block;
        int blocks;
        struct States {
            alignas(32) int16_t ratios[kMaxFastBlocks][kAtOnce];
        };
        void prepare(const char* const* rows, int n, States& states, float* scales) const noexcept {
            alignas(32) uint16_t halves[kMaxFastBlocks][kAtOnce];
            const int lanes = (n + kLanes - 1) / kLanes * kLanes;
            for (int i = 0; i < lanes; ++i) {
                const char* block = rows[std::min(i, n - 1)] + first_block * format.bytes;
                for (int b = 0; b < blocks; ++b, block += format.bytes) std::memcpy(&halves[b][i], block, 2);
            }
            for (int v = 0; v < lanes; v += kLanes) {
                Floats top = Isa::zero(), not_finite = Isa::zero();  // NaN where a scale is not finite
                for (int b = 0; b < blocks; ++b) {
                    const Floats scale = Isa::from_f16(halves[b] + v);
                    top = Isa::maximum(Isa::magnitude(scale), top);
                    not_finite = Isa::fma(scale, Isa::zero(), not_finite);
                }
                // Bytes times ratio / 2^7: 127 * 64 at most. Of rows of zeros, any factor does.
                const Floats factor = Isa::divide(Isa::splat(8192.0f), Isa::maximum(top, Isa::splat(1e-30f)));
                for (int b = 0; b < blocks; ++b)
                    Isa::to_int16(states.ratios[b] + v, Isa::multiply(Isa::from_f16(halves[b] + v), factor));
                alignas(64) float largest[kLanes];
                Isa::store(largest,
                           Isa::add(Isa::divide(top, Isa::splat(static_cast<float>(64 * format.spread))), not_finite));
                std::copy_n(largest, std::min(kLanes, n - v), scales + v);
            }
        }
        void write(const char* row, const States& states, int i, int16_t* to) const noexcept {
            alignas(32) int8_t spread[32];
            const char* block = row + first_block * format.bytes;
            for (int b = 0; b < blocks; ++b, block += format.bytes) {
                const auto* codes = reinterpret_cast<const int8_t*>(block + 2);
                if (format.codes) {
                    format.codes(block, spread);
                    codes = spread;
                }
                Isa::int16_from_bytes(codes, states.ratios[b][i], to + 32 * b);
            }
        }
    };

    // Any other type or size: through f32, twice, so that no buffer for the whole part is needed.
    struct GeneralSource {
        tsr_type type;
        int64_t first;
        int count, padded;
        using States = float[kAtOnce];
        void prepare(const char* const* rows, int n, States& factors, float* scales) const noexcept {
            alignas(64) float block[32];
            for (int i = 0; i < n; ++i) {
                float largest = 0, not_finite = 0;  // NaN where a number is not finite
                for (int e = 0; e < padded; e += 32) {
                    decode(rows[i], e, block);
                    const float x = Isa::largest_of_floats(block, 32);
                    largest = std::max(largest, x);
                    not_finite += x * 0.0f;
                }
                factors[i] = inverse(largest, kLargestKey);
                scales[i] = largest / kLargestKey + not_finite;
            }
        }
        void write(const char* row, const States& factors, int i, int16_t* to) const noexcept {
            alignas(64) float block[32];
            for (int e = 0; e < padded; e += 32) {
                decode(row, e, block);
                Isa::int16_from_floats(block, factors[i], to + e);
            }
        }
        void decode(const char* row, int e, float* block) const noexcept {
            std::fill_n(block, 32, 0.0f);
            if (e < count) decode_elements(type, row, first + e, std::min(count - e, 32), block);
        }
    };

    template <class Body>
    static void with_source(tsr_type type, int64_t first, int count, int padded, Body&& body) noexcept {
        if (count == padded) {
            if (type == TSR_TYPE_F16) return body(F16Source{first, count});
            if (type == TSR_TYPE_BF16) return body(Bf16Source{first, count});
            if (type == TSR_TYPE_F32) return body(F32Source{first, count});
            const CodeFormat codes = code_format_of(type);
            if (codes.bytes > 0 && first % 32 == 0 && count <= kMaxFastBlocks * 32) {
                return body(CodeSource{codes, first / 32, count / 32});
            }
        }
        body(GeneralSource{type, first, count, padded});
    }

    // Row i to the int16 at to(i), then done(i).
    template <class Source, class To, class Done>
    static void load_rows(const Source& source, const char* const* rows, int count, float* scales, To&& to,
                          Done&& done) noexcept {
        typename Source::States states;
        for (int begin = 0; begin < count; begin += kAtOnce) {
            const int n = std::min(kAtOnce, count - begin);
            source.prepare(rows + begin, n, states, scales + begin);
            for (int i = 0; i < n; ++i) {
                source.write(rows[begin + i], states, i, to(begin + i));
                done(begin + i);
            }
        }
    }

    // Values of token t (even) and the one after it; nullptr: there is none. Its weight is zero, and its value must be
    // zero too.
    static void pair_values(const Strip& strip, const HeadShape& shape, int t, const int16_t* row,
                            const int16_t* next) noexcept {
        alignas(64) static constexpr int16_t kZeros[32] = {};
        int16_t* pairs = strip.values + t / 2 * value_stride(shape);
        const int elements = shape.padded_value();  // not read again after each store
        for (int d = 0; d < elements; d += 32) Isa::interleave(row + d, next ? next + d : kZeros, pairs + 2 * d);
    }

    struct KeyTile {
        const int16_t* queries;
        const float* query_scales;
        const int16_t* keys;
        int64_t key_stride;
        const float* key_scales;
        int pairs;
    };

    // All but its keys.
    template <int V>
    static KeyTile key_tile_of(const Queries& queries, const Strip& strip, const HeadShape& shape, int part,
                               int t) noexcept {
        KeyTile tile{};
        const int begin = shape.part_begin(part);
        tile.queries = queries.values + int64_t{begin} * V * kLanes;
        tile.query_scales = queries.scales[part];
        tile.key_stride = shape.padded_key();
        tile.key_scales = strip.key_scales[part] + t;
        tile.pairs = (shape.part_end(part) - begin) / 2;
        return tile;
    }

    // R: rows of the tile, as few as hold `rows`, or kTileRows.
    template <int V, int R = kTileRows<V>, class Asks>
    static void run_key_tile(const KeyTile& tile, int rows, int part, float* scores, int64_t stride,
                             Asks& asks) noexcept {
        static_assert(R % kRestRows<V> == 0);
        if constexpr (R > kRestRows<V>) {
            if (rows <= R - kRestRows<V>)
                return run_key_tile<V, R - kRestRows<V>>(tile, rows, part, scores, stride, asks);
        }
        const Lines lines = asks.lines(tile.pairs / kStepsPerLine<R * V>);
        if (part == 0)
            key_tile<V, R, false, Asks::kAsks>(tile, scores, stride, lines);
        else
            key_tile<V, R, true, Asks::kAsks>(tile, scores, stride, lines);
    }

    template <int V, int R, bool Add, bool kAsks>
    [[gnu::noinline, gnu::flatten]] static void key_tile(const KeyTile& tile, float* scores, int64_t stride,
                                                         Lines lines) noexcept {
        // Three rows are addressed from one pointer, which saves registers.
        constexpr int kPointers = (R + 2) / 3;
        Ints sums[R][V];
        const int16_t* rows[kPointers];
        unrolled<R>([&](auto i) { unrolled<V>([&](auto v) { sums[i][v] = Isa::zero_ints(); }); });
        unrolled<kPointers>([&](auto i) { rows[i] = tile.keys + 3 * i * tile.key_stride; });
        const int16_t* queries = tile.queries;
        const int64_t key_stride = tile.key_stride;
        take_steps<Isa, kAsks, R * V>(
            tile.pairs, lines, [&]() __attribute__((always_inline)) {
                Ints q[V];
                unrolled<V>([&](auto v) { q[v] = Isa::load_ints(queries + 2 * v * kLanes); });
                unrolled<R>([&](auto i) { Isa::template accumulate<V>(sums[i], q, rows[i / 3] + i % 3 * key_stride); });
                unrolled<kPointers>([&](auto i) { rows[i] += 2; });
                queries += 2 * V * kLanes;
            });
        unrolled<R>([&](auto i) __attribute__((always_inline)) {
            const Floats row_scale = Isa::broadcast(tile.key_scales + i);
            unrolled<V>([&](auto v) __attribute__((always_inline)) {
                float* to = scores + i * stride + v * kLanes;
                const Floats s = Isa::multiply(Isa::to_floats(sums[i][v]), Isa::load(tile.query_scales + v * kLanes));
                Isa::store(to, Add ? Isa::fma(s, row_scale, Isa::load(to)) : Isa::multiply(s, row_scale));
            });
        });
    }

    struct RowsTile {
        const int16_t* pairs;  // of weights: [tokens / 2][pair_stride]
        int64_t pair_stride;
        const float *step, *correction, *share;  // [kRowsLanes]
        float* out;                              // [kRowsLanes][out_stride]
        int64_t out_stride;
    };

    template <bool kAsks, class Asks>
    [[gnu::noinline, gnu::flatten]] static void rows_tile(const RowsTile& tile, const ValueRows& rows, int d,
                                                          int tokens, bool first, Asks& asks) noexcept {
        constexpr int R = kRowsLanes;
        Ints sums[R][2];
        unrolled<R>([&](auto i) { unrolled<2>([&](auto v) { sums[i][v] = Isa::zero_ints(); }); });
        const int16_t* pairs = tile.pairs;
        const int64_t pair_stride = tile.pair_stride, stride = rows.stride;
        for (int t = 0, run = 0; t < tokens; t += TSR_PAGE_TOKENS, ++run) {
            const int steps = (std::min<int>(TSR_PAGE_TOKENS, tokens - t) + 1) / 2;
            const int16_t* values = rows.runs[run] + d;
            take_steps<Isa, kAsks, 2 * R>(
                steps, asks.lines(steps / kStepsPerLine<2 * R>), [&]() __attribute__((always_inline)) {
                    Ints both[2];
                    Isa::unpack(Isa::load_ints(values), Isa::load_ints(values + stride), both);
                    unrolled<R>([&](auto i) { Isa::template accumulate<2>(sums[i], both, pairs + 2 * i); });
                    values += 2 * stride;
                    pairs += pair_stride;
                });
        }
        unrolled<R>([&](auto i) __attribute__((always_inline)) {
            const Floats s = Isa::broadcast(tile.step + i);
            const Floats c = Isa::broadcast(tile.correction + i), e = Isa::broadcast(tile.share + i);
            unrolled<2>([&](auto v) __attribute__((always_inline)) {
                float* to = tile.out + i * tile.out_stride + v * kLanes;
                const Floats sum = Isa::multiply(Isa::to_floats(sums[i][v]), s);
                Isa::store(to, first ? sum : Isa::fma(sum, e, Isa::multiply(Isa::load(to), c)));
            });
        });
    }

    template <int V, int R, class Asks>
    static void add_value_tile(const Weights& weights, const Strip& strip, int64_t stride, int d, int tokens,
                               bool first, const float* step, const float* correction, const float* share, float* out,
                               Asks& asks) noexcept {
        const Lines lines = asks.lines((tokens + 1) / 2 / kStepsPerLine<R * V>);
        value_tile<V, R, Asks::kAsks>(weights, strip, stride, d, tokens, first, step, correction, share, out, lines);
    }

    template <int V, int R, bool kAsks>
    [[gnu::noinline, gnu::flatten]] static void value_tile(const Weights& weights, const Strip& strip, int64_t stride,
                                                           int d, int tokens, bool first, const float* step,
                                                           const float* correction, const float* share, float* out,
                                                           Lines lines) noexcept {
        Ints sums[R][V];
        unrolled<R>([&](auto i) { unrolled<V>([&](auto v) { sums[i][v] = Isa::zero_ints(); }); });
        const int16_t* values = strip.values + 2 * d;
        const int16_t* pairs = weights.values;
        take_steps<Isa, kAsks, R * V>((tokens + 1) / 2, lines, [&]() __attribute__((always_inline)) {
            Ints w[V];
            unrolled<V>([&](auto v) { w[v] = Isa::load_ints(pairs + 2 * v * kLanes); });
            unrolled<R>([&](auto i) { Isa::template accumulate<V>(sums[i], w, values + 2 * i); });
            values += stride;
            pairs += 2 * V * kLanes;
        });
        out += int64_t{d} * V * kLanes;
        unrolled<V>([&](auto v) __attribute__((always_inline)) {
            const Floats s = Isa::load(step + v * kLanes);
            const Floats c = Isa::load(correction + v * kLanes), e = Isa::load(share + v * kLanes);
            unrolled<R>([&](auto i) __attribute__((always_inline)) {
                float* to = out + (i * V + v) * kLanes;
                const Floats sum = Isa::multiply(Isa::to_floats(sums[i][v]), s);
                Isa::store(to, first ? sum : Isa::fma(sum, e, Isa::multiply(Isa::load(to), c)));
            });
        });
    }
};

}  // namespace tessera::x86::attention
