// Sub-blocks of iq1, iq2 and iq3, whose elements are chosen from a codebook eight or four at once
// (tessera/formats/groups.hpp); see sub_block.hpp. The codebooks, of 4 KB at most, are read through the first-level
// cache: they are too large for registers, and a copy in shared memory would be made by every block for the few rows
// that it computes.
#pragma once

#include "sub_block_any.hpp"
#include "sub_block_bits.hpp"

#include <tessera/formats/block_list.hpp>

namespace tessera::cuda_kernels {
namespace sub_block_bits {

// Eight codes of two bits as nibbles.
SIMT_DEVICE uint32_t pairs_to_nibbles(uint32_t codes) {
    codes = (codes | codes << 8) & 0x00FF00FFu;
    codes = (codes | codes << 4) & 0x0F0F0F0Fu;
    return (codes | codes << 2) & 0x33333333u;
}
// Four of three bits.
SIMT_DEVICE uint32_t triples_to_nibbles(uint32_t codes) {
    return (codes & 7u) | (codes << 1 & 0x70u) | (codes << 2 & 0x700u) | (codes << 3 & 0x7000u);
}
// Minus the bytes, none of which is zero, whose bit among the low four of `signs` is set.
SIMT_DEVICE uint32_t with_signs(uint32_t magnitudes, uint32_t signs) {
    const uint32_t minus = bits_to_bytes(signs);
    return (magnitudes ^ minus * 255u) + minus;
}

// Eight elements of an entry of an iq2 grid.
SIMT_DEVICE void signed_eight(uint32_t entry, uint32_t signs, uint32_t* codes) {
    constexpr uint32_t kValues =
        four_values(formats::kIq2Values[0], formats::kIq2Values[1], formats::kIq2Values[2], formats::kIq2Values[3]);
    const uint32_t which = pairs_to_nibbles(entry);
    codes[0] = with_signs(byte_permute(kValues, 0, which), signs);
    codes[1] = with_signs(byte_permute(kValues, 0, which >> 16), signs >> 4);
}
// Four of an entry of an iq3 grid.
SIMT_DEVICE uint32_t signed_four(uint32_t first_values, uint32_t second_values, uint32_t entry, uint32_t signs) {
    return with_signs(byte_permute(first_values, second_values, triples_to_nibbles(entry)), signs);
}
// Eight of an entry of kIq1Grid, times 8: -8, 0 or 8, and 1 more or less.
SIMT_DEVICE void shifted_eight(uint32_t entry, bool down, uint32_t* codes) {
    constexpr uint32_t kUp = four_values(-7, 1, 9, 0), kDown = four_values(-9, -1, 7, 0);
    const uint32_t values = down ? kDown : kUp, which = pairs_to_nibbles(entry);
    codes[0] = byte_permute(values, 0, which);
    codes[1] = byte_permute(values, 0, which >> 16);
}

}  // namespace sub_block_bits

template <>
struct Format<TSR_TYPE_IQ2_XXS> : sub_block_bits::FormatOf<formats::BlockIq2Xxs> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const char* qs = b + 2 + 8 * (pair % 8);
        const uint32_t field = two_at(qs + 4) | two_at(qs + 6) << 16, entries = two_at(qs + 2 * (odd));
        const uint32_t signs = field >> 14 * (odd);
        SubBlock p;
        signed_eight(formats::kIq2XxsGrid[entries & 255], formats::even_signs(signs), p.codes);
        signed_eight(formats::kIq2XxsGrid[entries >> 8], formats::even_signs(signs >> 7), p.codes + 2);
        p.scale = half_at(b) * (0.5f + static_cast<float>(field >> 28)) * 0.25f;
        p.offset = 0;
        return p;
    }
};

namespace sub_block_bits {

// The nibble of a sub-block.
SIMT_DEVICE int nibble_of(const char* nibbles, int sub_block) {
    return static_cast<int>(byte_at(nibbles + sub_block / 2) >> (4 * (sub_block % 2)) & 15);
}

}  // namespace sub_block_bits

template <>
struct Format<TSR_TYPE_IQ2_XS> : sub_block_bits::FormatOf<formats::BlockIq2Xs> {
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b) * 0.125f; }
    SIMT_DEVICE static int integer_scale(const char* b, int h) { return 2 * sub_block_bits::nibble_of(b + 66, h) + 1; }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const uint32_t entry = two_at(b + 2 + 4 * h + 2 * i);
            signed_eight(formats::kIq2XsGrid[entry & 511], formats::even_signs(entry >> 9), p.codes + 2 * i);
        }
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, h));
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ2_S> : sub_block_bits::FormatOf<formats::BlockIq2S> {
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b) * 0.125f; }
    SIMT_DEVICE static int integer_scale(const char* b, int h) { return 2 * sub_block_bits::nibble_of(b + 74, h) + 1; }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        const uint32_t low = two_at(b + 2 + 2 * h), signs = two_at(b + 34 + 2 * h);
        const uint32_t high = byte_at(b + 66 + h / 2) >> 4 * (h % 2);
        SubBlock p;
        signed_eight(formats::kIq2SGrid[(low & 255) | (high & 3) << 8], signs & 255, p.codes);
        signed_eight(formats::kIq2SGrid[low >> 8 | (high & 12) << 6], signs >> 8, p.codes + 2);
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, h));
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ3_XXS> : sub_block_bits::FormatOf<formats::BlockIq3Xxs> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int j = pair % 8, half = odd;
        const uint32_t field = two_at(b + 66 + 4 * j) | two_at(b + 68 + 4 * j) << 16;
        const char* qs = b + 2 + 8 * j + 4 * half;
        const uint32_t entries = two_at(qs) | two_at(qs + 2) << 16;
        const uint32_t signs = formats::even_signs(field >> 14 * half) |
                               static_cast<uint32_t>(formats::even_signs(field >> (14 * half + 7))) << 8;
        constexpr uint32_t kFirst = four_values(formats::kIq3XxsValues[0], formats::kIq3XxsValues[1],
                                                formats::kIq3XxsValues[2], formats::kIq3XxsValues[3]);
        constexpr uint32_t kSecond = four_values(formats::kIq3XxsValues[4], formats::kIq3XxsValues[5],
                                                 formats::kIq3XxsValues[6], formats::kIq3XxsValues[7]);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = signed_four(kFirst, kSecond, formats::kIq3XxsGrid[entries >> 8 * i & 255], signs >> 4 * i);
        p.scale = half_at(b) * (0.5f + static_cast<float>(field >> 28)) * 0.5f;
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ3_S> : sub_block_bits::FormatOf<formats::BlockIq3S> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        const uint32_t entries = two_at(b + 2 + 4 * h) | two_at(b + 4 + 4 * h) << 16;
        const uint32_t ninth = byte_at(b + 66 + h / 2) >> 4 * (h % 2), signs = two_at(b + 74 + 2 * h);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const uint32_t entry = (entries >> 8 * i & 255) | (ninth >> i & 1) << 8;
            p.codes[i] = signed_four(four_values(1, 3, 5, 7), four_values(9, 11, 13, 15), formats::kIq3SGrid[entry],
                                     signs >> 4 * i);
        }
        const uint32_t scale = byte_at(b + 106 + h / 4) >> (4 * (h / 2 % 2)) & 15;
        p.scale = half_at(b) * static_cast<float>(1 + 2 * scale);
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ1_S> : sub_block_bits::FormatOf<formats::BlockIq1S> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        const uint32_t low = two_at(b + 2 + 2 * h), field = two_at(b + 34 + h / 2 * 2), high = field >> 6 * (h % 2);
        SubBlock p;
        shifted_eight(formats::kIq1Grid[(low & 255) | (high & 7) << 8], field >> 15, p.codes);
        shifted_eight(formats::kIq1Grid[low >> 8 | (high >> 3 & 7) << 8], field >> 15, p.codes + 2);
        p.scale = half_at(b) * static_cast<float>(2 * (field >> 12 & 7) + 1) * 0.125f;
        p.offset = 0;
        return p;
    }
};

namespace sub_block_bits {

// Two groups of iq1_m, whose low bits of entries and whose two nibbles are these.
SIMT_DEVICE void two_groups(uint32_t low, uint32_t nibbles, uint32_t (&codes)[4]) {
    shifted_eight(formats::kIq1Grid[(low & 255) | (nibbles & 7) << 8], nibbles >> 3 & 1, codes);
    shifted_eight(formats::kIq1Grid[low >> 8 | (nibbles >> 4 & 7) << 8], nibbles >> 7 & 1, codes + 2);
}

}  // namespace sub_block_bits

template <>
struct Format<TSR_TYPE_IQ1_M> : sub_block_bits::FormatOf<formats::BlockIq1M> {
    // Of the words in which the scales of 16 elements are.
    SIMT_DEVICE static float block_scale(const uint32_t (&fields)[2]) {
        const uint32_t d = (fields[0] >> 12 & 0x000F) | (fields[0] >> 24 & 0x00F0) | (fields[1] >> 4 & 0x0F00) |
                           (fields[1] >> 16 & 0xF000);
        return simt::to_float(simt::half_t{static_cast<uint16_t>(d)});
    }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        uint32_t fields[2];
        words_at<8>(b + 48, fields);
        const uint32_t field = (h < 8 ? fields[0] : fields[1]) >> (h / 4 % 2 == 0 ? 0 : 16);
        SubBlock p;
        two_groups(two_at(b + 2 * h), byte_at(b + 32 + h), p.codes);
        p.scale = block_scale(fields) * 0.125f * static_cast<float>(2 * (field >> 3 * (h % 4) & 7) + 1);
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ1_S_ROW> : sub_block_bits::FormatOf<formats::BlockIq1SRow> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const uint32_t low = two_at(b + 2 * (odd)), field = two_at(b + 4), high = field >> 6 * (odd);
        SubBlock p;
        shifted_eight(formats::kIq1Grid[(low & 255) | (high & 7) << 8], field >> 15, p.codes);
        shifted_eight(formats::kIq1Grid[low >> 8 | (high >> 3 & 7) << 8], field >> 15, p.codes + 2);
        p.scale = row_scale * static_cast<float>(2 * (field >> 12 & 7) + 1) * 0.125f;
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ1_M_ROW> : sub_block_bits::FormatOf<formats::BlockIq1MRow> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int half = odd;
        SubBlock p;
        two_groups(byte_at(b + 2 * half) | byte_at(b + 2 * half + 1) << 8, byte_at(b + 4 + half), p.codes);
        p.scale = row_scale * static_cast<float>(byte_at(b + 6) >> 4 * half & 15) * 0.125f;
        p.offset = 0;
        return p;
    }
};

}  // namespace tessera::cuda_kernels
