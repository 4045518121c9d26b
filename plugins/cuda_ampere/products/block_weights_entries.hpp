// Weights of iq2_xxs and iq3_xxs as tiles_blocks.hpp multiplies them. The codebook is copied to shared memory, as
// nibbles by which byte_permute chooses; blocks are decoded when they are stored.
#pragma once

#include "codebook_signs.hpp"
#include "kernels/cuda/formats/sub_block_codebook.hpp"
#include "tiles_blocks.hpp"

namespace tessera::cuda_kernels {

template <int kType, int kOutputs>
struct EntryShared : BlockShared<kOutputs, 2, 0> {
    uint32_t entries[256];

    SIMT_DEVICE void begin() {
        for (auto i = static_cast<int>(simt::thread_index().x); i < 256; i += static_cast<int>(simt::block_size().x))
            entries[i] = kType == TSR_TYPE_IQ2_XXS ? sub_block_bits::pairs_to_nibbles(formats::kIq2XxsGrid[i])
                                                   : sub_block_bits::triples_to_nibbles(formats::kIq3XxsGrid[i]);
        simt::sync_block();
    }
};
template <int kOutputs>
struct SharedOf<TSR_TYPE_IQ2_XXS, kOutputs, 1, false> {
    using Type = EntryShared<TSR_TYPE_IQ2_XXS, kOutputs>;
};
template <int kOutputs>
struct SharedOf<TSR_TYPE_IQ3_XXS, kOutputs, 1, false> {
    using Type = EntryShared<TSR_TYPE_IQ3_XXS, kOutputs>;
};

namespace block_weights {

// Scales of both: (scale + 1/2) times `unit`; scales are the upper four bits of the fields of 32 elements.
struct OfFields {
    static constexpr int kGroup = 32, kMinimums = 0;
    uint32_t fields[2];  // of the segment
    float unit, bias;

    // The first field's address, and how far from one to the next.
    SIMT_DEVICE void load_bias(const char* first, int step) {
        uint32_t sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < 8; ++i) sum += sub_block_bits::two_at(first + i * step + 2) >> 12;
        bias = kMagic * unit * (4.f + static_cast<float>(sum));
    }
    template <class Shared>
    SIMT_DEVICE void store_scales(Shared& to, int s, int row) const {
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) to.scales[s % 2][i][row] = unit * (0.5f + static_cast<float>(fields[i] >> 28));
        if (s == 0) to.bias[0][row] = bias;
    }
    // The eight signs of groups 2 i and 2 i + 1 of a field, in the halves of a word.
    SIMT_DEVICE static uint32_t signs(uint32_t field, int i) {
        const uint32_t both = field >> 14 * i;
        return two_even_signs((both & 0x7Fu) | (both & 0x3F80u) << 9);
    }
};

}  // namespace block_weights

template <>
struct BlockWeights<TSR_TYPE_IQ2_XXS, 1> : block_weights::OfFields {
    using F = Format<TSR_TYPE_IQ2_XXS>;
    uint32_t w[2];  // entries of 32 elements, a byte for eight

    SIMT_DEVICE void load(const char* block, float, int s, int) {
        using namespace sub_block_bits;
        uint32_t words[4];
        get_words<2>(block + 2 + 16 * s, words);
        w[0] = words[0], fields[0] = words[1], w[1] = words[2], fields[1] = words[3];
        if (s != 0) return;
        unit = 0.25f * half_at(block);
        load_bias(block + 6, 8);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int) const {
        using namespace sub_block_bits;
        constexpr const int8_t(&kValues)[4] = formats::kIq2Values;
        constexpr uint32_t kPlus = four_values(kValues[0], kValues[1], kValues[2], kValues[3]),
                           kMinus = four_values(-kValues[0], -kValues[1], -kValues[2], -kValues[3]);
        SIMT_UNROLL
        for (int sub_block = 0; sub_block < 4; ++sub_block) {
            const uint32_t both = signs(fields[sub_block / 2], sub_block % 2);
            uint32_t codes[4];
            SIMT_UNROLL
            for (int i = 0; i < 2; ++i) {
                const uint32_t entry = w[sub_block / 2] >> (16 * (sub_block % 2) + 8 * i) & 255;
                const uint32_t which =
                    to.entries[entry] | block_weights::signs_of_nibbles(i == 0 ? both & 255 : both >> 16);
                codes[2 * i] = choose8(kPlus, kMinus, which);
                codes[2 * i + 1] = choose8(kPlus, kMinus, which >> 16);
            }
            to.set_codes(s, row, sub_block, codes);
        }
        store_scales(to, s, row);
    }
};

template <>
struct BlockWeights<TSR_TYPE_IQ3_XXS, 1> : block_weights::OfFields {
    using F = Format<TSR_TYPE_IQ3_XXS>;
    uint32_t w[4];  // entries, a byte for four elements

    SIMT_DEVICE void load(const char* block, float, int s, int) {
        using namespace sub_block_bits;
        get_words<2>(block + 2 + 16 * s, w);
        get_words<2>(block + 66 + 8 * s, fields);
        if (s != 0) return;
        unit = 0.5f * half_at(block);
        load_bias(block + 66, 4);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int) const {
        using namespace sub_block_bits;
        constexpr const int8_t(&kValues)[8] = formats::kIq3XxsValues;
        constexpr uint32_t kFirst = four_values(kValues[0], kValues[1], kValues[2], kValues[3]),
                           kSecond = four_values(kValues[4], kValues[5], kValues[6], kValues[7]);
        SIMT_UNROLL
        for (int sub_block = 0; sub_block < 4; ++sub_block) {
            const uint32_t both = signs(fields[sub_block / 2], sub_block % 2);
            uint32_t codes[4];
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i)
                codes[i] = with_signs(choose8(kFirst, kSecond, to.entries[w[sub_block] >> 8 * i & 255]),
                                      both >> (16 * (i / 2) + 4 * (i % 2)));
            to.set_codes(s, row, sub_block, codes);
        }
        store_scales(to, s, row);
    }
};

}  // namespace tessera::cuda_kernels
