// The blocks of iq1, iq2 and iq3: a byte and some further bits choose 8 or 4 neighbouring elements at once from a
// codebook (codebooks.hpp); signs lie beside. Names as in blocks.hpp; "group" g is elements 8 g .. 8 g + 7 of a block
// of 32. Source: the public GGUF specification and the `gguf` Python package, whose dequantisation these follow bit for
// bit.
#pragma once

#include <tessera/formats/blocks.hpp>
#include <tessera/formats/freestanding.hpp>

namespace tessera::formats {

// w = d * (scale + 1/2) / 4 * magnitude with sign. Per 32 elements 8 bytes: four entries of kIq2XxsGrid, then a 32-bit
// field: seven sign bits of each group, and in the upper four bits the scale.
struct BlockIq2Xxs : BlockOf<TSR_TYPE_IQ2_XXS, kSuperBlock> {
    uint16_t d;
    uint8_t qs[64];
};

// As iq2_xxs with kIq2XsGrid. Per group a 16-bit number: nine bits of entry, seven of signs; scales of 4 bits for 16
// elements.
struct BlockIq2Xs : BlockOf<TSR_TYPE_IQ2_XS, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t qs[32];
    uint8_t scales[8];
};

// As iq2_xs with kIq2SGrid: low eight bits of an entry in qs, two in qh (four groups a byte), eight signs in signs.
struct BlockIq2S : BlockOf<TSR_TYPE_IQ2_S, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint8_t qs[32];
    uint8_t signs[32];
    uint8_t qh[8];
    uint8_t scales[8];
};

// w = d * (scale + 1/2) / 2 * magnitude with sign. qs: entries of kIq3XxsGrid, 4 elements each; fields as in iq2_xxs.
struct BlockIq3Xxs : BlockOf<TSR_TYPE_IQ3_XXS, kSuperBlock> {
    uint16_t d;
    uint8_t qs[64];
    uint8_t fields[32];
};

// w = d * (2 scale + 1) * magnitude with sign. Bit i of qh[b] is the ninth bit of entry i (of kIq3SGrid) of block b of
// 32; scales of 4 bits for 32 elements.
struct BlockIq3S : BlockOf<TSR_TYPE_IQ3_S, kSuperBlock> {
    uint16_t d;
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t signs[32];
    uint8_t scales[4];
};

// w = d * (2 scale + 1) * (code - 1 +- 1/8). qs: low bits of entries of kIq1Grid; qh per 32 elements: three upper bits
// of each group's entry, three of scale, and on top whether 1/8 is taken away.
struct BlockIq1S : BlockOf<TSR_TYPE_IQ1_S, kSuperBlock> {
    uint16_t d;
    uint8_t qs[32];
    uint16_t qh[8];
};

// As iq1_s. qh: a nibble a group, three upper bits of the entry and whether 1/8 is taken away. scales: four 16-bit
// fields with four scales of 3 bits for 16 elements each; their upper nibbles together are d.
struct BlockIq1M : BlockOf<TSR_TYPE_IQ1_M, kSuperBlock, Scales::kOf16> {
    uint8_t qs[32];
    uint8_t qh[16];
    uint16_t scales[4];
};

// 32 elements of iq1_s under the scale of a row: rows of iq1_s_r4.
struct BlockIq1SRow : BlockOf<TSR_TYPE_IQ1_S_ROW, kSmallBlock> {
    using RowScale = uint16_t;
    uint8_t qs[4];
    uint16_t qh;
};

// 32 elements like iq1_m's under the scale of a row, with w = row scale * scale * (code - 1 +- 1/8) and scales of 4
// bits: rows of iq1_m_r4.
struct BlockIq1MRow : BlockOf<TSR_TYPE_IQ1_M_ROW, kSmallBlock, Scales::kOf16> {
    using RowScale = uint16_t;
    uint8_t qs[4];
    uint8_t qh[2];
    uint8_t scales;
};

static_assert(sizeof(BlockIq2Xxs) == 66 && sizeof(BlockIq2Xs) == 74 && sizeof(BlockIq2S) == 82);
static_assert(sizeof(BlockIq3Xxs) == 98 && sizeof(BlockIq3S) == 110);
static_assert(sizeof(BlockIq1S) == 50 && sizeof(BlockIq1M) == 56);
static_assert(sizeof(BlockIq1SRow) == 6 && sizeof(BlockIq1MRow) == 7);

// The values of the codes of codebooks.hpp.
inline constexpr int8_t kIq2Values[4] = {8, 25, 43, 0};
inline constexpr int8_t kIq3XxsValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};

// The eight signs of a group from seven bits: the number of minuses is even.
constexpr uint8_t even_signs(uint32_t seven) noexcept {
    return static_cast<uint8_t>((seven & 127) | (parity(seven & 127) << 7));
}

// The field of block `b` of 32: seven sign bits of each group and the scale.
inline uint32_t iq2xxs_field(const BlockIq2Xxs& block, int b) noexcept {
    uint32_t field;
    memcpy(&field, block.qs + 8 * b + 4, 4);
    return field;
}
inline uint32_t iq3xxs_field(const BlockIq3Xxs& block, int b) noexcept {
    uint32_t field;
    memcpy(&field, block.fields + 4 * b, 4);
    return field;
}

// Entry of group `g` (0..31, of the super-block).
inline int iq2s_entry(const BlockIq2S& block, int g) noexcept {
    return block.qs[g] | (block.qh[g / 4] >> (2 * (g % 4)) & 3) << 8;
}
inline int iq1s_entry(uint8_t low, uint16_t qh, int group) noexcept {
    return low | (qh >> (3 * group) & 7) << 8;
}
// `nibble`: three upper bits of the entry and the sign of the shift.
inline int iq1m_entry(uint8_t low, int nibble) noexcept {
    return low | (nibble & 7) << 8;
}
inline int iq1m_nibble(const uint8_t* qh, int g) noexcept {
    return qh[g / 2] >> (4 * (g % 2)) & 15;
}
// Entry `i` (0..63) of iq3_s.
inline int iq3s_entry(const BlockIq3S& block, int i) noexcept {
    return block.qs[i] | (block.qh[i / 8] >> (i % 8) & 1) << 8;
}
inline uint16_t iq1m_d(const BlockIq1M& block) noexcept {
    return static_cast<uint16_t>(block.scales[0] >> 12 | (block.scales[1] >> 8 & 0x00F0) |
                                 (block.scales[2] >> 4 & 0x0F00) | (block.scales[3] & 0xF000));
}
// Scale of 16 elements `h` (0..15).
inline int iq1m_scale(const BlockIq1M& block, int h) noexcept {
    return block.scales[h / 4] >> (3 * (h % 4)) & 7;
}

}  // namespace tessera::formats
