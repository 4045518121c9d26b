// Weights of iq2_xs and iq2_s for split products. What an element can be, one of four magnitudes with either sign, is
// multiplied with the scale of 16 elements before it is chosen, by nibbles of two bits of magnitude and one of sign.
// The codebook is copied to shared memory as such nibbles of magnitudes. Blocks are decoded when they are stored.
#pragma once

#include "codebook_signs.hpp"
#include "kernels/cuda/formats/sub_block_codebook.hpp"
#include "tiles_blocks.hpp"

namespace tessera::cuda_kernels {

template <int kType, int kOutputs, int kParts>
struct CodebookShared : SplitShared<kOutputs, kParts, split_factor(kType)> {
    static constexpr int kEntries = kType == TSR_TYPE_IQ2_XS ? 512 : 1024;
    uint32_t entries[kEntries];

    SIMT_DEVICE void begin() {
        for (auto i = static_cast<int>(simt::thread_index().x); i < kEntries;
             i += static_cast<int>(simt::block_size().x))
            entries[i] = sub_block_bits::pairs_to_nibbles(kType == TSR_TYPE_IQ2_XS ? formats::kIq2XsGrid[i % 512]
                                                                                   : formats::kIq2SGrid[i]);
        simt::sync_block();
    }
    // By two entries and eight signs of each. size: what the scale is stored as.
    SIMT_DEVICE void set_entries(int segment, int row, int sub_block, int size, const uint32_t (&entry)[2],
                                 const uint32_t (&sign)[2]) {
        using namespace sub_block_bits;
        constexpr int kBias = 64, kFactor = split_factor(kType);
        constexpr const int8_t(&kValues)[4] = formats::kIq2Values;
        const SplitScale by(size * (2 * kFactor) + kFactor, kBias);
        uint32_t first[2], second[2];  // with plus and with minus
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const auto values = [&](int k) {
                return i == 0 ? two_values(kValues[k], kValues[k + 1], kBias)
                              : two_values(-kValues[k], -kValues[k + 1], kBias);
            };
            split_products(by.products(values(0)), by.products(values(2)), first[i], second[i]);
        }
        uint32_t high[4], low[4];
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const uint32_t which = entries[entry[i]] | block_weights::signs_of_nibbles(sign[i]);
            SIMT_UNROLL
            for (int j = 0; j < 2; ++j) {
                high[2 * i + j] = choose8(first[0], first[1], which >> 16 * j);
                low[2 * i + j] = choose8(second[0], second[1], which >> 16 * j);
            }
        }
        this->set_planes(segment, row, sub_block, high, low);
    }
};
template <int kOutputs, int kParts>
struct SharedOf<TSR_TYPE_IQ2_XS, kOutputs, kParts, true> {
    using Type = CodebookShared<TSR_TYPE_IQ2_XS, kOutputs, kParts>;
};
template <int kOutputs, int kParts>
struct SharedOf<TSR_TYPE_IQ2_S, kOutputs, kParts, true> {
    using Type = CodebookShared<TSR_TYPE_IQ2_S, kOutputs, kParts>;
};

template <int kParts>
struct SplitWeights<TSR_TYPE_IQ2_XS, kParts> {
    using F = Format<TSR_TYPE_IQ2_XS>;
    static constexpr int kGroup = 16, kMinimums = 0;
    static_assert(kParts == 2);
    uint32_t w[2], sizes;  // sizes: of two sub-blocks a byte, a byte for each segment
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace sub_block_bits;
        if (s == 0) {
            uint32_t both[2];
            d = F::block_scale(block);
            get_words<2>(block + 66, both);
            sizes = alternate_bytes(both[0], both[1], part);
        }
        get_words<2>(block + 2 + 16 * s + 8 * part, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const uint32_t signs = block_weights::two_even_signs(w[i] >> 9 & 0x007F007Fu);
            const uint32_t entry[2] = {w[i] & 511, w[i] >> 16 & 511}, sign[2] = {signs & 255, signs >> 16};
            to.set_entries(s, row, 2 * part + i, static_cast<int>(sizes >> (8 * s + 4 * i) & 15), entry, sign);
        }
        to.set_scales(s, row, part, d);
    }
};

template <int kParts>
struct SplitWeights<TSR_TYPE_IQ2_S, kParts> {
    using F = Format<TSR_TYPE_IQ2_S>;
    static constexpr int kGroup = 16, kMinimums = 0;
    static_assert(kParts == 2);
    uint32_t w[1], minus[1];  // entries and signs of two sub-blocks
    uint32_t high, sizes;     // of two sub-blocks a byte, a byte for each segment
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace sub_block_bits;
        if (s == 0) {
            uint32_t both[4];
            d = F::block_scale(block);
            get_words<2>(block + 66, both);
            high = alternate_bytes(both[0], both[1], part);
            sizes = alternate_bytes(both[2], both[3], part);
        }
        get_words<2>(block + 2 + 8 * s + 4 * part, w);
        get_words<2>(block + 34 + 8 * s + 4 * part, minus);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            uint32_t entry[2], sign[2];
            SIMT_UNROLL
            for (int j = 0; j < 2; ++j) {
                const int group = 2 * i + j;
                entry[j] = (w[0] >> 8 * group & 255) | (high >> (8 * s + 2 * group) & 3) << 8;
                sign[j] = minus[0] >> 8 * group & 255;
            }
            to.set_entries(s, row, 2 * part + i, static_cast<int>(sizes >> (8 * s + 4 * i) & 15), entry, sign);
        }
        to.set_scales(s, row, part, d);
    }
};

}  // namespace tessera::cuda_kernels
