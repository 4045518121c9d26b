// Rows of a weight as the first operand of mma with int8, for products with few rows (few_rows_mma.hpp): what the lanes
// of a warp take of 64 elements, two groups of 32, of 16 rows that lie in shared memory.
//
// Lane (g, t) = (lane / 4, lane % 4) has rows g and g + 8. Of a group it has two words: elements 4 t to 4 t + 3 and
// those 16 further; of formats for which reads_interleaved() elements 4 t, 16 + 4 t, 4 t + 1, 17 + 4 t and the four
// that follow. Activations lie so that what belongs to these is found at once (matmul/column_places.hpp).
#pragma once

#include "sub_block_bits.hpp"

namespace tessera::cuda_kernels {

// 64 elements of a row: words and scales of group i from 2 i on. Where a scale serves 32 elements, only scales[2 i] and
// offsets[2 i] are set.
struct MmaWords {
    uint32_t codes[4];
    uint32_t more[4];  // of units with kSums: codes are the sums of both
    float scales[4], offsets[4];
};

// MmaUnit<type>:
//
//   kSharedBytes     of the warp's memory, a multiple of 16, at a multiple of 16
//   MmaUnit(shared)  that memory; all lanes make one
//   begin(at, row_bytes, row_scale)
//                    before a block of 256 elements of each row is read: row r begins at `at` + r * row_bytes
//   kFactor          by which products are to be multiplied besides
//   kByHand          whether it is not that of any format, which needs more registers
//   kSums            whether codes are sums (sub_block_bits::sum_table)
//   load(at, far, pair, scales, first, second)
//                    elements 64 * pair and so on of the rows that begin at `at`, row g, and at `far`, row g + 8, whose
//                    scales are `scales`
//
// All lanes call these. That of any format decodes sub-blocks, of each row one a lane, and exchanges them.
struct MmaRowScales {
    float near, far;
};
template <int kType>
struct MmaUnit {
    using F = Format<kType>;
    // 16 rows of four sub-blocks; and their scales and offsets.
    static constexpr unsigned kCodes = 16 * 64, kNumbers = 16 * 16;
    static constexpr unsigned kSharedBytes = kCodes + kNumbers * (F::kOffsets ? 2 : 1);
    static constexpr float kFactor = 1;
    static constexpr bool kSums = false, kByHand = false;

    SIMT_DEVICE MmaUnit(char* shared) : shared_(shared) {
        const unsigned g = simt::lane() / 4, t = simt::lane() % 4;
        // Sub-blocks of neighbouring rows lie in another order, so that lanes do not meet in a bank.
        to_ = shared + 64 * g + 16 * (t ^ (g / 2 & 3));
        from_ = shared + 64 * g + 4 * t;
        exchange_ = g / 2 & 3;
        numbers_ = shared + kCodes + 16 * g;
    }
    SIMT_DEVICE void begin(const char*, unsigned, const MmaRowScales&) {}
    SIMT_DEVICE void load(const char* at, const char* far, unsigned pair, const MmaRowScales& row_scales,
                          MmaWords& first, MmaWords& second) const {
        simt::sync_warp();  // what was there has been read
        store(at, pair, row_scales.near, 0);
        store(far, pair, row_scales.far, 8);
        simt::sync_warp();
        read(0, first);
        read(8, second);
    }

  private:
    SIMT_DEVICE void store(const char* at, unsigned pair, float row_scale, unsigned row) const {
        const unsigned t = simt::lane() % 4;
        const SubBlock p = F::at(at, 2 * pair + t / 2, t % 2, row_scale);
        *reinterpret_cast<simt::UInt4*>(to_ + 64 * row) = {p.codes[0], p.codes[1], p.codes[2], p.codes[3]};
        reinterpret_cast<float*>(numbers_)[4 * row + t] = p.scale;
        if constexpr (F::kOffsets) reinterpret_cast<float*>(numbers_ + kNumbers)[4 * row + t] = p.offset;
    }
    SIMT_DEVICE void read(unsigned row, MmaWords& w) const {
        SIMT_UNROLL
        for (unsigned i = 0; i < 4; ++i)
            w.codes[i] = *reinterpret_cast<const uint32_t*>(from_ + 64 * row + 16 * (i ^ exchange_));
        read_four(numbers_ + 16 * row, w.scales);
        if constexpr (F::kOffsets) read_four(numbers_ + kNumbers + 16 * row, w.offsets);
    }
    SIMT_DEVICE static void read_four(const char* from, float (&to)[4]) {
        const auto four = *reinterpret_cast<const simt::Float4*>(from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    }

    char *shared_, *to_, *from_, *numbers_;
    unsigned exchange_;
};

namespace mma_units {

using sub_block_bits::byte_permute;
using sub_block_bits::centred;
using sub_block_bits::get;
using sub_block_bits::nibbles;

// Units without memory of the warp, whose rows are read one by one.
template <class Unit>
struct OneByOne {
    static constexpr unsigned kSharedBytes = 0;
    static constexpr bool kSums = false, kByHand = true;
    SIMT_DEVICE OneByOne(char*) : word(4 * (simt::lane() % 4)) {}
    SIMT_DEVICE void begin(const char*, unsigned, const MmaRowScales&) {}
    SIMT_DEVICE void load(const char* at, const char* far, unsigned pair, const MmaRowScales&, MmaWords& first,
                          MmaWords& second) const {
        const auto& unit = static_cast<const Unit&>(*this);
        unit.load_row(at, pair, first);
        unit.load_row(far, pair, second);
    }
    unsigned word;  // of the lane, in bytes from the first of four
};

// Those with blocks of 256 elements, whose scales are decoded once: two lanes a row, which take half of them each.
// kFours: fours of floats for 64 elements.
template <class Unit, unsigned kFours = 1>
struct ByBlocks {
    static constexpr unsigned kRow = 64 * kFours + 16;  // lanes of eight rows meet in no bank
    static constexpr unsigned kSharedBytes = 16 * kRow;
    static constexpr bool kSums = false, kByHand = true;
    using Numbers = simt::Float4[kFours];
    SIMT_DEVICE ByBlocks(char* shared)
        : word(4 * (simt::lane() % 4)),
          to(shared + kRow * (simt::lane() / 2) + 32 * kFours * (simt::lane() % 2)),
          from(shared + kRow * (simt::lane() / 4)) {}
    SIMT_DEVICE void begin(const char* at, unsigned row_bytes, const MmaRowScales&) const {
        simt::Float4 numbers[2 * kFours];
        Unit::numbers_of(at + row_bytes * (simt::lane() / 2), simt::lane() % 2, numbers);
        SIMT_UNROLL
        for (unsigned i = 0; i < 2 * kFours; ++i) reinterpret_cast<simt::Float4*>(to)[i] = numbers[i];
        simt::sync_warp();
    }
    SIMT_DEVICE void load(const char* at, const char* far, unsigned pair, const MmaRowScales&, MmaWords& first,
                          MmaWords& second) const {
        load_row(at, pair, 0, first);
        load_row(far, pair, 8 * kRow, second);
    }
    SIMT_DEVICE void load_row(const char* at, unsigned pair, unsigned row, MmaWords& to_words) const {
        Numbers numbers;
        SIMT_UNROLL
        for (unsigned i = 0; i < kFours; ++i) numbers[i] = get<simt::Float4>(from + 16 * kFours * pair + row + 16 * i);
        static_cast<const Unit&>(*this).load_codes(at, pair, to_words);
        Unit::set_numbers(numbers, to_words);
    }
    unsigned word;
    char* to;
    const char* from;
};

// Four bytes at `aligned` or, as the selector says, two later. No block ends within the word that is read beyond.
SIMT_DEVICE uint32_t word_at(const char* aligned, uint32_t selector) {
    return byte_permute(get<uint32_t>(aligned), get<uint32_t>(aligned + 4), selector);
}

// Scales and minima of groups 4 half and so on of a block of q4_K or q5_K.
SIMT_DEVICE void scales_and_minima(const char* block, unsigned half, simt::Float4 (&numbers)[2]) {
    uint32_t head[4];
    sub_block_bits::get_words<16>(block, head);
    const uint32_t scales = half == 0 ? head[1] & 0x3F3F3F3Fu : (head[3] & 0x0F0F0F0Fu) | (head[1] >> 2 & 0x30303030u);
    const uint32_t minima =
        half == 0 ? head[2] & 0x3F3F3F3Fu : (head[3] >> 4 & 0x0F0F0F0Fu) | (head[2] >> 2 & 0x30303030u);
    const float d = simt::unpack_low<simt::half_t>(head[0]), minimum = -simt::unpack_high<simt::half_t>(head[0]);
    SIMT_UNROLL
    for (int i = 0; i < 2; ++i)
        numbers[i] = {d * static_cast<float>(scales >> 16 * i & 255),
                      minimum * static_cast<float>(minima >> 16 * i & 255),
                      d * static_cast<float>(scales >> (16 * i + 8) & 255),
                      minimum * static_cast<float>(minima >> (16 * i + 8) & 255)};
}

}  // namespace mma_units

// Two blocks are 36 bytes at a multiple of 4. Codes are 16 times those of the format.
template <>
struct MmaUnit<TSR_TYPE_Q4_0> : mma_units::OneByOne<MmaUnit<TSR_TYPE_Q4_0>> {
    static constexpr float kFactor = 0.0625f;
    using OneByOne::OneByOne;
    SIMT_DEVICE void load_row(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        const char* blocks = at + 36 * pair;
        const char* mine = blocks + word;
        const uint32_t w[2] = {byte_permute(get<uint32_t>(mine), get<uint32_t>(mine + 4), 0x5432),
                               get<uint32_t>(mine + 20)};
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            to.codes[2 * i] = centred(w[i] << 4 & 0xF0F0F0F0u);
            to.codes[2 * i + 1] = centred(w[i] & 0xF0F0F0F0u);
            to.scales[2 * i] = sub_block_bits::half_at(blocks + 18 * i);
        }
    }
};

template <>
struct MmaUnit<TSR_TYPE_Q8_0> : mma_units::OneByOne<MmaUnit<TSR_TYPE_Q8_0>> {
    static constexpr float kFactor = 1;
    using OneByOne::OneByOne;
    SIMT_DEVICE void load_row(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        const char* blocks = at + 68 * pair;
        const char* mine = blocks + word;
        to.codes[0] = byte_permute(get<uint32_t>(mine), get<uint32_t>(mine + 4), 0x5432);
        to.codes[1] = byte_permute(get<uint32_t>(mine + 16), get<uint32_t>(mine + 20), 0x5432);
        to.codes[2] = get<uint32_t>(mine + 36);
        to.codes[3] = get<uint32_t>(mine + 52);
        to.scales[0] = sub_block_bits::half_at(blocks);
        to.scales[2] = sub_block_bits::half_at(blocks + 34);
    }
};

template <>
struct MmaUnit<TSR_TYPE_Q4_K> : mma_units::ByBlocks<MmaUnit<TSR_TYPE_Q4_K>> {
    static constexpr float kFactor = 1;
    using ByBlocks::ByBlocks;
    SIMT_DEVICE static void numbers_of(const char* block, unsigned half, simt::Float4 (&numbers)[2]) {
        mma_units::scales_and_minima(block, half, numbers);
    }
    SIMT_DEVICE static void set_numbers(const Numbers& numbers, MmaWords& to) {
        to.scales[0] = numbers[0].x, to.offsets[0] = numbers[0].y, to.scales[2] = numbers[0].z,
        to.offsets[2] = numbers[0].w;
    }
    SIMT_DEVICE void load_codes(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        const char* mine = at + 16 + 32 * pair + word;
        const uint32_t w[2] = {get<uint32_t>(mine), get<uint32_t>(mine + 16)};
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            to.codes[i] = nibbles(w[i], 0);
            to.codes[2 + i] = nibbles(w[i], 4);
        }
    }
};

template <>
struct MmaUnit<TSR_TYPE_Q5_K> : mma_units::ByBlocks<MmaUnit<TSR_TYPE_Q5_K>> {
    static constexpr float kFactor = 1;
    using ByBlocks::ByBlocks;
    SIMT_DEVICE static void numbers_of(const char* block, unsigned half, simt::Float4 (&numbers)[2]) {
        mma_units::scales_and_minima(block, half, numbers);
    }
    SIMT_DEVICE static void set_numbers(const Numbers& numbers, MmaWords& to) {
        to.scales[0] = numbers[0].x, to.offsets[0] = numbers[0].y, to.scales[2] = numbers[0].z,
        to.offsets[2] = numbers[0].w;
    }
    SIMT_DEVICE void load_codes(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        const char *mine = at + 48 + 32 * pair + word, *high = at + 16 + word;
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const auto w = get<uint32_t>(mine + 16 * i), bits = get<uint32_t>(high + 16 * i) >> 2 * pair;
            to.codes[i] = nibbles(w, 0) | (bits << 4 & 0x10101010u);
            to.codes[2 + i] = nibbles(w, 4) | (bits << 3 & 0x10101010u);
        }
    }
};

// Blocks begin at multiples of 2. Codes are four times those of the format.
template <>
struct MmaUnit<TSR_TYPE_Q6_K> : mma_units::ByBlocks<MmaUnit<TSR_TYPE_Q6_K>> {
    static constexpr float kFactor = 0.25f;
    using ByBlocks::ByBlocks;
    SIMT_DEVICE static void numbers_of(const char* block, unsigned half, simt::Float4 (&numbers)[2]) {
        const float d = sub_block_bits::half_at(block + 208);
        const char* scales = block + 192 + 8 * half;
        const auto scale = [&](int i) { return d * static_cast<float>(sub_block_bits::get<int8_t>(scales + i)); };
        numbers[0] = {scale(0), scale(1), scale(2), scale(3)};
        numbers[1] = {scale(4), scale(5), scale(6), scale(7)};
    }
    SIMT_DEVICE static void set_numbers(const Numbers& numbers, MmaWords& to) {
        to.scales[0] = numbers[0].x, to.scales[1] = numbers[0].y, to.scales[2] = numbers[0].z,
        to.scales[3] = numbers[0].w;
    }
    SIMT_DEVICE void load_codes(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        const auto past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(at) & 2);
        const char* mine = at - past + word + 64 * (pair / 2);
        const char* upper = at - past + word + 128 + 32 * (pair / 2);
        const uint32_t selector = 0x3210u + 0x1111u * past;
        // Six bits in the upper ones of a byte: rotations bring each part to its place.
        const int left_low = pair % 2 == 0 ? 2 : 30, left_high = pair % 2 == 0 ? 6 : 2;
        uint32_t high[2];
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) high[i] = word_at(upper + 16 * i, selector);
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const uint32_t low = sub_block_bits::rotated(word_at(mine + 16 * i, selector), left_low);
            const uint32_t two = sub_block_bits::rotated(high[i % 2], (left_high - i / 2 * 2) & 31);
            to.codes[i] = (low & 0x3C3C3C3Cu) | centred(two & 0xC0C0C0C0u);
        }
    }
};

// Formats whose nibbles choose from sixteen levels, with interleaved activations.
namespace mma_units {

SIMT_DEVICE void levels_of(const Table16& levels, uint32_t w, uint32_t (&low)[4], uint32_t (&high)[4], int i) {
    const uint32_t upper = w ^ 0x88888888u;
    low[i] = byte_permute(levels.words[0], levels.words[1], w);
    low[i + 1] = byte_permute(levels.words[0], levels.words[1], w >> 16);
    high[i] = byte_permute(levels.words[2], levels.words[3], upper);
    high[i + 1] = byte_permute(levels.words[2], levels.words[3], upper >> 16);
}
// Four bytes anywhere; no word is read that none of them is in.
SIMT_DEVICE uint32_t word_anywhere(const char* from) {
    const auto past = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 3);
    const auto last = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from + 3) & 3);
    return byte_permute(get<uint32_t>(from - past), get<uint32_t>(from + 3 - last), 0x3210u + 0x1111u * past);
}

}  // namespace mma_units

template <>
struct MmaUnit<TSR_TYPE_IQ4_NL> : mma_units::OneByOne<MmaUnit<TSR_TYPE_IQ4_NL>> {
    static constexpr float kFactor = 1;
    static constexpr bool kSums = true;
    using OneByOne::OneByOne;
    SIMT_DEVICE void load_row(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        constexpr Table16 kLevels = sub_block_bits::sum_table(formats::kIq4Values);
        static_assert(sub_block_bits::is_sum_table(kLevels, formats::kIq4Values, 0));
        const char* blocks = at + 36 * pair;
        const char* mine = blocks + word;
        levels_of(kLevels, byte_permute(get<uint32_t>(mine), get<uint32_t>(mine + 4), 0x5432), to.codes, to.more, 0);
        levels_of(kLevels, get<uint32_t>(mine + 20), to.codes, to.more, 2);
        to.scales[0] = sub_block_bits::half_at(blocks);
        to.scales[2] = sub_block_bits::half_at(blocks + 18);
    }
};

// Rows, and so blocks, lie anywhere.
template <>
struct MmaUnit<TSR_TYPE_MXFP4> : mma_units::OneByOne<MmaUnit<TSR_TYPE_MXFP4>> {
    static constexpr float kFactor = 1;
    static constexpr bool kSums = true;
    using OneByOne::OneByOne;
    SIMT_DEVICE void load_row(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        constexpr Table16 kLevels = sub_block_bits::sum_table(formats::kMxfp4Values);
        static_assert(sub_block_bits::is_sum_table(kLevels, formats::kMxfp4Values, 0));
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const char* block = at + 34 * pair + 17 * i;
            levels_of(kLevels, word_anywhere(block + 1 + word), to.codes, to.more, 2 * i);
            to.scales[2 * i] = formats::half_e8m0_to_f32(get<uint8_t>(block));
        }
    }
};

template <>
struct MmaUnit<TSR_TYPE_IQ4_XS> : mma_units::ByBlocks<MmaUnit<TSR_TYPE_IQ4_XS>> {
    static constexpr float kFactor = 1;
    static constexpr bool kSums = true;
    using ByBlocks::ByBlocks;
    // Of groups 4 half and so on; the other two are not used.
    SIMT_DEVICE static void numbers_of(const char* block, unsigned half, simt::Float4 (&numbers)[2]) {
        using namespace mma_units;
        const auto head = get<uint32_t>(block), low = get<uint32_t>(block + 4) >> 16 * half;
        const uint32_t high = head >> (16 + 8 * half);
        const float d = simt::unpack_low<simt::half_t>(head);
        const auto scale = [&](int i) {
            return d * static_cast<float>(static_cast<int>((low >> 4 * i & 15) | (high >> 2 * i & 3) << 4) - 32);
        };
        numbers[0] = {scale(0), scale(1), 0, 0};
        numbers[1] = {scale(2), scale(3), 0, 0};
    }
    SIMT_DEVICE static void set_numbers(const Numbers& numbers, MmaWords& to) {
        to.scales[0] = numbers[0].x, to.scales[2] = numbers[0].y;
    }
    SIMT_DEVICE void load_codes(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        constexpr Table16 kLevels = sub_block_bits::sum_table(formats::kIq4Values);
        const char* mine = at + 8 + 32 * pair + word;
        levels_of(kLevels, get<uint32_t>(mine), to.codes, to.more, 0);
        levels_of(kLevels, get<uint32_t>(mine + 16), to.codes, to.more, 2);
    }
};

// Scales and offsets of 16 elements.
template <>
struct MmaUnit<TSR_TYPE_Q2_K> : mma_units::ByBlocks<MmaUnit<TSR_TYPE_Q2_K>, 2> {
    static constexpr float kFactor = 1;
    using ByBlocks::ByBlocks;
    SIMT_DEVICE static void numbers_of(const char* block, unsigned half, simt::Float4 (&numbers)[4]) {
        using namespace mma_units;
        const auto head = get<uint32_t>(block + 80);
        const float d = simt::unpack_low<simt::half_t>(head), minimum = -simt::unpack_high<simt::half_t>(head);
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const auto w = get<uint32_t>(block + 8 * half + 4 * i);
            const uint32_t scales = w & 0x0F0F0F0Fu, minima = w >> 4 & 0x0F0F0F0Fu;
            const auto of = [](uint32_t bytes, int j) { return static_cast<float>(bytes >> 8 * j & 255); };
            numbers[2 * i] = {d * of(scales, 0), d * of(scales, 1), d * of(scales, 2), d * of(scales, 3)};
            numbers[2 * i + 1] = {minimum * of(minima, 0), minimum * of(minima, 1), minimum * of(minima, 2),
                                  minimum * of(minima, 3)};
        }
    }
    SIMT_DEVICE static void set_numbers(const Numbers& numbers, MmaWords& to) {
        to.scales[0] = numbers[0].x, to.scales[1] = numbers[0].y, to.scales[2] = numbers[0].z;
        to.scales[3] = numbers[0].w;
        to.offsets[0] = numbers[1].x, to.offsets[1] = numbers[1].y, to.offsets[2] = numbers[1].z;
        to.offsets[3] = numbers[1].w;
    }
    SIMT_DEVICE void load_codes(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        const char* mine = at + 16 + 32 * (pair / 2) + word;
        const int shift = static_cast<int>(4 * (pair % 2));
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const uint32_t w = get<uint32_t>(mine + 16 * i) >> shift;
            to.codes[i] = w & 0x03030303u;
            to.codes[2 + i] = w >> 2 & 0x03030303u;
        }
    }
};

// Blocks begin at multiples of 2. Codes are 32 times those of the format.
template <>
struct MmaUnit<TSR_TYPE_Q3_K> : mma_units::ByBlocks<MmaUnit<TSR_TYPE_Q3_K>> {
    static constexpr float kFactor = 0.03125f;
    using ByBlocks::ByBlocks;
    // Of the 16 bytes from the scales on: eight bytes of nibbles, four of pairs of bits.
    SIMT_DEVICE static void numbers_of(const char* block, unsigned half, simt::Float4 (&numbers)[2]) {
        using namespace mma_units;
        uint32_t words[3];
        sub_block_bits::get_words<2>(block + 96, words);
        const float d = sub_block_bits::half_at(block + 108);
        SIMT_UNROLL
        for (unsigned i = 0; i < 2; ++i) {
            const uint32_t six = (words[i] >> 4 * half & 0x0F0F0F0Fu) | (words[2] >> (4 * half + 2 * i) & 0x03030303u)
                                                                            << 4;
            const auto of = [&](int j) { return d * static_cast<float>(static_cast<int>(six >> 8 * j & 255) - 32); };
            numbers[i] = {of(0), of(1), of(2), of(3)};
        }
    }
    SIMT_DEVICE static void set_numbers(const Numbers& numbers, MmaWords& to) {
        to.scales[0] = numbers[0].x, to.scales[1] = numbers[0].y, to.scales[2] = numbers[0].z;
        to.scales[3] = numbers[0].w;
    }
    SIMT_DEVICE void load_codes(const char* at, unsigned pair, MmaWords& to) const {
        using namespace mma_units;
        const auto past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(at) & 2);
        const char *mine = at - past + 32 + 32 * (pair / 2) + word, *high = at - past + word;
        const uint32_t selector = 0x3210u + 0x1111u * past;
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            // Bits of groups i and 2 + i of this pair, from the lowest on.
            const uint32_t w = word_at(mine + 16 * i, selector) >> 4 * (pair % 2);
            const uint32_t h = word_at(high + 16 * i, selector) >> 2 * pair;
            to.codes[i] = (w << 5 & 0x60606060u) | centred(h << 7 & 0x80808080u);
            to.codes[2 + i] = (w << 3 & 0x60606060u) | centred(h << 6 & 0x80808080u);
        }
    }
};

}  // namespace tessera::cuda_kernels
