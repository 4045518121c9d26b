// Weights of iq6_k for split products: the 64 levels come from shared memory one by one, and go into the products of
// two elements without being put together to words of int8 before.
#pragma once

#include "../../cuda/kernels/piece_levels.hpp"
#include "tiles_blocks.hpp"

namespace tessera::cuda_kernels {

template <int kOutputs, int kParts>
struct LevelShared : SplitShared<kOutputs, kParts, split_factor(TSR_TYPE_IQ6_K)> {
    using Base = SplitShared<kOutputs, kParts, split_factor(TSR_TYPE_IQ6_K)>;
    uint8_t levels[64];  // with 128 added; 16 banks, none of which has two words of them

    SIMT_DEVICE void begin() {
        const auto t = static_cast<int>(simt::thread_index().x);
        if (t < 64) levels[t] = static_cast<uint8_t>(formats::kIq6kValues[t] + 128);
        simt::sync_block();
    }
    SIMT_DEVICE void set_codes_of(int segment, int row, int piece, const uint32_t (&codes)[4], bool shifted,
                                  int scale) {
        const auto factor = static_cast<uint32_t>(scale * split_factor(TSR_TYPE_IQ6_K));
        const uint32_t bias = shifted ? 128u - formats::kIq6kShift : 128u;
        const uint32_t offset = (0x8080u - bias * factor) * 0x10001u, upper = factor << 16;
        uint32_t even[4], odd[4];
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            even[i] = levels[codes[i] & 63] * factor + (levels[codes[i] >> 16 & 63] * upper + offset);
            odd[i] = levels[codes[i] >> 8 & 63] * factor + (levels[codes[i] >> 24] * upper + offset);
        }
        Base::set_products(segment, row, piece, even, odd);
    }
};
template <int kOutputs, int kParts>
struct SharedOf<TSR_TYPE_IQ6_K, kOutputs, kParts, true> {
    using Type = LevelShared<kOutputs, kParts>;
};

template <int kParts>
struct SplitWeights<TSR_TYPE_IQ6_K, kParts> {
    using F = Format<TSR_TYPE_IQ6_K>;
    static constexpr int kGroup = 16, kMinimums = 0, kPieces = 4 / kParts;

    uint32_t codes[kPieces][4], shifts;
    int scales[kPieces];
    float d;

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace piece_bits;
        if (s == 0) {
            d = F::block_scale(block);
            shifts = two_at(block + 2) >> kPieces * part;
        }
        SIMT_UNROLL
        for (int i = 0; i < kPieces; ++i) {
            const int piece = 4 * s + part * kPieces + i;
            uint32_t high[4];
            wide_nibble_codes<F::kAlignment>(block + 20, piece, codes[i]);
            two_bit_codes<F::kAlignment>(block + 148, piece, high);
            SIMT_UNROLL
            for (int w = 0; w < 4; ++w) codes[i][w] |= high[w] << 4;
            scales[i] = F::integer_scale(block, piece);
        }
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int i = 0; i < kPieces; ++i)
            to.set_codes_of(s, row, part * kPieces + i, codes[i], shifts >> (4 * s + i) & 1, scales[i]);
        to.set_scales(s, row, part, d, 0);
    }
};

}  // namespace tessera::cuda_kernels
