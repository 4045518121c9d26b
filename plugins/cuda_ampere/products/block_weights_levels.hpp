// Weights of iq3_k to iq6_k for split products. The levels of 16 elements, whose second set is shifted against the
// first, are multiplied with their scale before they are chosen or on their way from the table, so that no words of
// int8 are put together and taken apart again. The shift is a part of the bias. Blocks are decoded when they are
// stored.
#pragma once

#include "kernels/cuda/formats/sub_block_levels.hpp"
#include "tiles_blocks.hpp"

namespace tessera::cuda_kernels {
namespace block_weights {

// Byte `byte` of four.
SIMT_DEVICE int byte_number(uint32_t word, int byte) {
    return static_cast<int>(simt::byte_permute(word, 0, 0x4440u | static_cast<uint32_t>(byte)));
}
// What levels with 128 added have more than those of the set that bit `bit` of `shifted` says.
template <int kShift>
SIMT_DEVICE uint32_t level_bias(uint32_t shifted, int bit, uint32_t bias = 128) {
    return shifted >> bit & 1 ? bias - kShift : bias;
}

// Of iq4_k and iq5_k the first 16 bytes of a block: what belongs to the sub-blocks of a thread of two.
struct SixBitScales {
    uint32_t scales[2];  // with 32 added; by the sub-block of a segment, a byte for each segment
    uint32_t shifted;    // bits of the sub-blocks, four a segment
    float d;

    // kNeighbours: a thread has neighbouring sub-blocks, else every second one.
    template <bool kNeighbours>
    SIMT_DEVICE void load(const char* block, int part) {
        uint32_t head[4];
        sub_block_bits::get_words<16>(block, head);
        d = simt::unpack_low<simt::half_t>(head[0]);
        const int first = kNeighbours ? 2 * part : part;
        shifted = head[0] >> (16 + first);
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const uint32_t bytes = sub_block_bits::alternate_bytes(head[2], head[3], kNeighbours ? part : i);
            scales[i] = sub_block_bits::nibbles(bytes, kNeighbours ? 4 * i : 4 * part) |
                        (head[1] >> 2 * (first + (kNeighbours ? i : 2 * i)) & 0x03030303u) << 4;
        }
    }
    // Times split_factor.
    template <int kFactor>
    SIMT_DEVICE int scale(int s, int i) const {
        return byte_number(scales[i], s) * kFactor - 32 * kFactor;
    }
};

// The 64 levels of iq6_k are the nearest integers of a polynomial of the third degree. These coefficients give them in
// f16, with each step rounded: from 1024 + code, whose bits in f16 are 0x6400 + code, to 1536 + level.
struct Iq6kLevels {
    static constexpr double kScale = 1033.0 / 1024, kOffset = -1068, kThird = 0.0011749267578125,
                            kSecond = 0.01233673095703125, kFirst = 2.767578125, kZeroth = 1541;
    static constexpr uint32_t kBias = 0x6600;  // what bits of f16 have more than levels

    // The nearest f16, of those that are finite; half way the even one.
    static constexpr double nearest_half(double value) {
        const double size = value < 0 ? -value : value;
        double unit = 1.0 / (1 << 24);
        while (size >= 2048 * unit) unit *= 2;
        auto count = static_cast<int>(size / unit);
        const double rest = size / unit - count;
        if (rest > 0.5 || (rest == 0.5 && count % 2 == 1)) ++count;
        return (value < 0 ? -unit : unit) * count;
    }
    static constexpr bool are_exact() {
        for (int code = 0; code < 64; ++code) {
            const double x = nearest_half((1024 + code) * kScale + kOffset);
            const double slope = nearest_half(nearest_half(kThird * x + kSecond) * x + kFirst);
            if (nearest_half(slope * x + kZeroth) != 1536 + formats::kIq6kValues[code]) return false;
        }
        for (const double each : {kScale, kOffset, kThird, kSecond, kFirst, kZeroth})
            if (nearest_half(each) != each) return false;
        return true;
    }
    // Of two codes, the bytes of a word that lie at 0 and 16, or at 8 and 24.
    template <int kByte>
    SIMT_DEVICE static uint32_t of(uint32_t codes) {
        using namespace simt;
        const auto both = [](double value) {
            return pack<half_t>(static_cast<float>(value), static_cast<float>(value));
        };
        const uint32_t code = byte_permute(codes, 0x64u, kByte == 0 ? 0x4240u : 0x4341u);
        const uint32_t x = fma_halves(code, both(kScale), both(kOffset));
        const uint32_t slope = fma_halves(fma_halves(both(kThird), x, both(kSecond)), x, both(kFirst));
        return fma_halves(slope, x, both(kZeroth));
    }
};
static_assert(Iq6kLevels::are_exact());

}  // namespace block_weights

template <int kParts>
struct SplitWeights<TSR_TYPE_IQ3_K, kParts> {
    using F = Format<TSR_TYPE_IQ3_K>;
    static constexpr int kGroup = 16, kMinimums = 0;
    static_assert(kParts == 2);
    uint32_t w[4], high[4];  // of 128 elements, and of the block
    uint32_t sizes[2];       // by the sub-block of a segment, a byte for each segment
    uint32_t minus, shifted;
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace simt;
        using namespace sub_block_bits;
        using namespace block_weights;
        if (s == 0) {
            uint32_t head[4];  // and the first codes
            get_words<2>(block, head);
            d = unpack_low<half_t>(head[0]);
            shifted = head[0] >> (16 + part);
            minus = head[1] >> part;
            const uint32_t first = byte_permute(head[1], head[2], 0x5432),
                           second = byte_permute(head[2], head[3], 0x5432);
            SIMT_UNROLL
            for (int i = 0; i < 2; ++i) sizes[i] = nibbles(alternate_bytes(first, second, i), 4 * part);
            get_words<2>(block + 78 + 16 * part, high);
        }
        if (s % 2 == 0) get_words<2>(block + 14 + 16 * s + 16 * part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace sub_block_bits;
        using namespace block_weights;
        constexpr int kBias = 64, kFactor = split_factor(TSR_TYPE_IQ3_K);
        constexpr const int8_t(&kLevels)[8] = formats::kIq3kValues;
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const int size = byte_number(sizes[i], s) * (2 * kFactor) + kFactor;
            const SplitScale by(minus >> (4 * s + 2 * i) & 1 ? -size : size,
                                level_bias<formats::kIq3kShift>(shifted, 4 * s + 2 * i, kBias));
            uint32_t first[2], second[2];  // of the products of levels
            SIMT_UNROLL
            for (int k = 0; k < 2; ++k)
                split_products(by.products(two_values(kLevels[4 * k], kLevels[4 * k + 1], kBias)),
                               by.products(two_values(kLevels[4 * k + 2], kLevels[4 * k + 3], kBias)), first[k],
                               second[k]);
            uint32_t products[2][4];
            const int bit = 2 * s + i;
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                const uint32_t third = bit < 2 ? high[j] << (2 - bit & 31) : high[j] >> (bit - 2 & 31);
                const uint32_t which = bytes_to_nibbles(bit_pairs(w[j], 4 * (s % 2) + 2 * i) | (third & 0x04040404u));
                products[0][j] = choose8(first[0], first[1], which);
                products[1][j] = choose8(second[0], second[1], which);
            }
            to.set_planes(s, row, 2 * i + part, products[0], products[1]);
        }
        to.set_scales(s, row, part, d);
    }
};

// Neighbouring sub-blocks lie in the low and the high nibbles of 16 bytes.
template <int kParts>
struct SplitWeights<TSR_TYPE_IQ4_K, kParts> {
    using F = Format<TSR_TYPE_IQ4_K>;
    static constexpr int kGroup = 16, kMinimums = 0;
    static_assert(kParts == 2);
    block_weights::SixBitScales head;
    uint32_t w[4];

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        if (s == 0) head.template load<true>(block, part);
        sub_block_bits::get_words<16>(block + 16 + 32 * s + 16 * part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace sub_block_bits;
        using namespace block_weights;
        constexpr Table16 kTable = table16(formats::kIq4Values, 128);
        uint32_t first[4], second[4];
        SIMT_UNROLL
        for (int j = 0; j < 4; ++j)
            look_up_neighbours(kTable, within_half(w[j]), halves_to_choose(w[j]), first[j], second[j]);
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const SplitScale by(head.template scale<split_factor(TSR_TYPE_IQ4_K)>(s, i),
                                level_bias<formats::kIq4kShift>(head.shifted, 4 * s + i));
            uint32_t products[2][4];
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j)
                split_products(by.products(i == 0 ? even_bytes(first[j]) : odd_bytes(first[j])),
                               by.products(i == 0 ? even_bytes(second[j]) : odd_bytes(second[j])), products[0][j],
                               products[1][j]);
            to.set_planes(s, row, 2 * part + i, products[0], products[1]);
        }
        to.set_scales(s, row, part, head.d);
    }
};

// Sub-blocks of the first and the second half of a segment lie in the low and the high nibbles of 16 bytes.
template <int kParts>
struct SplitWeights<TSR_TYPE_IQ5_K, kParts> {
    using F = Format<TSR_TYPE_IQ5_K>;
    static constexpr int kGroup = 16, kMinimums = 0;
    static_assert(kParts == 2);
    block_weights::SixBitScales head;
    uint32_t w[4], high[4];  // of the segment, and the fifth bits of the block

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace sub_block_bits;
        if (s == 0) {
            head.template load<false>(block, part);
            get_words<16>(block + 144 + 16 * part, high);
        }
        get_words<16>(block + 16 + 32 * s + 16 * part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace sub_block_bits;
        using namespace block_weights;
        constexpr auto kLevels = levels(formats::kIq5kValues, 128);
        constexpr Table16 kLower{{kLevels.words[0], kLevels.words[1], kLevels.words[2], kLevels.words[3]}};
        constexpr Table16 kUpper{{kLevels.words[4], kLevels.words[5], kLevels.words[6], kLevels.words[7]}};
        uint32_t first[4], second[4];
        SIMT_UNROLL
        for (int j = 0; j < 4; ++j) {
            const uint32_t within = within_half(w[j]), half = halves_to_choose(w[j]), bits = high[j] >> 2 * s;
            const uint32_t table = 0x32103210u + (bits & 0x01010101u) * 4 + (bits & 0x02020202u) * 32;
            uint32_t lower[2], upper[2];
            look_up_neighbours(kLower, within, half, lower[0], lower[1]);
            look_up_neighbours(kUpper, within, half, upper[0], upper[1]);
            first[j] = byte_permute(lower[0], upper[0], table);
            second[j] = byte_permute(lower[1], upper[1], table >> 16);
        }
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const SplitScale by(head.template scale<split_factor(TSR_TYPE_IQ5_K)>(s, i),
                                level_bias<formats::kIq5kShift>(head.shifted, 4 * s + 2 * i));
            uint32_t products[2][4];
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j)
                split_products(by.products(i == 0 ? even_bytes(first[j]) : odd_bytes(first[j])),
                               by.products(i == 0 ? even_bytes(second[j]) : odd_bytes(second[j])), products[0][j],
                               products[1][j]);
            to.set_planes(s, row, 2 * i + part, products[0], products[1]);
        }
        to.set_scales(s, row, part, head.d);
    }
};

template <int kParts>
struct SplitWeights<TSR_TYPE_IQ6_K, kParts> {
    using F = Format<TSR_TYPE_IQ6_K>;
    static constexpr int kGroup = 16, kMinimums = 0;
    static_assert(kParts == 2);
    uint32_t w[4], high[4];  // of the segment, and of 128 elements
    uint32_t scales[4];      // by the segment; bytes 0 and 2
    uint32_t shifted;
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace simt;
        using namespace sub_block_bits;
        if (s == 0) {
            uint32_t head[1];
            get_words<F::kAlignment>(block, head);
            get_words<F::kAlignment>(block + 4, scales);
            d = unpack_low<half_t>(head[0]);
            shifted = head[0] >> (16 + part);
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) scales[i] >>= 8 * part;
        }
        get_words<F::kAlignment>(block + 20 + 32 * s + 16 * part, w);
        if (s % 2 == 0) get_words<F::kAlignment>(block + 148 + 16 * s + 16 * part, high);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace sub_block_bits;
        using namespace block_weights;
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const SplitScale by(static_cast<int8_t>(scales[s] >> 16 * i) * split_factor(TSR_TYPE_IQ6_K),
                                level_bias<formats::kIq6kShift>(shifted, 4 * s + 2 * i, Iq6kLevels::kBias));
            uint32_t products[2][4];
            const int shift = 4 * (s % 2) + 2 * i;  // of the high bits
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                const uint32_t upper = shift < 4 ? high[j] << (4 - shift & 31) : high[j] >> (shift - 4 & 31);
                const uint32_t codes = nibbles(w[j], 4 * i) | (upper & 0x30303030u);
                split_alternate(by.products(Iq6kLevels::of<0>(codes)), by.products(Iq6kLevels::of<1>(codes)),
                                products[0][j], products[1][j]);
            }
            to.set_planes(s, row, 2 * i + part, products[0], products[1]);
        }
        to.set_scales(s, row, part, d);
    }
};

}  // namespace tessera::cuda_kernels
