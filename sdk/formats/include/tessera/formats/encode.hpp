// What f32 to blocks is made of: a format's encode(const float* in, Block&) turns 32 values, which do not overlap the
// block, into it, in plain C++; of q8_0, q4 and q5 bit for bit as the public `gguf` package does it for finite input
// (it has no encoder of q6_0 and iq4_nl). A number that is not finite makes the scale of its block not finite either,
// so that it is not lost.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/freestanding.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {
namespace encode_detail {

// The product rounded to f32 before anything is added to it. The volatile keeps a compiler that may fuse
// multiplications and additions from giving other codes than the public package.
inline float rounded_product(float a, float b) noexcept {
    volatile float product = a * b;
    return product;
}

inline float inverse(float d) noexcept {
    return d == 0.0f ? 0.0f : 1.0f / d;
}

// As roundf, half away from zero: truncated after adding the largest float below 0.5 with the sign of x. What is not
// within -127 .. 127 then, or no number, becomes 0.
inline int8_t signed_code(float x) noexcept {
    const float held = fabsf(x) < 127.5f ? x : 0.0f;
    constexpr uint32_t kSign = 0x80000000u, kBelowHalf = bit_cast<uint32_t>(0.49999997f);
    return static_cast<int8_t>(held + bit_cast<float>((bit_cast<uint32_t>(held) & kSign) | kBelowHalf));
}

// Truncates `value` to a code in 0..highest; anything that is not a number becomes 0.
inline uint8_t code(float value, int highest) noexcept {
    if (!(value > 0.0f)) return 0;
    return value >= static_cast<float>(highest) ? static_cast<uint8_t>(highest) : static_cast<uint8_t>(value);
}

// Magnitudes are compared by their bits: without signs these are in the order of magnitudes, NaNs behind all others.

// The value of largest magnitude, with its sign; the first of several.
inline float extreme(const float* in) noexcept {
    uint32_t best = bit_cast<uint32_t>(in[0]);
    for (int j = 1; j < kSmallBlock; ++j) {
        const uint32_t bits = bit_cast<uint32_t>(in[j]);
        if (bits << 1 > best << 1) best = bits;
    }
    return bit_cast<float>(best);
}

// Of several lanes, so that compilers can use vectors.
inline float largest_magnitude(const float* in) noexcept {
    constexpr int kLanes = 8;
    uint32_t largest[kLanes] = {};
    for (int j = 0; j < kSmallBlock; j += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
            const uint32_t magnitude = bit_cast<uint32_t>(in[j + lane]) & 0x7FFFFFFFu;
            largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
        }
    }
    for (int lane = 1; lane < kLanes; ++lane) largest[0] = largest[lane] > largest[0] ? largest[lane] : largest[0];
    return bit_cast<float>(largest[0]);
}

struct Range {
    float minimum;
    float maximum;
    float not_finite;  // NaN if a number is not, else zero
};

inline Range range(const float* in) noexcept {
    Range r{in[0], in[0], in[0] * 0.0f};
    for (int j = 1; j < kSmallBlock; ++j) {
        if (in[j] < r.minimum) r.minimum = in[j];
        if (in[j] > r.maximum) r.maximum = in[j];
        r.not_finite += in[j] * 0.0f;
    }
    return r;
}

// Low nibbles and, for five-bit formats, the high bits of 32 codes.
template <class Block>
inline void store_codes(Block& block, const uint8_t* codes) noexcept {
    for (int j = 0; j < 16; ++j) block.qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
    if constexpr (requires { block.qh; }) {
        for (int i = 0; i < 4; ++i) {
            int byte = 0;
            for (int bit = 0; bit < 8; ++bit) byte |= (codes[8 * i + bit] >> 4) << bit;
            block.qh[i] = static_cast<uint8_t>(byte);
        }
    }
}

// Symmetric codes around `centre` (8, 16 or 32): the extreme value takes code 0.
template <class Block>
inline void encode_centred(const float* in, Block& block, int centre) noexcept {
    const float d = extreme(in) / static_cast<float>(-centre);
    const float inverse_d = inverse(d);
    uint8_t codes[kSmallBlock];
    for (int j = 0; j < kSmallBlock; ++j) {
        codes[j] = code(rounded_product(in[j], inverse_d) + (static_cast<float>(centre) + 0.5f), 2 * centre - 1);
    }
    block.d = f32_to_f16(d);
    store_codes(block, codes);
}

// Codes 0..highest from the minimum up.
template <class Block>
inline void encode_from_minimum(const float* in, Block& block, int highest) noexcept {
    const Range r = range(in);
    const float d = (r.maximum - r.minimum) / static_cast<float>(highest) + r.not_finite;
    const float inverse_d = inverse(d);
    uint8_t codes[kSmallBlock];
    for (int j = 0; j < kSmallBlock; ++j)
        codes[j] = code(rounded_product(in[j] - r.minimum, inverse_d) + 0.5f, highest);
    block.d = f32_to_f16(d);
    block.m = f32_to_f16(r.minimum);
    store_codes(block, codes);
}

}  // namespace encode_detail

// Whether there is an `encode` for the format.
template <class Block>
inline constexpr bool kCanEncode = requires(const float* in, Block& block) {
    encode(in, block);
};

// Whether whole rows of it are encoded alone, since they have a scale in common: there are
//     RowHead of Block                                     what a row begins with: RowHead::of(largest magnitude)
//     void encode(const float* in, RowHead&, Block&)       a block, which the head may count
template <class Block>
inline constexpr bool kEncodesRows = requires(const float* in, typename Block::RowHead& head, Block& block) {
    encode(in, head, block);
};

}  // namespace tessera::formats
