// Weights on their way from global to shared memory, as tiles_blocks.hpp multiplies them: 256 elements after another,
// segment by segment of 64. Eight blocks of 32 elements are taken for one of 256.
#pragma once

#include "kernels/cuda/formats/sub_block_bits.hpp"
#include "kernels/cuda/matmul/tile_rows.hpp"
#include "swizzle.hpp"

namespace tessera::cuda_kernels {

// What a block of threads has of the weight: two segments, and what belongs to a block of 256 elements.
template <int kOutputs, int kGroups, int kMinimumSets>
struct BlockShared {
    simt::UInt4 codes[2][kOutputs * 4];  // see swizzled
    // Of each group of a segment; rows of 16 banks more, so that two groups are stored at once.
    alignas(8) float scales[2][kGroups][kOutputs + 16];
    alignas(8) float bias[2][kOutputs];  // a part of what kMagic adds over a block
    simt::UInt4 minimums[kMinimumSets == 0 ? 1 : kMinimumSets][kMinimumSets == 0 ? 1 : kOutputs];  // 8 in f16

    // Before the first segment, by all threads: of formats that look something up.
    SIMT_DEVICE void begin() {}
    SIMT_DEVICE void set_codes(int segment, int row, int sub_block, const uint32_t (&words)[4]) {
        codes[segment % 2][swizzled(row, sub_block)] = simt::UInt4{words[0], words[1], words[2], words[3]};
    }
    // Of formats with a scale for 16 elements, which is `d` times an integer: a sub-block; what belongs to a segment of
    // it, with the sum of the integers of all sub-blocks of a block that the part decodes.
    SIMT_DEVICE void set_sub_block(int segment, int row, int sub_block, const uint32_t (&words)[4], int scale,
                                   float d) {
        set_codes(segment, row, sub_block, words);
        scales[segment % 2][sub_block][row] = d * static_cast<float>(scale);
    }
    SIMT_DEVICE void set_scales(int segment, int row, int part, float d, int sum) {
        if (segment == 0) bias[part][row] = kMagic * d * static_cast<float>(sum);
    }
};

// BlockWeights<type, parts> is what one of the `parts` threads (1 or 2) of a row of the weight holds of a segment:
//
//   kGroup                              elements that share a scale; at most 64
//   kMinimums                           minimums of a block, 0, 8 or 16, which are stored with a minus, or offsets
//   begin()                             before the first load, by all threads, of formats that need it
//   load(block, row_scale, s, part)     segment s of 4 of a block from memory; segments follow one another
//   store(shared, s, row, part)         decoded to shared memory, of the segment that was loaded last
//
// The bias is kMagic times the scales of all integer sums, which are of 32 elements, of 16 with a scale for each, or of
// 64 if they are split.
template <int kType, int kParts>
struct BlockWeights;

namespace block_weights {

inline constexpr int kSubBlocksOfBlock = 16;

// What scales of a format are in shared memory for a scale of 1. Those of mxfp4 go up to 2^126, and eight of them times
// kMagic have to stay finite; up to 2^-100 they become zero.
template <int kType>
inline constexpr float kScaleUnit = kType == TSR_TYPE_MXFP4 ? 1.f / (1 << 27) : 1.f;
// The bits of 2^(e - 128) times the unit, or zero.
SIMT_DEVICE float mxfp4_scale(uint32_t e) {
    return simt::bits_as<float>(simt::maximum(static_cast<int>(e) - 28, 0) << 23);
}
// Of 32 elements.
template <int kType>
SIMT_DEVICE float scale_of(const char* block, int pair, float row_scale) {
    using F = Format<kType>;
    if constexpr (kType == TSR_TYPE_MXFP4) {
        return mxfp4_scale(sub_block_bits::byte_at(F::block(block, static_cast<unsigned>(pair))));
    } else {
        return F::at(block, static_cast<unsigned>(pair), 0, row_scale).scale;
    }
}

// Any format by its sub-blocks. A thread of two has the first or the second 32 elements.
template <int kType, int kParts, int kScaleElements = Format<kType>::kScaleElements>
struct OfSubBlocks {
    using F = Format<kType>;
    static constexpr int kGroup = 32, kMinimums = F::kOffsets ? 8 : 0, kSubBlocks = 4 / kParts,
                         kScales = kSubBlocks / 2;
    static_assert(kScaleElements == kGroup && (!F::kOffsets || kParts == 1));

    uint32_t codes[kSubBlocks][4];
    float scales[kScales], bias;
    uint32_t offsets[4];  // of the segments of a block, two in f16, as which blocks of 32 have them

    SIMT_DEVICE void load(const char* block, float row_scale, int s, int part) {
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) {
            const int pair = 2 * s + kScales * part + i / 2;
            const SubBlock p = F::at(block, static_cast<unsigned>(pair), static_cast<unsigned>(i) % 2, row_scale);
            SIMT_UNROLL
            for (int w = 0; w < 4; ++w) codes[i][w] = p.codes[w];
            scales[i / 2] = scale_of<kType>(block, pair, row_scale);
        }
        if constexpr (F::kOffsets) {
            const auto pair = static_cast<unsigned>(2 * s);
            offsets[s] = simt::pack<simt::half_t>(F::at(block, pair, 0, row_scale).offset,
                                                  F::at(block, pair + 1, 0, row_scale).offset);
        }
        if (s != 0) return;
        // Of these calls only what gives the scale is left.
        float sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocksOfBlock / kParts; i += 2)
            sum += scale_of<kType>(block, (part * kSubBlocksOfBlock / kParts + i) / 2, row_scale);
        bias = kMagic * sum;
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) to.set_codes(s, row, part * kSubBlocks + i, codes[i]);
        SIMT_UNROLL
        for (int i = 0; i < kScales; ++i) to.scales[s % 2][part * kScales + i][row] = scales[i];
        if (s == 0) to.bias[part][row] = bias;
        if constexpr (F::kOffsets) {
            if (s == 3) to.minimums[0][row] = simt::UInt4{offsets[0], offsets[1], offsets[2], offsets[3]};
        }
    }
};
template <int kType, int kParts>
struct OfSubBlocks<kType, kParts, 16> {
    using F = Format<kType>;
    static constexpr int kGroup = 16, kMinimums = 0, kSubBlocks = 4 / kParts;
    static_assert(!F::kOffsets && F::kBlockElements == kBlockElements && F::kPrefixBytes == 0);

    uint32_t codes[kSubBlocks][4];
    int scales[kSubBlocks], sum;
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) {
            const int sub_block = 4 * s + part * kSubBlocks + i;
            const SubBlock p = F::at(block, static_cast<unsigned>(sub_block) / 2, static_cast<unsigned>(i) % 2, 1.f);
            SIMT_UNROLL
            for (int w = 0; w < 4; ++w) codes[i][w] = p.codes[w];
            scales[i] = F::integer_scale(block, sub_block);
        }
        if (s != 0) return;
        d = F::block_scale(block);
        sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocksOfBlock / kParts; ++i)
            sum += F::integer_scale(block, part * kSubBlocksOfBlock / kParts + i);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) to.set_sub_block(s, row, part * kSubBlocks + i, codes[i], scales[i], d);
        to.set_scales(s, row, part, d, sum);
    }
};

// Of the formats below a thread of two has every second sub-block, in which the bytes are the same that hold the first
// and the second 32 elements.
template <int kType, int kParts>
struct Halves {
    using F = Format<kType>;
    static constexpr int kCount = 2 / kParts, kWords = 4 * kCount;  // sub-blocks of each half, and their words

    // Words of sub-blocks `part`, or of both, of 32 bytes.
    template <int kAlignment>
    SIMT_DEVICE static void get(const char* from, int part, uint32_t (&words)[kWords]) {
        sub_block_bits::get_words<kAlignment>(from + 16 * part, words);
    }
    // Codes of sub-block i of half `half` of a segment.
    template <class Shared>
    SIMT_DEVICE static void set(Shared& to, int s, int row, int part, int half, const uint32_t (&words)[kWords]) {
        SIMT_UNROLL
        for (int i = 0; i < kCount; ++i) {
            const uint32_t sub_block[4] = {words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]};
            to.set_codes(s, row, 2 * half + part + i, sub_block);
        }
    }
};

SIMT_DEVICE float byte_of(uint32_t word, int byte) {
    return static_cast<float>(word >> 8 * byte & 255);
}
// The sum of four signed bytes.
SIMT_DEVICE int integer_sum_of_bytes(uint32_t word, int sum = 0) {
    return simt::dp4a(static_cast<int>(word), 0x01010101, sum);
}
SIMT_DEVICE float sum_of_bytes(uint32_t word) {
    return static_cast<float>(integer_sum_of_bytes(word));
}
// `factor` times four bytes, as f16.
SIMT_DEVICE void four_halves(float factor, uint32_t bytes, uint32_t (&halves)[2]) {
    using namespace simt;
    SIMT_UNROLL
    for (int i = 0; i < 2; ++i)
        halves[i] = pack<half_t>(factor * byte_of(bytes, 2 * i), factor * byte_of(bytes, 2 * i + 1));
}

// Scales and minimums of q4_K and q5_K: the first 16 bytes of a block, kept while it is worked on.
template <int kParts>
struct SixBits {
    uint32_t head[4];

    SIMT_DEVICE void load(const char* block) { sub_block_bits::get_words<16>(block, head); }
    // Of groups 0 to 3 or 4 to 7.
    SIMT_DEVICE uint32_t scales(int upper) const {
        return upper ? (head[3] & 0x0F0F0F0Fu) | (head[1] >> 2 & 0x30303030u) : head[1] & 0x3F3F3F3Fu;
    }
    SIMT_DEVICE uint32_t minimums(int upper) const {
        return upper ? (head[3] >> 4 & 0x0F0F0F0Fu) | (head[2] >> 2 & 0x30303030u) : head[2] & 0x3F3F3F3Fu;
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace simt;
        const float d = unpack_low<half_t>(head[0]);
        SIMT_UNROLL
        for (int i = 0; i < 2 / kParts; ++i)
            to.scales[s % 2][part + i][row] = d * byte_of(scales(s / 2), s % 2 * 2 + part + i);
        if (s == 0)
            to.bias[part][row] =
                kMagic * d *
                (kParts == 2 ? sum_of_bytes(scales(part)) : sum_of_bytes(scales(0)) + sum_of_bytes(scales(1)));
        if (s != 3) return;
        SIMT_UNROLL
        for (int i = 0; i < 2 / kParts; ++i) {
            uint32_t halves[2];
            four_halves(-unpack_high<half_t>(head[0]), minimums(part + i), halves);
            *at<UInt2>(static_cast<void*>(&to.minimums[0][row]), 8 * (part + i)) = UInt2{halves[0], halves[1]};
        }
    }
};

}  // namespace block_weights

template <int kType, int kParts>
struct BlockWeights : block_weights::OfSubBlocks<kType, kParts> {};

template <int kParts>
struct BlockWeights<TSR_TYPE_Q4_K, kParts> : block_weights::Halves<TSR_TYPE_Q4_K, kParts> {
    using Base = block_weights::Halves<TSR_TYPE_Q4_K, kParts>;
    static constexpr int kGroup = 32, kMinimums = 8;
    block_weights::SixBits<kParts> head;
    uint32_t w[Base::kWords];

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        if (s == 0) head.load(block);
        Base::template get<16>(block + 16 + 32 * s, part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t codes[Base::kWords];
            SIMT_UNROLL
            for (int i = 0; i < Base::kWords; ++i) codes[i] = sub_block_bits::nibbles(w[i], 4 * half);
            Base::set(to, s, row, part, half, codes);
        }
        head.store(to, s, row, part);
    }
};

template <int kParts>
struct BlockWeights<TSR_TYPE_Q5_K, kParts> : block_weights::Halves<TSR_TYPE_Q5_K, kParts> {
    using Base = block_weights::Halves<TSR_TYPE_Q5_K, kParts>;
    static constexpr int kGroup = 32, kMinimums = 8;
    block_weights::SixBits<kParts> head;
    uint32_t w[Base::kWords], high[Base::kWords];

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        if (s == 0) {
            head.load(block);
            Base::template get<16>(block + 16, part, high);
        }
        Base::template get<16>(block + 48 + 32 * s, part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t codes[Base::kWords];
            const int bit = 2 * s + half;
            SIMT_UNROLL
            for (int i = 0; i < Base::kWords; ++i) {
                const uint32_t fifth = bit < 4 ? high[i] << (4 - bit & 31) : high[i] >> (bit - 4 & 31);
                codes[i] = sub_block_bits::nibbles(w[i], 4 * half) | (fifth & 0x10101010u);
            }
            Base::set(to, s, row, part, half, codes);
        }
        head.store(to, s, row, part);
    }
};

template <int kParts>
struct BlockWeights<TSR_TYPE_Q6_K, kParts> : block_weights::Halves<TSR_TYPE_Q6_K, kParts> {
    using Base = block_weights::Halves<TSR_TYPE_Q6_K, kParts>;
    static constexpr int kGroup = 16, kMinimums = 0;
    // Bytes of 128 elements: the low bits of sub-blocks 0 to 1 and 4 to 5, of 2 to 3 and 6 to 7, and the high bits of
    // all.
    uint32_t low[2][Base::kWords], high[Base::kWords], scales[4];
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace sub_block_bits;
        if (s == 0) {
            get_words<2>(block + 192, scales);
            d = Base::F::block_scale(block);
        }
        if (s % 2 == 1) return;
        Base::template get<2>(block + 32 * s, part, low[0]);
        Base::template get<2>(block + 32 * s + 32, part, low[1]);
        Base::template get<2>(block + 128 + 16 * s, part, high);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace block_weights;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t codes[Base::kWords];
            const int shift = 4 * (s % 2) + 2 * half;  // of the high bits
            SIMT_UNROLL
            for (int i = 0; i < Base::kWords; ++i) {
                const uint32_t nibble = s % 2 == 0 ? low[half][i] << 2 : low[half][i] >> 2;
                codes[i] = (nibble & 0x3C3C3C3Cu) | sub_block_bits::centred(high[i] << (6 - shift) & 0xC0C0C0C0u);
            }
            SIMT_UNROLL
            for (int i = 0; i < Base::kCount; ++i) {
                const uint32_t sub_block[4] = {codes[4 * i], codes[4 * i + 1], codes[4 * i + 2], codes[4 * i + 3]};
                const int at = 2 * half + part + i;
                to.set_sub_block(s, row, at, sub_block, static_cast<int8_t>(scales[s] >> 8 * at), d);
            }
        }
        int sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < 4; i += kParts)
            sum = integer_sum_of_bytes(kParts == 2 && part == 1 ? scales[i + kParts - 1] : scales[i], sum);
        to.set_scales(s, row, part, d, sum);
    }
};

// Two bits times a scale of four fit into int8: only blocks have a scale.
template <int kParts>
struct BlockWeights<TSR_TYPE_Q2_K, kParts> : block_weights::Halves<TSR_TYPE_Q2_K, kParts> {
    using Base = block_weights::Halves<TSR_TYPE_Q2_K, kParts>;
    static constexpr int kGroup = 64, kMinimums = 16;
    uint32_t w[Base::kWords], scales[4], d[1];

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace sub_block_bits;
        if (s == 0) {
            get_words<4>(block, scales);
            get_words<4>(block + 80, d);
        }
        if (s % 2 == 0) Base::template get<4>(block + 16 + 16 * s, part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace simt;
        using namespace block_weights;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t codes[Base::kWords];
            SIMT_UNROLL
            for (int i = 0; i < Base::kWords; ++i) {
                const uint32_t scale = scales[s] >> 8 * (2 * half + part + i / 4) & 15;
                codes[i] = sub_block_bits::bit_pairs(w[i], 4 * (s % 2) + 2 * half) * scale;
            }
            Base::set(to, s, row, part, half, codes);
        }
        const float scale = unpack_low<half_t>(d[0]);
        if (part == 0) to.scales[s % 2][0][row] = scale;
        if (s == 0) to.bias[part][row] = kMagic * scale * (8 / kParts);
        if (s != 1 && s != 2) return;
        SIMT_UNROLL
        for (int i = 0; i < 2 / kParts; ++i) {
            uint32_t halves[2];
            const uint32_t of = part + i == 0 ? scales[2 * s - 2] : scales[2 * s - 1];
            four_halves(-unpack_high<half_t>(d[0]), of >> 4 & 0x0F0F0F0Fu, halves);
            *at<UInt2>(static_cast<void*>(&to.minimums[s - 1][row]), 8 * (part + i)) = UInt2{halves[0], halves[1]};
        }
    }
};

// Likewise three bits less 4 times a scale of six bits less 32, but for the sign: the scale of a block has a minus.
template <int kParts>
struct BlockWeights<TSR_TYPE_Q3_K, kParts> : block_weights::Halves<TSR_TYPE_Q3_K, kParts> {
    using Base = block_weights::Halves<TSR_TYPE_Q3_K, kParts>;
    static constexpr int kGroup = 64, kMinimums = 0;
    uint32_t w[Base::kWords], high[Base::kWords], scales[3];
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace sub_block_bits;
        if (s == 0) {
            Base::template get<2>(block, part, high);
            get_words<2>(block + 96, scales);
            d = -half_at(block + 108);
        }
        if (s % 2 == 0) Base::template get<2>(block + 32 + 16 * s, part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        // Six bits of the four scales of the segment.
        const uint32_t six = (s < 2 ? scales[s % 2] & 0x0F0F0F0Fu : scales[s % 2] >> 4 & 0x0F0F0F0Fu) |
                             (scales[2] >> 2 * s & 0x03030303u) << 4;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t codes[Base::kWords];
            const int bit = 2 * s + half;
            SIMT_UNROLL
            for (int i = 0; i < Base::kWords; ++i) {
                const uint32_t third = bit < 2 ? high[i] << (2 - bit & 31) : high[i] >> (bit - 2 & 31);
                const uint32_t code = sub_block_bits::bit_pairs(w[i], 4 * (s % 2) + 2 * half) | (third & 0x04040404u);
                // (4 - code) * scale + 128 lies in 0 .. 252: four bytes at once, whatever is carried between them.
                const uint32_t scale = (six >> 8 * (2 * half + part + i / 4) & 63) - 32;
                codes[i] = sub_block_bits::centred(code * (0 - scale) + (4 * scale + 128) * 0x01010101u);
            }
            Base::set(to, s, row, part, half, codes);
        }
        if (part == 0) to.scales[s % 2][0][row] = d;
        if (s == 0) to.bias[part][row] = kMagic * d * (8 / kParts);
    }
};

// A thread of two has a group of 32, in the low and high nibbles of 16 bytes.
template <int kParts>
struct BlockWeights<TSR_TYPE_IQ4_XS, kParts> {
    using F = Format<TSR_TYPE_IQ4_XS>;
    static constexpr int kGroup = 32, kMinimums = 0, kCount = 2 / kParts;
    uint32_t w[4 * kCount], head[2];

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        if (s == 0) sub_block_bits::get_words<8>(block, head);
        sub_block_bits::get_words<8>(block + 8 + 32 * s + 16 * part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace simt;
        using namespace sub_block_bits;
        constexpr Table16 kTable = table16(formats::kIq4Values);
        const float d = unpack_low<half_t>(head[0]);
        SIMT_UNROLL
        for (int i = 0; i < kCount; ++i) {
            uint32_t low[4], high[4];
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) look_up(kTable, w[4 * i + j], low[j], high[j]);
            to.set_codes(s, row, 2 * (part + i), low);
            to.set_codes(s, row, 2 * (part + i) + 1, high);
            const int group = 2 * s + part + i;
            const uint32_t scale = (head[1] >> 4 * group & 15) | (head[0] >> (16 + 2 * group) & 3) << 4;
            to.scales[s % 2][part + i][row] = d * static_cast<float>(static_cast<int>(scale) - 32);
        }
        if (s != 0) return;
        // The sum of the scales: of the nibbles, and of the pairs of bits above them.
        const uint32_t pairs = head[0] >> 16, four = (pairs & 0x3333u) + (pairs >> 2 & 0x3333u);
        const uint32_t nibbles = (head[1] & 0x0F0F0F0Fu) + (head[1] >> 4 & 0x0F0F0F0Fu);
        const uint32_t upper = (four & 0x0F0Fu) + (four >> 4 & 0x0F0Fu);
        const int sum =
            dp4a(static_cast<int>(nibbles), 0x01010101, -8 * 32) + dp4a(static_cast<int>(upper), 0x10101010, 0);
        to.bias[part][row] = part == 0 ? kMagic * d * static_cast<float>(sum) : 0.f;
    }
};

}  // namespace tessera::cuda_kernels
