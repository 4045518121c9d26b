// The blocks of GGUF's quantised formats, as they lie in a file (little-endian). A row is whole blocks one after
// another.
//
// Names: d is the f16 scale of a block, m or dmin its f16 minimum, qs the low bits of the codes, qh the high ones. In
// the formats of 32, byte j of qs holds element j in its low nibble and element j + 16 in its high one. The formats of
// 256
// ("super-blocks") divide d once more by small integers, one per 16 or 32 elements.
// Source: the public GGUF specification and the `gguf` Python package, whose dequantisation these follow bit for bit.
#pragma once

#include <tessera/formats/freestanding.hpp>
#include <tessera/types.h>

namespace tessera::formats {

inline constexpr int kSmallBlock = 32;   // elements in a block of q4_0 .. q8_0 and iq4_nl
inline constexpr int kSuperBlock = 256;  // elements in a block of the K formats and iq4_xs

// How many neighbouring elements share a scale (16, or 32 and more), and whether something is added to scale * code.
enum class Scales { kOf32, kOf32WithOffset, kOf16, kOf16WithOffset };

// The type and the number of elements of a block, and what kernels ask of its scales. Formats whose rows begin with a
// scale of their own name its type as RowScale: uint16_t (f16) or float.
template <tsr_type kFormat, int kCount, Scales kScales = Scales::kOf32>
struct BlockOf {
    static constexpr tsr_type kType = kFormat;
    static constexpr int kElements = kCount;
    static constexpr int kScaleElements = kScales == Scales::kOf16 || kScales == Scales::kOf16WithOffset ? 16 : 32;
    static constexpr bool kOffsets = kScales == Scales::kOf32WithOffset || kScales == Scales::kOf16WithOffset;
};

// Bytes of a row before its first block.
template <class Block>
inline constexpr uint32_t kPrefixBytes = 0;
template <class Block>
requires requires {
    typename Block::RowScale;
}
inline constexpr uint32_t kPrefixBytes<Block> = sizeof(typename Block::RowScale);

// w = d * (code - 8)
struct BlockQ4_0 : BlockOf<TSR_TYPE_Q4_0, kSmallBlock> {
    uint16_t d;
    uint8_t qs[16];
};

// w = d * code + m
struct BlockQ4_1 : BlockOf<TSR_TYPE_Q4_1, kSmallBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t m;
    uint8_t qs[16];
};

// w = d * (code - 16); bit j of qh, read as a little-endian uint32, is the fifth bit of element j
struct BlockQ5_0 : BlockOf<TSR_TYPE_Q5_0, kSmallBlock> {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
};

// w = d * code + m
struct BlockQ5_1 : BlockOf<TSR_TYPE_Q5_1, kSmallBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t m;
    uint8_t qh[4];
    uint8_t qs[16];
};

// w = d * code
struct BlockQ8_0 : BlockOf<TSR_TYPE_Q8_0, kSmallBlock> {
    uint16_t d;
    int8_t qs[32];
};

// w = d * (code - 32); qh: byte j of 8 holds two bits each of elements j, j + 16, j + 8 and j + 24, from the low ones
// up
struct BlockQ6_0 : BlockOf<TSR_TYPE_Q6_0, kSmallBlock> {
    uint16_t d;
    uint8_t qh[8];
    uint8_t qs[16];
};

// w = 2^(e - 128) * kMxfp4Values[code]
struct BlockMxfp4 : BlockOf<TSR_TYPE_MXFP4, kSmallBlock> {
    uint8_t e;
    uint8_t qs[16];
};

// w = d * code, and with a scale a row w = row scale * code: rows of interleaved kinds
struct BlockQ8KF16 : BlockOf<TSR_TYPE_Q8_K_F16, kSuperBlock> {
    uint16_t d;
    int8_t qs[256];
};
struct BlockQ8Row : BlockOf<TSR_TYPE_Q8_ROW, kSmallBlock> {
    using RowScale = float;
    int8_t qs[32];
};

// w = d * kIq4Values[code]
struct BlockIq4Nl : BlockOf<TSR_TYPE_IQ4_NL, kSmallBlock> {
    uint16_t d;
    uint8_t qs[16];
};

// w = d * (scale - 32) * kIq4Values[code]; eight groups of 32, scale 6 bits: four low in scales_l, two high in scales_h
struct BlockIq4Xs : BlockOf<TSR_TYPE_IQ4_XS, kSuperBlock> {
    uint16_t d;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];  // per group of 32: 16 bytes as in the formats of 32
};

// w = d * (scales & 15) * code - dmin * (scales >> 4); 16 groups of 16
struct BlockQ2K : BlockOf<TSR_TYPE_Q2_K, kSuperBlock, Scales::kOf16WithOffset> {
    uint8_t scales[16];
    uint8_t qs[64];  // per 128 elements: 32 bytes, element 32 k + l in bits 2 k of byte l
    uint16_t d;
    uint16_t dmin;
};

// w = d * (scale - 32) * (code - 4); 16 groups of 16. The third bit of element 32 k + l is bit k of hmask[l]
struct BlockQ3K : BlockOf<TSR_TYPE_Q3_K, kSuperBlock, Scales::kOf16> {
    uint8_t hmask[32];
    uint8_t qs[64];      // as in q2_K
    uint8_t scales[12];  // 16 of 6 bits: low nibbles in bytes 0..7 (j and j + 8 share one), high pairs in bytes 8..11
    uint16_t d;
};

// w = d * scale * code - dmin * min; eight groups of 32, scale and min of 6 bits (see k_scale_min)
struct BlockQ4K : BlockOf<TSR_TYPE_Q4_K, kSuperBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12];
    // Per 64 elements: 32 bytes, the first 32 elements in the low nibbles, the others in the high ones.
    uint8_t qs[128];
};

// As q4_K; the fifth bit of element 32 k + l is bit k of qh[l]
struct BlockQ5K : BlockOf<TSR_TYPE_Q5_K, kSuperBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};

// w = d * scales[i] * (code - 32); 16 groups of 16
struct BlockQ6K : BlockOf<TSR_TYPE_Q6_K, kSuperBlock, Scales::kOf16> {
    uint8_t ql[128];  // per 128 elements: 64 bytes, elements 0..63 in the low nibbles, 64..127 in the high ones
    uint8_t qh[64];   // per 128 elements: 32 bytes, element 32 k + l in bits 2 k of byte l
    int8_t scales[16];
    uint16_t d;
};

static_assert(sizeof(BlockQ6_0) == 26 && sizeof(BlockMxfp4) == 17 && sizeof(BlockQ8KF16) == 258);
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIq4Nl) == 18 && sizeof(BlockIq4Xs) == 136);
static_assert(sizeof(BlockQ2K) == 84 && sizeof(BlockQ3K) == 110 && sizeof(BlockQ4K) == 144);
static_assert(sizeof(BlockQ5K) == 176 && sizeof(BlockQ6K) == 210);

// The 16 levels of iq4_nl and iq4_xs.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// The levels of mxfp4, doubled: e2m1 numbers of the OCP Microscaling specification 1.0.
inline constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct ScaleMin {
    uint8_t scale;
    uint8_t min;
};

// Group `j` (0..7) of the 12 packed bytes of q4_K and q5_K: the first four groups have six plain bits, the others find
// their low nibbles in bytes 8..11 and their upper two bits on top of the first four's.
inline ScaleMin k_scale_min(const uint8_t* scales, int j) noexcept {
    if (j < 4) return {static_cast<uint8_t>(scales[j] & 63), static_cast<uint8_t>(scales[j + 4] & 63)};
    return {static_cast<uint8_t>((scales[j + 4] & 15) | (scales[j - 4] >> 6 << 4)),
            static_cast<uint8_t>((scales[j + 4] >> 4) | (scales[j] >> 6 << 4))};
}

// Group `j` (0..15) of the 12 packed bytes of q3_K, centred: -32 .. 31.
inline int q3k_scale(const uint8_t* scales, int j) noexcept {
    const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    const int high = scales[8 + j % 4] >> (2 * (j / 4)) & 3;
    return (low | high << 4) - 32;
}

// Group `j` (0..7) of iq4_xs, centred: -32 .. 31.
inline int iq4xs_scale(const BlockIq4Xs& block, int j) noexcept {
    const int low = block.scales_l[j / 2] >> (4 * (j % 2)) & 15;
    const int high = block.scales_h >> (2 * j) & 3;
    return (low | high << 4) - 32;
}

}  // namespace tessera::formats
