// What the blocks of quantised formats, as they lie in a file (little-endian), have in common. A row is whole blocks
// one after another, behind a scale of the row where the format has one.
//
// Names: d is the f16 scale of a block, m or dmin its f16 minimum, qs the low bits of the codes, qh the high ones. In
// the formats of 32, byte j of qs holds element j in its low nibble and element j + 16 in its high one. The formats of
// 256 ("super-blocks") divide d once more by small integers, one per 16 or 32 elements; "half" h is elements 16 h ..
// 16 h + 15 of a block.
#pragma once

#include <tessera/formats/freestanding.hpp>
#include <tessera/types.h>

namespace tessera::formats {

inline constexpr int kSmallBlock = 32;   // elements in a block of q4_0 .. q8_0 and iq4_nl
inline constexpr int kSuperBlock = 256;  // elements in a block of the K formats and iq4_xs

// How many neighbouring elements share a scale (16, or 32 and more), and whether something is added to scale * code.
enum class Scales { kOf32, kOf32WithOffset, kOf16, kOf16WithOffset };

// The type and the number of elements of a block, and what kernels ask of its scales. Formats whose rows begin with a
// scale of their own name its type as RowScale: uint16_t (f16) or float; where more bytes lie between it and the first
// block, kRowHead is all of them.
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
inline constexpr uint32_t kPrefixBytes<Block> = [] {
    if constexpr (requires { Block::kRowHead; })
        return Block::kRowHead;
    else
        return static_cast<uint32_t>(sizeof(typename Block::RowScale));
}();

// Each format's header in types/ has its block and, beside it, as far as the format has them:
//     void decode(const Block&, float* out), of formats with a scale a row decode(const Block&, RowScale, float* out):
//         a block to its values, which do not overlap it; or codes_of (block_codes.hpp), from which that follows
//     void encode(const float* in, Block&)       (encode.hpp)
//     Interleaved<type of the file>              (interleaving.hpp)
//     void set_scale(Block&, float d)            a scale near `d`, which is positive, for random blocks: of formats
//                                                whose scale is no f16 `d`
// Every product of a scale and a code to which something is added is exact in f32 (at most 24 significant bits), so the
// values do not depend on whether the compiler fuses a multiplication with the addition after it.

}  // namespace tessera::formats
