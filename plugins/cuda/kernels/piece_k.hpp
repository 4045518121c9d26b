// Pieces of the K formats; see piece.hpp.
#pragma once

#include "piece_bits.hpp"

namespace tessera::cuda_kernels {

template <>
struct Format<TSR_TYPE_Q2_K> : piece_bits::FormatOf<formats::BlockQ2K, 16> {
    SIMT_DEVICE static Piece at(const char* blocks, int piece, float) {
        using namespace piece_bits;
        const char* b = block(blocks, piece);
        const int g = piece % 16;
        const uint32_t scale = byte_at(b + g);
        uint32_t w[4], d[1];
        words_at<4>(b + 16 + 32 * (g / 8) + 16 * (g % 2), w);
        words_at<4>(b + 80, d);
        Piece p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = bit_pairs(w[i], 2 * (g / 2 % 4));
        p.scale = simt::unpack_low<simt::half_t>(d[0]) * static_cast<float>(scale & 15);
        p.offset = -simt::unpack_high<simt::half_t>(d[0]) * static_cast<float>(scale >> 4);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q3_K> : piece_bits::FormatOf<formats::BlockQ3K, 16> {
    SIMT_DEVICE static Piece at(const char* blocks, int piece, float) {
        using namespace piece_bits;
        const char* b = block(blocks, piece);
        const int g = piece % 16;
        uint32_t high[4], w[4];
        words_at<2>(b + 16 * (g % 2), high);
        words_at<2>(b + 32 + 32 * (g / 8) + 16 * (g % 2), w);
        Piece p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = centred(bit_pairs(w[i], 2 * (g / 2 % 4)) << 5 | (high[i] >> (g / 2) & 0x01010101u) << 7);
        const uint32_t low = byte_at(b + 96 + g % 8) >> (g < 8 ? 0 : 4) & 15;
        const uint32_t upper = byte_at(b + 104 + g % 4) >> (2 * (g / 4)) & 3;
        p.scale = half_at(b + 108) * 0.03125f * static_cast<float>(static_cast<int>(low | upper << 4) - 32);
        p.offset = 0;
        return p;
    }
};

namespace piece_bits {

// Scale and offset of group `j` of q4_K and q5_K from the first 16 bytes of a block.
SIMT_DEVICE void scale_and_minimum(const uint32_t (&head)[4], int j, Piece& piece) {
    const int shift = 8 * (j % 4);
    const uint32_t first = head[1] >> shift, second = head[2] >> shift, third = head[3] >> shift;
    const uint32_t scale = j < 4 ? first & 63 : (third & 15) | (first >> 2 & 0x30);
    const uint32_t minimum = j < 4 ? second & 63 : (third >> 4 & 15) | (second >> 2 & 0x30);
    piece.scale = simt::unpack_low<simt::half_t>(head[0]) * static_cast<float>(scale);
    piece.offset = -simt::unpack_high<simt::half_t>(head[0]) * static_cast<float>(minimum);
}

}  // namespace piece_bits

template <>
struct Format<TSR_TYPE_Q4_K> : piece_bits::FormatOf<formats::BlockQ4K, 32> {
    SIMT_DEVICE static Piece at(const char* blocks, int piece, float) {
        using namespace piece_bits;
        const char* b = block(blocks, piece);
        const int j = piece / 2 % 8;
        uint32_t head[4], w[4];
        words_at<16>(b, head);
        words_at<16>(b + 16 + 32 * (j / 2) + 16 * (piece % 2), w);
        Piece p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = nibbles(w[i], 4 * (j % 2));
        scale_and_minimum(head, j, p);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q5_K> : piece_bits::FormatOf<formats::BlockQ5K, 32> {
    SIMT_DEVICE static Piece at(const char* blocks, int piece, float) {
        using namespace piece_bits;
        const char* b = block(blocks, piece);
        const int j = piece / 2 % 8;
        uint32_t head[4], high[4], w[4];
        words_at<16>(b, head);
        words_at<16>(b + 16 + 16 * (piece % 2), high);
        words_at<16>(b + 48 + 32 * (j / 2) + 16 * (piece % 2), w);
        Piece p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = nibbles(w[i], 4 * (j % 2)) | (high[i] >> j & 0x01010101u) << 4;
        scale_and_minimum(head, j, p);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q6_K> : piece_bits::FormatOf<formats::BlockQ6K, 16> {
    SIMT_DEVICE static Piece at(const char* blocks, int piece, float) {
        using namespace piece_bits;
        const char* b = block(blocks, piece);
        const int g = piece % 16, half = g / 8;
        uint32_t low[4], high[4];
        words_at<2>(b + 64 * half + 16 * (g % 4), low);
        words_at<2>(b + 128 + 32 * half + 16 * (g % 2), high);
        Piece p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = centred(nibbles(low[i], 4 * (g / 4 % 2)) << 2 | bit_pairs(high[i], 2 * (g / 2 % 4)) << 6);
        p.scale = half_at(b + 208) * 0.25f * static_cast<float>(get<int8_t>(b + 192 + g));
        p.offset = 0;
        return p;
    }
};

}  // namespace tessera::cuda_kernels
