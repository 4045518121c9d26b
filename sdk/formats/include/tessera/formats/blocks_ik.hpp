// The blocks of the formats that ik_llama.cpp added: codes choose from uneven levels, of which there are two sets, one
// shifted against the other, chosen for 16 or 32 elements by a bit of `extra` or of the scale. In those whose names end
// in s one scale serves a row. Names as in blocks.hpp; "half" h is elements 16 h .. 16 h + 15. Source: what
// ik_llama.cpp's own code makes of such rows, recorded in tests/formats.
#pragma once

#include <tessera/formats/blocks.hpp>

namespace tessera::formats {

// w = d * (scale - 8) * (kIq2kValues[code] + (extra ? kIq2kShift : 0)); qs as in q2_K
struct BlockIq2K : BlockOf<TSR_TYPE_IQ2_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;     // bit h
    uint8_t scales[8];  // a nibble a half
    uint8_t qs[64];
};

// w = row scale * (scale - 16) * (kIq2kValues[code] + ...); scales of five bits for 32 elements: a nibble of scales,
// the fifth bit in bit 8 + b of extra; bit b of extra chooses the levels
struct BlockIq2Ks : BlockOf<TSR_TYPE_IQ2_KS, kSuperBlock> {
    using RowScale = uint16_t;
    uint16_t extra;
    uint8_t scales[4];
    uint8_t qs[64];
};

// w = d * +-(2 scale + 1) * (kIq3kValues[code] + ...); minus where bit h of scales_h is set; qs and qh as in q3_K
struct BlockIq3K : BlockOf<TSR_TYPE_IQ3_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    uint16_t scales_h;
    uint8_t scales_l[8];
    uint8_t qs[64];
    uint8_t qh[32];
};

// w = row scale * (scale - 16) * (kIq3kValues[code] + ...). scales: block b < 4 in the low nibble of byte b, b >= 4 in
// the high one of b - 4; fifth bit in bit b of extra; bit 8 + b chooses the levels
struct BlockIq3Ks : BlockOf<TSR_TYPE_IQ3_KS, kSuperBlock> {
    using RowScale = uint16_t;
    uint16_t extra;
    uint8_t scales[4];
    uint8_t qs[64];
    uint8_t qh[32];
};

// w = d * (scale - 32) * (kIq4Values[code] + ...); scales of six bits a half: a nibble of scales_l, two bits of
// scales_h; qs as in iq4_xs
struct BlockIq4K : BlockOf<TSR_TYPE_IQ4_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
};

// w = row scale * ((scale & 254) - 127) * (kIq4Values[code] + ...); bit 0 of scale chooses the levels
struct BlockIq4Ks : BlockOf<TSR_TYPE_IQ4_KS, kSuperBlock> {
    using RowScale = float;
    uint8_t scales[8];
    uint8_t qs[128];
};

// As iq4_k with kIq5kValues; qs and qh as in q5_K
struct BlockIq5K : BlockOf<TSR_TYPE_IQ5_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
    uint8_t qh[32];
};

// As iq4_ks with kIq5kValues; qs and qh as in q5_K
struct BlockIq5Ks : BlockOf<TSR_TYPE_IQ5_KS, kSuperBlock> {
    using RowScale = float;
    uint8_t scales[8];
    uint8_t qs[128];
    uint8_t qh[32];
};

// w = d * scale * (kIq6kValues[code] + ...); qs as in q5_K; qh per 128 elements: 32 bytes, element 32 k + l in bits 2 k
// of byte l
struct BlockIq6K : BlockOf<TSR_TYPE_IQ6_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    int8_t scales[16];
    uint8_t qs[128];
    uint8_t qh[64];
};

static_assert(sizeof(BlockIq2K) == 76 && sizeof(BlockIq2Ks) == 70 && sizeof(BlockIq3K) == 110);
static_assert(sizeof(BlockIq3Ks) == 102 && sizeof(BlockIq4K) == 144 && sizeof(BlockIq4Ks) == 136);
static_assert(sizeof(BlockIq5K) == 176 && sizeof(BlockIq5Ks) == 168 && sizeof(BlockIq6K) == 212);

// The levels, and what the second set has more.
inline constexpr int8_t kIq2kValues[4] = {-31, -13, 1, 17};
inline constexpr int8_t kIq3kValues[8] = {-63, -40, -23, -10, 1, 13, 28, 47};
inline constexpr int8_t kIq5kValues[32] = {-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36,
                                           -30,  -24,  -18,  -12, -6,  -1,  5,   11,  17,  23,  29,
                                           36,   43,   51,   59,  68,  77,  87,  97,  109, 121};
inline constexpr int8_t kIq6kValues[64] = {
    -127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54, -51, -47, -44, -40, -37, -34,
    -31,  -28,  -25,  -22,  -19,  -16, -13, -11, -8,  -5,  -2,  0,   3,   6,   9,   12,  14,  17,  20,  23,  27,  30,
    33,   36,   40,   44,   47,   51,  55,  59,  63,  68,  72,  77,  82,  87,  92,  98,  103, 109, 115, 121};
inline constexpr int kIq2kShift = 5, kIq3kShift = 4, kIq4kShift = 4, kIq5kShift = 2, kIq6kShift = 1;

// Six bits of scale of half `h`, centred: -32 .. 31. For iq4_k and iq5_k.
inline int iq4k_scale(const uint8_t* scales_l, const uint8_t* scales_h, int h) noexcept {
    const int low = scales_l[h / 2] >> (4 * (h % 2)) & 15;
    const int high = scales_h[h / 4] >> (2 * (h % 4)) & 3;
    return (low | high << 4) - 32;
}
// Block `b` of 32: -16 .. 15.
inline int iq2ks_scale(const BlockIq2Ks& block, int b) noexcept {
    const int low = block.scales[b / 2] >> (4 * (b % 2)) & 15;
    return (low | (block.extra >> (8 + b) & 1) << 4) - 16;
}
inline int iq3ks_scale(const BlockIq3Ks& block, int b) noexcept {
    const int low = block.scales[b % 4] >> (4 * (b / 4)) & 15;
    return (low | (block.extra >> b & 1) << 4) - 16;
}
// Half `h` of iq3_k: odd, -31 .. 31.
inline int iq3k_scale(const BlockIq3K& block, int h) noexcept {
    const int size = 2 * (block.scales_l[h / 2] >> (4 * (h % 2)) & 15) + 1;
    return block.scales_h >> h & 1 ? -size : size;
}
// iq4_ks and iq5_ks.
inline int iq4ks_scale(uint8_t scale) noexcept {
    return (scale & 254) - 127;
}

}  // namespace tessera::formats
