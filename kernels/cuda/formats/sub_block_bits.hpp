// What decoding of the block formats is made of (sub_block.hpp). Loads are plain ones, so that blocks may lie in global
// or in shared memory. Freestanding.
#pragma once

#include "block_formats.hpp"

#include <tessera/cuda/simt.hpp>
#include <tessera/formats/block_list.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/types.h>

namespace tessera::cuda_kernels {

// 16 neighbouring elements of a row of a weight: element i is scale * code[i] + offset. Codes are int8, four a word in
// the order of the elements, the first in the low bits.
struct SubBlock {
    uint32_t codes[4];
    float scale, offset;
};
inline constexpr int kSubBlockElements = 16;

// Format<type> for each type of TSR_BLOCK_TYPES (sub_block_any.hpp has that of any type; those by hand specialise it):
//
//   kBlockBytes, kBlockElements, kPrefixBytes   as in types.h
//   kOffsets         whether offsets may be other than zero: products then need sums of activations
//   kScaleElements   32: the two sub-blocks of 32 aligned elements share scale and offset; 16: they need not
//   float row_scale(row)                       of formats that have one at the beginning of a row, else 1
//   SubBlock at(blocks, pair, odd, row_scale)  sub-block 2 * pair + odd of the blocks that begin at `blocks`;
//                                              two calls with one pair share what they can
//   SubBlock load(row, sub_block)              sub-block `sub_block` of a whole row, its prefix included
//
// Of formats with blocks of 256 elements whose scales are those of 16 elements (but q2_K and q3_K), the scale of
// sub-block h of the block at b is block_scale(b) * integer_scale(b, h), an int8.
//
// Blocks are aligned as a file's rows are: to the largest power of two, up to 16, that divides prefix and block. Exact:
// scale * code + offset is what formats::decode gives, but for the rounding of the last multiplication or addition.
template <int kType>
struct Format;

// What a lane takes at once of the blocks that begin at `blocks`: kSubBlocks sub-blocks; sub-block i of a unit is
// number index(unit, i). kNeighbours: sub-blocks 2 i and 2 i + 1 are the halves of 32 aligned elements.
template <int kType>
struct PairUnits {
    static constexpr int kSubBlocks = 2;
    static constexpr bool kNeighbours = true;
    SIMT_DEVICE static unsigned index(unsigned unit, int i) { return 2 * unit + static_cast<unsigned>(i); }
    SIMT_DEVICE static void load(const char* blocks, unsigned unit, float row_scale,
                                 SubBlock (&sub_blocks)[kSubBlocks]) {
        sub_blocks[0] = Format<kType>::at(blocks, unit, 0, row_scale);
        sub_blocks[1] = Format<kType>::at(blocks, unit, 1, row_scale);
    }
};
template <int kType>
struct Units : PairUnits<kType> {};

// 32 elements of formats for which reads_interleaved(): 16 bytes, in whose low nibbles are the first 16 elements, and
// the levels that nibbles choose, as a sum of two look-ups. Format::nibbles_at(blocks, pair, row_scale) gives it.
struct Table16 {
    uint32_t words[4];
};
struct NibbleLevels {
    uint32_t words[4];
    Table16 levels;
    float scale;
};

namespace sub_block_bits {

using simt::byte_permute;

template <class T>
SIMT_DEVICE T get(const char* from) {
    return *reinterpret_cast<const T*>(from);
}
SIMT_DEVICE uint32_t byte_at(const char* from) {
    return get<uint8_t>(from);
}
SIMT_DEVICE uint32_t two_at(const char* from) {
    return get<uint16_t>(from);
}
SIMT_DEVICE float half_at(const char* from) {
    return simt::to_float(get<simt::half_t>(from));
}

// 4 * kCount bytes at an address that is a multiple of kAlignment. Reads words of 4 bytes and nothing past the end; up
// to three bytes before `from` may be read, within the word that it lies in.
template <int kAlignment, int kCount>
SIMT_DEVICE void get_words(const char* from, uint32_t (&words)[kCount]) {
    if constexpr (kAlignment >= 16 && kCount % 4 == 0) {
        SIMT_UNROLL
        for (int i = 0; i < kCount; i += 4) {
            const auto four = get<simt::UInt4>(from + 4 * i);
            words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
        }
    } else if constexpr (kAlignment >= 8 && kCount % 2 == 0) {
        SIMT_UNROLL
        for (int i = 0; i < kCount; i += 2) {
            const auto two = get<simt::UInt2>(from + 4 * i);
            words[i] = two.x, words[i + 1] = two.y;
        }
    } else if constexpr (kAlignment >= 4) {
        SIMT_UNROLL
        for (int i = 0; i < kCount; ++i) words[i] = get<uint32_t>(from + 4 * i);
    } else {
        const auto past = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & (4 - kAlignment));
        const char* aligned = from - past;
        SIMT_UNROLL
        for (int i = 0; i < kCount; ++i) words[i] = get<uint32_t>(aligned + 4 * i);
        const char* end = aligned + 4 * kCount;
        uint32_t last = 0;
        if constexpr (kAlignment == 2) {
            if (past) last = two_at(end);
        } else {
            if (past > 0) last = byte_at(end);
            if (past > 1) last |= byte_at(end + 1) << 8;
            if (past > 2) last |= byte_at(end + 2) << 16;
        }
        const uint32_t selector = 0x3210u + 0x1111u * past;
        SIMT_UNROLL
        for (int i = 0; i < kCount; ++i)
            words[i] = byte_permute(words[i], i + 1 < kCount ? words[i + 1] : last, selector);
    }
}

template <class Block>
constexpr int alignment_of_blocks() {
    const int both = static_cast<int>(sizeof(Block)) | static_cast<int>(formats::kPrefixBytes<Block>);
    return both % 16 == 0 ? 16 : both & -both;
}

// What all formats have.
template <class Block>
struct FormatOf {
    static constexpr int kBlockBytes = sizeof(Block), kBlockElements = Block::kElements;
    static constexpr int kPrefixBytes = formats::kPrefixBytes<Block>;
    static constexpr int kAlignment = alignment_of_blocks<Block>();
    static constexpr bool kOffsets = Block::kOffsets;
    static constexpr int kScaleElements = Block::kScaleElements;

    SIMT_DEVICE static float row_scale(const char* row) {
        if constexpr (kPrefixBytes == 2) {
            if constexpr (kAlignment == 1) {
                return simt::to_float(simt::half_t{static_cast<uint16_t>(byte_at(row) | byte_at(row + 1) << 8)});
            } else {
                return half_at(row);
            }
        } else if constexpr (kPrefixBytes != 0) {
            static_assert(sizeof(typename Block::RowScale) == 4);
            return get<float>(row);
        } else {
            return 1;
        }
    }
    SIMT_DEVICE static const char* block(const char* blocks, unsigned pair) {
        return blocks + pair / (kBlockElements / 32) * kBlockBytes;
    }
    SIMT_DEVICE static SubBlock load(const char* row, unsigned sub_block) {
        return Format<static_cast<int>(Block::kType)>::at(row + kPrefixBytes, sub_block / 2, sub_block % 2,
                                                          row_scale(row));
    }

  protected:
    // kCount words at a place in a block that is a multiple of kMultiple bytes from its beginning.
    template <int kMultiple, int kCount>
    SIMT_DEVICE static void words_at(const char* from, uint32_t (&words)[kCount]) {
        get_words<(kAlignment < kMultiple ? kAlignment : kMultiple)>(from, words);
    }
};

// The low or, with shift 4, the high nibbles of four bytes.
SIMT_DEVICE uint32_t nibbles(uint32_t word, int shift) {
    return word >> shift & 0x0F0F0F0Fu;
}
// Two bits of each of four bytes.
SIMT_DEVICE uint32_t bit_pairs(uint32_t word, int shift) {
    return word >> shift & 0x03030303u;
}
// Bit i of four bits to the lowest bit of byte i, or to its highest bit.
SIMT_DEVICE uint32_t bits_to_bytes(uint32_t bits) {
    return (bits & 15) * 0x00204081u & 0x01010101u;
}
SIMT_DEVICE uint32_t bits_to_high_bits(uint32_t bits) {
    return (bits & 15) * 0x10204080u & 0x80808080u;
}
SIMT_DEVICE uint32_t rotated(uint32_t word, int left) {
    return word << left | word >> (32 - left & 31);
}
// Codes of n bits in the upper bits of each byte, from which half of their range is taken: 2^(8 - n) times the
// difference.
SIMT_DEVICE uint32_t centred(uint32_t upper_bits) {
    return upper_bits ^ 0x80808080u;
}

// Four int8 as a word, the first in the low bits.
constexpr uint32_t four_values(int a, int b, int c, int d) {
    return (static_cast<uint32_t>(a) & 255) | (static_cast<uint32_t>(b) & 255) << 8 |
           (static_cast<uint32_t>(c) & 255) << 16 | (static_cast<uint32_t>(d) & 255) << 24;
}

// 16 int8 that nibbles choose from, with something added.
constexpr Table16 table16(const int8_t (&values)[16], int shift = 0) {
    Table16 table{};
    for (int i = 0; i < 4; ++i)
        table.words[i] = four_values(values[4 * i] + shift, values[4 * i + 1] + shift, values[4 * i + 2] + shift,
                                     values[4 * i + 3] + shift);
    return table;
}

// How nibbles choose from a table: their lower three bits within a half of it, and which half, to choose bytes by.
SIMT_DEVICE uint32_t within_half(uint32_t word) {
    return word & 0x77777777u;
}
SIMT_DEVICE uint32_t halves_to_choose(uint32_t word) {
    return (word & 0x88888888u) >> 1 | 0x32103210u;
}
// The values of the eight nibbles of a word in their order: of the lower four and of the upper four.
SIMT_DEVICE void look_up_neighbours(const Table16& table, uint32_t within, uint32_t half, uint32_t& first,
                                    uint32_t& second) {
    first = byte_permute(byte_permute(table.words[0], table.words[1], within),
                         byte_permute(table.words[2], table.words[3], within), half);
    second = byte_permute(byte_permute(table.words[0], table.words[1], within >> 16),
                          byte_permute(table.words[2], table.words[3], within >> 16), half >> 16);
}
// The same, of those in the low halves of the bytes, and of those in the high halves.
SIMT_DEVICE void look_up(const Table16& table, uint32_t word, uint32_t& low, uint32_t& high) {
    uint32_t first, second;
    look_up_neighbours(table, within_half(word), halves_to_choose(word), first, second);
    low = byte_permute(first, second, 0x6420);
    high = byte_permute(first, second, 0x7531);
}

// The values of one half of the nibbles of a block of 32: those of elements 0 to 15, or with `odd` of 16 to 31.
SIMT_DEVICE void look_up_half(const Table16& table, const uint32_t (&words)[4], unsigned odd, uint32_t (&codes)[4]) {
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        uint32_t low, high;
        look_up(table, words[i], low, high);
        codes[i] = odd == 0 ? low : high;
    }
}

// A table whose lower eight values and upper eight values can be looked up one by one for all nibbles: what
// byte_permute gives for a nibble of the other eight is 0 or -1, and is made up for in the values. Their sum is the
// value.
constexpr Table16 sum_table(const int8_t (&values)[16], int shift = 0) {
    int8_t halves[16] = {};
    for (int i = 0; i < 8; ++i) {
        const int low = values[i] + shift, high = values[i + 8] + shift;
        for (int signs = 0; signs < 4; ++signs) {
            const int of_low = signs % 2, of_high = signs / 2;  // 1: negative
            if ((low + of_high < 0) != (of_low == 1) || (high + of_low < 0) != (of_high == 1)) continue;
            halves[i] = static_cast<int8_t>(low + of_high);
            halves[i + 8] = static_cast<int8_t>(high + of_low);
        }
    }
    return table16(halves);
}
constexpr bool is_sum_table(const Table16& table, const int8_t (&values)[16], int shift) {
    for (int i = 0; i < 16; ++i) {
        const auto byte = [&](int at) { return static_cast<int8_t>(table.words[at / 4] >> 8 * (at % 4)); };
        if (byte(i) - (byte((i + 8) % 16) < 0 ? 1 : 0) != values[i] + shift) return false;
    }
    return true;
}

// Four bytes below 16 as nibbles of the low half of the result; its upper half is anything.
SIMT_DEVICE uint32_t bytes_to_nibbles(uint32_t bytes) {
    return byte_permute(bytes | bytes >> 4, 0, 0x4420);
}
// The values that the four low nibbles of `which` choose from eight, and from sixteen.
SIMT_DEVICE uint32_t choose8(uint32_t first, uint32_t second, uint32_t which) {
    return byte_permute(first, second, which);
}
SIMT_DEVICE uint32_t choose16(const Table16& table, uint32_t which) {
    const uint32_t within = which & 0x7777u;
    return byte_permute(byte_permute(table.words[0], table.words[1], within),
                        byte_permute(table.words[2], table.words[3], within), (which & 0x8888u) >> 1 | 0x3210u);
}
// The bytes of `b` where the lowest bit of a byte of `bits` (0 or 1) is set, else those of `a`.
SIMT_DEVICE uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t bits) {
    const uint32_t mask = bits * 255u;
    return (a & ~mask) | (b & mask);
}

}  // namespace sub_block_bits

// Element `byte` of a word of codes of the sub-block.
SIMT_DEVICE float value_of(const SubBlock& p, uint32_t word, int byte) {
    return static_cast<float>(static_cast<int8_t>(word >> 8 * byte)) * p.scale + p.offset;
}
// Element i of a row of floats.
template <int kType>
SIMT_DEVICE float float_element(const char* row, int64_t i) {
    static_assert(kType == TSR_TYPE_F32 || kType == TSR_TYPE_F16 || kType == TSR_TYPE_BF16);
    if constexpr (kType == TSR_TYPE_F32) {
        return reinterpret_cast<const float*>(row)[i];
    } else if constexpr (kType == TSR_TYPE_F16) {
        return simt::to_float(reinterpret_cast<const simt::half_t*>(row)[i]);
    } else {
        return simt::to_float(reinterpret_cast<const simt::bfloat16_t*>(row)[i]);
    }
}

}  // namespace tessera::cuda_kernels
