// Attention in bytes over a cache of q8_0 in the layout of byte_pages.hpp, whose codes are multiplied as they are:
// nothing is converted but scales, and keys are rearranged, sixteen bytes by sixteen.
//
// Queries are rounded as the cache rounds keys: to 8 bits, with a scale for 32 elements; so are weights that keys and
// values of each head are computed with (expand.hpp), as queries over latent rows. Weights of tokens have 15 bits, in a
// high and a low byte that are multiplied one after the other; the scale of the value's block is multiplied into them.
// Where high bytes alone are precise enough for a lane in a strip, they are all of its weights. So arithmetic adds no
// more to the error of a result than storing rows in q8_0 did.
//
// Processors multiply unsigned bytes by signed ones. Weights are unsigned. Keys have 128 added; sums of products begin
// at -128 times the sum of a query's codes, which takes it off again.
#pragma once

#include "../kit.hpp"
#include "../layouts/byte_pages.hpp"
#include "../rates.hpp"
#include "asking.hpp"
#include "byte_operands.hpp"
#include "unrolled.hpp"

#include <tessera/cpu/exponential.hpp>

#include <algorithm>
#include <cstring>

namespace tessera::x86::attention {

// Whether a vector unit has what ByteArithmetic needs.
template <class Isa>
inline constexpr bool kMultipliesBytes = requires {
    Isa::kByteSums;
};

// The same interface as Int16Arithmetic where both have a function. For values that are a prefix of keys, whole blocks
// of both.
template <class Isa>
struct ByteArithmetic : ByteOperands<Isa::kLanes> {
    using Operands = ByteOperands<Isa::kLanes>;
    using Operands::kBlock;
    using Operands::kLanes;
    using Operands::kPanel;
    using Operands::kScalesOfBlock;
    using Operands::kTile;
    using typename Operands::Queries;
    using typename Operands::Strip;
    using typename Operands::Weights;
    using Floats = typename Isa::Floats;
    using Ints = typename Isa::Ints;
    static constexpr const char* kName = "int8 over pages of four tokens";
    static constexpr double AttentionRates::*kRate = &AttentionRates::bytes;
    static constexpr bool kBytePages = true;  // takes them alone
    static constexpr bool kValueRows = false;

    template <int V>
    static constexpr int kTileRows = kTile;

    // ---- loading ----

    // The page of tokens t .. t + TSR_PAGE_TOKENS of a strip.
    static void take_page(Strip& strip, const BytePages& pages, const char* page, int t) noexcept {
        strip.codes[t / TSR_PAGE_TOKENS] = pages.codes(page);
        strip.stride = BytePages::kTokens * pages.elements;
        for (int block = 0; block < pages.elements / kBlock; ++block) {
            const uint16_t* from = pages.scales(page, block);
            float* to = strip.scales + block * kScalesOfBlock + t;
            for (int i = 0; i < TSR_PAGE_TOKENS; i += kLanes) Isa::store(to + i, Isa::from_f16(from + i));
        }
    }

    // Elements first .. first + elements (whole blocks) of the tokens of a strip to floats, rows of tokens `stride`
    // apart; of up to three tokens more, too.
    static void decode(const Strip& strip, int64_t first, int64_t elements, int tokens, float* to,
                       int64_t stride) noexcept {
        for (int t = 0; t < tokens; t += BytePages::kTokens) {
            const int8_t* codes = codes_of(strip, t) + first * BytePages::kTokens;
            for (int64_t e = 0; e < elements; e += kBlock) {
                // As integers of four tokens, which vectors take apart.
                uint32_t fours[kBlock];
                std::memcpy(fours, codes + e * BytePages::kTokens, sizeof fours);
                const float* scales = strip.scales + (first + e) / kBlock * kScalesOfBlock + t;
                for (int i = 0; i < BytePages::kTokens; ++i) {
                    const int shift = 24 - 8 * BytePages::place_of(i);
                    float x[kBlock];
                    for (int n = 0; n < kBlock; ++n)
                        x[n] = scales[i] * static_cast<float>(static_cast<int32_t>(fours[n] << shift) >> 24);
                    std::memcpy(to + (t + i) * stride + e, x, sizeof x);
                }
            }
        }
    }

    // As Int16Arithmetic. A number that is not finite makes the scale of its block NaN.
    static void load_queries(const Queries& queries, const HeadShape& shape, const float* const* rows, int vectors,
                             float scale) noexcept {
        int8_t* codes = queries.codes;
        int32_t* sums = queries.sums;
        float* scales = queries.scales;
        for (int v = 0; v < vectors; ++v) {
            for (int e = 0; e < shape.key; e += kBlock, scales += kLanes, sums += kLanes) {
                Floats x[kBlock];
                for (int half = 0; half < kBlock; half += kLanes) {
                    for (int i = 0; i < kLanes; ++i) {
                        const float* row = rows[v * kLanes + i];
                        x[half + i] = row ? Isa::load(row + e + half) : Isa::zero();
                    }
                    Isa::transpose(x + half);
                }
                Floats top = Isa::splat(kSmallest), sum = Isa::zero();
                for (const Floats& y : x) {
                    top = Isa::maximum(top, Isa::magnitude(y));
                    sum = Isa::add(sum, y);
                }
                const Floats factor = Isa::divide(Isa::splat(127.0f), top);
                const Floats step = Isa::multiply(top, Isa::splat(scale / 127.0f));
                Isa::store(scales, Isa::fma(sum, Isa::zero(), step));
                Ints total = Isa::zero_ints();
                for (int i = 0; i < kBlock; i += 4, codes += 4 * kLanes) {
                    const auto code = [&](int n) { return Isa::multiply(x[i + n], factor); };
                    const Ints even = Isa::pair(code(0), code(2)), odd = Isa::pair(code(1), code(3));
                    const Ints four = Isa::low_bytes(even, odd);
                    Isa::store_bytes(codes, four);
                    Isa::accumulate_signed_bytes(total, four, kAdded);
                }
                Isa::store_sums(sums, Isa::subtract_ints(Isa::zero_ints(), total));
            }
        }
    }

    // ---- arithmetic ----

    // Keys of tokens t .. t + count of a strip, t a multiple of kTile.
    template <int V, class Asks>
    static void scores(const Queries& queries, const Strip& strip, const HeadShape& shape, int t, int count, int,
                       float* scores, int64_t stride, Asks&& asks) noexcept {
        for (const int end = t + count; t < end; t += kTile) {
            float* const to = scores + t * stride;
            key_tile<true>(key_tile_of(queries, strip, shape, 0, t, strip.tile), to, stride,
                           asks.lines(shape.key / kBlock));
            for (int v = 1; v < V; ++v)
                key_tile<false>(key_tile_of(queries, strip, shape, v, t, strip.tile), to + v * kLanes, stride,
                                asks.lines(shape.key / kBlock));
        }
    }

    // For keys that many panels are multiplied with: rearranges those of all `tokens` tokens of a strip, whose tile has
    // room for them.
    static void rearrange(const Strip& strip, const HeadShape& shape, int tokens) noexcept {
        for (int t = 0; t < tokens; t += kTile) {
            const KeyTile tile = key_tile_of({}, strip, shape, 0, t, tile_of(strip, shape, t));
            for (int b = 0; b < tile.blocks; ++b) tile.rearrange(b);
        }
    }
    // As scores(), of all tokens of such a strip.
    template <int V>
    static void scores_of_rearranged(const Queries& queries, const Strip& strip, const HeadShape& shape, int tokens,
                                     float* scores, int64_t stride) noexcept {
        for (int t = 0; t < tokens; t += kTile) {
            for (int v = 0; v < V; ++v)
                key_tile<false>(key_tile_of(queries, strip, shape, v, t, tile_of(strip, shape, t)),
                                scores + t * stride + v * kLanes, stride, {nullptr, 0});
        }
    }

    template <int V>
    static void softmax(const Weights& weights, const Strip&, int tokens, float* top, float* sum,
                        float* step) noexcept {
        constexpr int kWidth = V * kLanes;
        for (int v = 0; v < V; ++v) {
            const float* x = weights.scores + v * kLanes;
            // A score that is no number counts as visible and is no maximum: it makes the sum none either, by way of
            // `none`.
            Floats highest = Isa::splat(kHidden), hidden = Isa::zero();
            for (int t = 0; t < tokens; ++t) {
                const Floats score = Isa::load(x + t * kWidth);
                highest = Isa::maximum(score, highest);
                hidden = Isa::add(hidden, Isa::where_not_less(Isa::splat(kHidden / 2), score, Isa::splat(1.0f)));
            }
            const Floats visible = Isa::subtract(Isa::splat(static_cast<float>(tokens)), hidden);
            Isa::store(weights.visible + v * kLanes, visible);
            Floats total = Isa::zero(), none = Isa::zero(), squares = Isa::zero(), error = Isa::zero(),
                   errors = Isa::zero();
            const auto weight_of = [&](int t) __attribute__((always_inline)) {
                if (t >= tokens) return Isa::zero();
                const Floats score = Isa::load(x + t * kWidth);
                const Floats e = exp_not_positive<Isa>(Isa::subtract(score, highest));
                // What rounding to a byte would change.
                const Floats byte = Isa::round(Isa::multiply(e, Isa::splat(255.0f)));
                const Floats change = Isa::fma(byte, Isa::splat(-1 / 255.0f), e);
                total = Isa::add(total, e);
                none = Isa::fma(score, Isa::zero(), none);
                squares = Isa::fma(e, e, squares);
                error = Isa::add(error, change);
                errors = Isa::fma(change, change, errors);
                return Isa::multiply(e, Isa::splat(kLargestInt16));
            };
            int16_t* pairs = weights.pairs + int64_t{v} * kStrip * kLanes;
            const auto padded = static_cast<int>(rounded_up(tokens, 4));
            for (int t = 0; t < padded; t += 2, pairs += 2 * kLanes) {
                const Floats first = weight_of(t), second = weight_of(t + 1);
                Isa::store_ints(pairs, Isa::pair(first, second));
            }
            Isa::store(top + v * kLanes, highest);
            Isa::store(sum + v * kLanes, Isa::add(total, none));
            Isa::store(step + v * kLanes, Isa::splat(1.0f));
            Floats rounded =
                Isa::where_not_less(visible, Isa::splat(static_cast<float>(kStrip)), Isa::splat(kHalfHighByte));
            rounded =
                Isa::where_not_less(Isa::multiply(total, Isa::splat(kRoundingError)), Isa::magnitude(error), rounded);
            rounded = Isa::where_not_less(Isa::multiply(squares, Isa::splat(kRoundingError * kRoundingError)), errors,
                                          rounded);
            Isa::store(weights.rounded + v * kLanes, rounded);
        }
    }

    template <int V, class Asks>
    static void add_values(const Weights& weights, const Strip& strip, const HeadShape& shape, int tokens, bool first,
                           const float* /*step*/, const float* correction, const float* share, float* out,
                           Asks&& asks) noexcept {
        for (int v = 0; v < V; ++v) {
            Values values{};
            values.codes = strip.codes;
            values.stride = strip.stride;
            values.weights = weights.bytes;
            values.steps = (tokens + 3) / 4;
            values.correction = correction + v * kLanes;
            values.share = share + v * kLanes;
            values.width = V * kLanes;
            values.first = first;
            LaneWeights lanes{weights.pairs + int64_t{v} * kStrip * kLanes, tokens,
                              Isa::load(weights.visible + v * kLanes), passed(weights, v),
                              Isa::load(weights.rounded + v * kLanes)};
            // Zero where a lane may not see all tokens.
            const bool all = !Isa::any_zero(
                Isa::where_not_less(lanes.visible, Isa::splat(static_cast<float>(tokens)), Isa::splat(1.0f)));
            const Floats rounded = lanes.rounded;
            for (int block = 0; block < shape.value / kBlock; ++block) {
                const float* scales = strip.scales + block * kScalesOfBlock;
                const Scales found = scan(scales, tokens);
                lanes.rounded = found.alike ? rounded : Isa::zero();
                const bool two = !all || Isa::any_zero(lanes.rounded);
                const Floats largest = all ? Isa::splat(found.largest) : largest_visible(lanes, scales);
                if (!all)
                    weigh<false, 2>(lanes, scales, largest, weights.bytes);
                else if (two)
                    weigh<true, 2>(lanes, scales, largest, weights.bytes);
                else
                    weigh<true, 1>(lanes, scales, largest, weights.bytes);
                values.first_code = block * kBlock * 4;
                values.step = Isa::multiply(largest, Isa::splat(1 / kLargestWeight));
                values.out = out + int64_t{block} * kBlock * values.width + v * kLanes;
                if (two)
                    add_block<2>(values, asks);
                else
                    add_block<1>(values, asks);
            }
        }
    }

    static int out_place(int d) noexcept { return d; }
    static constexpr int kOutRun = 4;

  private:
    static constexpr uint8_t kAdded[4] = {128, 128, 128, 128};  // to the codes of four elements of a key
    // How many blocks ahead keys are rearranged: small loads soon after a wide store are slow.
    static constexpr int kBlocksAhead = 2;
    static constexpr int64_t kBlockBytes = int64_t{kBlock} * 4;  // of four tokens
    static constexpr int kStepsOfPage = TSR_PAGE_TOKENS / 4;
    static constexpr float kSmallest = 1e-30f;
    // A weight is the product of two int16, its own part and that of a block's scale, rounded to 15 bits; twice that
    // are the 16 bits whose upper byte can be rounded too.
    static constexpr float kLargestInt16 = 32767;
    static constexpr float kLargestRatio = 255 * 128;
    static constexpr float kLargestWeight = 2 * kLargestInt16 / 32768 * kLargestRatio;
    static constexpr float kHalfHighByte = 128;
    // A lane takes one byte for the weights of a whole strip if that changes neither their sum nor the weighted sum of
    // independent values by more than this part of it; q8_0 changes normally distributed values by 0.005. Scales of a
    // block are multiplied in besides: where they are not alike, two bytes are taken.
    static constexpr float kRoundingError = 0.004f;
    static constexpr float kAlike = 4;  // the largest scale, against their mean
    static_assert(kStrip % TSR_PAGE_TOKENS == 0 && TSR_PAGE_TOKENS % kTile == 0 && TSR_PAGE_TOKENS % kLanes == 0 &&
                  kBlock % kLanes == 0 && BytePages::kTokens == 4);

    // Keys of tokens t .. t + kTile of a strip.
    struct KeyTile {
        const int8_t* queries;
        const int32_t* query_sums;
        const float* query_scales;
        const int8_t* codes;  // of four tokens; of the other four, `stride` behind
        int64_t stride;
        const float* scales;
        uint8_t* keys;
        int blocks;

        // Block `b` to `keys`.
        [[gnu::always_inline]] void rearrange(int b) const noexcept {
            unrolled<kTile / 4>([&](auto four) __attribute__((always_inline)) {
                const int8_t* from = codes + four * stride + b * kBlockBytes;
                uint8_t* to = keys + (b * (kTile / 4) + four) * kBlockBytes;
                unrolled<kBlockBytes / (4 * kLanes)>([&](auto i) __attribute__((always_inline)) {
                    Isa::store_bytes(to + i * 4 * kLanes, Isa::keys_of_values(Isa::load_bytes(from + i * 4 * kLanes)));
                });
            });
        }
    };
    // `keys`: where rearranged keys are, or will be.
    static KeyTile key_tile_of(const Queries& queries, const Strip& strip, const HeadShape& shape, int v, int t,
                               uint8_t* keys) noexcept {
        const int blocks = shape.key / kBlock;
        const int64_t first = int64_t{v} * blocks * kLanes;
        return {queries.codes + first * kBlock,
                queries.sums + first,
                queries.scales + first,
                codes_of(strip, t),
                strip.stride,
                strip.scales + t,
                keys,
                blocks};
    }
    static uint8_t* tile_of(const Strip& strip, const HeadShape& shape, int t) noexcept {
        return strip.tile + int64_t{t} * shape.key;
    }
    // Of the four tokens from t on.
    static const int8_t* codes_of(const Strip& strip, int t) noexcept {
        return strip.codes[t / TSR_PAGE_TOKENS] + t % TSR_PAGE_TOKENS / BytePages::kTokens * strip.stride;
    }

    // Without kRearranges for keys that have been rearranged: for another vector of lanes, or by rearrange(). Asks for
    // a line a block.
    template <bool kRearranges>
    [[gnu::noinline, gnu::flatten]] static void key_tile(const KeyTile& tile, float* scores, int64_t stride,
                                                         Lines lines) noexcept {
        Floats sums[kTile];
        unrolled<kTile>([&](auto i) { sums[i] = Isa::zero(); });
        if constexpr (kRearranges) {
            for (int b = 0; b < std::min(kBlocksAhead, tile.blocks); ++b) tile.rearrange(b);
        }
        const int8_t* queries = tile.queries;
        const uint8_t* keys = tile.keys;
        const float* scales = tile.scales;
        for (int b = 0; b < tile.blocks; ++b) {
            if constexpr (kRearranges) {
                if (b + kBlocksAhead < tile.blocks) tile.rearrange(b + kBlocksAhead);
            }
            if (b < lines.count) Isa::prefetch_far(lines.at + int64_t{b} * 64);
            Ints products[kTile];
            const Ints start = Isa::load_sums(tile.query_sums + b * kLanes);
            unrolled<kTile>([&](auto i) { products[i] = start; });
            unrolled<kBlock / 4>([&](auto step) __attribute__((always_inline)) {
                const Ints q = Isa::load_bytes(queries + step * 4 * kLanes);
                unrolled<kTile>([&](auto i) __attribute__((always_inline)) {
                    Isa::accumulate_signed_bytes(products[i], q, keys + i / 4 * kBlockBytes + step * 16 + i % 4 * 4);
                });
            });
            const Floats q = Isa::load(tile.query_scales + b * kLanes);
            unrolled<kTile>([&](auto i) __attribute__((always_inline)) {
                const Floats x = Isa::multiply(Isa::to_floats(products[i]), Isa::broadcast(scales + i));
                sums[i] = Isa::fma(x, q, sums[i]);
            });
            queries += kBlock * kLanes;
            keys += kBlock * kTile;
            scales += kScalesOfBlock;
        }
        unrolled<kTile>([&](auto i) { Isa::store(scores + i * stride, sums[i]); });
    }

    // A vector of lanes in a strip.
    struct LaneWeights {
        const int16_t* pairs;
        int tokens;
        Floats visible, passed, rounded;
    };
    // Tokens of a strip that lie before the window of each lane.
    static Floats passed(const Weights& weights, int v) noexcept {
        if (!weights.limits) return Isa::zero();
        const Floats limits = Isa::to_floats(Isa::load_sums(weights.limits + v * kLanes));
        return Isa::maximum(Isa::subtract(limits, Isa::splat(static_cast<float>(weights.limit_of_first))), Isa::zero());
    }

    // The scales of a block, the same for all lanes of a strip. None is negative.
    struct Scales {
        float largest;  // leaves out those that are no numbers
        bool alike;     // one byte holds the product of weight and scale as well as it holds the weight
    };
    static Scales scan(const float* scales, int tokens) noexcept {
        Floats top = Isa::splat(kSmallest), sum = Isa::zero();
        for (int t = 0; t < tokens; t += kLanes) {
            const Floats x = t + kLanes <= tokens ? Isa::load(scales + t) : Isa::load_first(scales + t, tokens - t);
            top = Isa::maximum(x, top);
            sum = Isa::add(sum, x);
        }
        const float largest = Isa::largest(top);
        return {largest, largest * static_cast<float>(tokens) <= kAlike * Isa::sum(sum)};
    }

    // The largest scale of the tokens that each lane may see: of no others, which other lanes bring along.
    static Floats largest_visible(const LaneWeights& lanes, const float* scales) noexcept {
        Floats top = Isa::splat(kSmallest);
        const Floats end = Isa::add(lanes.passed, lanes.visible);
        for (int t = 0; t < lanes.tokens; ++t) {
            const Floats begun =
                Isa::where_not_less(Isa::splat(static_cast<float>(t)), lanes.passed, Isa::broadcast(scales + t));
            const Floats sees = Isa::where_not_less(end, Isa::splat(static_cast<float>(t + 1)), begun);
            top = Isa::maximum(sees, top);
        }
        return top;
    }

    // Weights times the scales of a block, as bytes, in units of the largest. Those of hidden tokens are zero, whatever
    // their scales are.
    template <bool kAll, int kBytes>
    static void weigh(const LaneWeights& lanes, const float* scales, Floats largest, uint8_t* to) noexcept {
        const Floats factor = Isa::divide(Isa::splat(kLargestRatio), largest);
        alignas(64) int16_t of_tokens[kStrip];
        if constexpr (kAll) {
            for (int t = 0; t < lanes.tokens; t += kLanes)
                Isa::to_int16(of_tokens + t, Isa::multiply(Isa::load(scales + t), factor));
        }
        // Of token t and the next, for each lane.
        const auto ratios = [&](int t) __attribute__((always_inline)) {
            if constexpr (kAll) {
                int32_t both;
                std::memcpy(&both, of_tokens + t, sizeof both);
                return Isa::broadcast_ints(&both);
            } else {
                const auto ratio = [&](int token) __attribute__((always_inline)) {
                    return Isa::multiply(Isa::broadcast(scales + token), factor);
                };
                return Isa::pair(ratio(t), ratio(t + 1));
            }
        };
        const Ints rounding = Isa::pair(lanes.rounded, lanes.rounded);
        const int16_t* from = lanes.pairs;
        for (int t = 0; t < lanes.tokens; t += 4, from += 4 * kLanes) {
            const auto product = [&](int pair) __attribute__((always_inline)) {
                const Ints x = Isa::multiply_pairs(Isa::load_ints(from + pair * 2 * kLanes), ratios(t + 2 * pair));
                return Isa::add_pairs(Isa::add_pairs(x, x), rounding);
            };
            const Ints a = product(0), b = product(1);
            Isa::store_bytes(to, Isa::high_bytes(a, b));
            to += 4 * kLanes;
            if constexpr (kBytes == 2) {
                Isa::store_bytes(to, Isa::where_zero(lanes.rounded, Isa::low_bytes(a, b)));
                to += 4 * kLanes;
            }
        }
    }

    // A block of values, their weights, and the results of a vector of lanes.
    struct Values {
        const int8_t* const* codes;  // of each page
        int64_t first_code;          // of four tokens
        int64_t stride;              // of four tokens
        const uint8_t* weights;
        int steps;  // of four tokens
        Floats step;
        const float *correction, *share;
        float* out;
        int width;
        bool first;
    };

    template <int kBytes, class Asks>
    static void add_block(const Values& values, Asks& asks) noexcept {
        constexpr int R = Isa::kByteSums / kBytes;
        for (int d = 0; d < kBlock; d += R) {
            value_tile<kBytes, R>(values, d, asks);
        }
    }

    template <int kBytes, int R, class Asks>
    [[gnu::noinline, gnu::flatten]] static void value_tile(const Values& values, int d, Asks& asks) noexcept {
        Ints sums[R][kBytes];
        unrolled<R>([&](auto i) { unrolled<kBytes>([&](auto b) { sums[i][b] = Isa::zero_ints(); }); });
        const uint8_t* weights = values.weights;
        const int64_t stride = values.stride;
        for (int page = 0; page * kStepsOfPage < values.steps; ++page) {
            const int8_t* codes = values.codes[page] + values.first_code + 4 * d;
            const int steps = std::min(kStepsOfPage, values.steps - page * kStepsOfPage);
            take_steps<Isa, std::remove_cvref_t<Asks>::kAsks, R * kBytes>(
                steps, asks.lines(steps / kStepsPerLine<R * kBytes>), [&]() __attribute__((always_inline)) {
                    Ints w[kBytes];
                    unrolled<kBytes>([&](auto b) { w[b] = Isa::load_bytes(weights + 4 * b * kLanes); });
                    unrolled<R>([&](auto i) { Isa::template accumulate_bytes<kBytes>(sums[i], w, codes + 4 * i); });
                    Isa::prefetch(codes + 4 * R);  // of the next tile: a strip's do not fit into the first cache
                    codes += stride;
                    weights += 4 * kBytes * kLanes;
                });
        }
        const Floats c = Isa::load(values.correction), e = Isa::load(values.share);
        float* out = values.out + int64_t{d} * values.width;
        unrolled<R>([&](auto i) __attribute__((always_inline)) {
            float* to = out + i * values.width;
            Ints sum;
            if constexpr (kBytes == 2)
                sum = Isa::add_ints(Isa::shift_bytes(sums[i][0]), sums[i][1]);  // below 2^31
            else
                sum = Isa::shift_bytes(sums[i][0]);
            const Floats x = Isa::multiply(Isa::to_floats(sum), values.step);
            Isa::store(to, values.first ? x : Isa::fma(x, e, Isa::multiply(Isa::load(to), c)));
        });
    }
};

}  // namespace tessera::x86::attention
