// Codes of formats whose numbers are a block's scale times a signed code, spread over the range of a byte, so that
// kernels that widen bytes to int16 lose no precision.
#pragma once

#include <tessera/formats/block_list.hpp>
#include <tessera/formats/freestanding.hpp>

namespace tessera::formats {

// Blocks of 32 elements that begin with an f16 scale. A number is scale / spread times its spread code.
struct CodeFormat {
    int bytes = 0;   // of a block; 0: the type has no such codes
    int spread = 1;  // what codes are multiplied by
    // The 32 spread codes of the block at `block` (any alignment); nullptr: they lie behind the scale as they are.
    void (*codes)(const char* block, int8_t* to) noexcept = nullptr;
};

namespace codes_detail {

// code(block, j): the code of element j.
template <class Block, int kSpread, class Code>
inline CodeFormat code_format(Code) noexcept {
    return {sizeof(Block), kSpread, [](const char* at, int8_t* to) noexcept {
                Block block;
                memcpy(&block, at, sizeof block);
                for (int j = 0; j < 16; ++j) {
                    to[j] = static_cast<int8_t>(kSpread * Code{}(block, j));
                    to[j + 16] = static_cast<int8_t>(kSpread * Code{}(block, j + 16));
                }
            }};
}

}  // namespace codes_detail

inline CodeFormat code_format_of(tsr_type type) noexcept {
    using codes_detail::code_format;
    const auto nibble = [](const auto& block, int j) { return j < 16 ? block.qs[j] & 15 : block.qs[j - 16] >> 4; };
    using Nibble = decltype(nibble);
    switch (type) {
        case TSR_TYPE_Q8_0:
            return {sizeof(BlockQ8_0), 1, nullptr};
        case TSR_TYPE_Q6_0:
            return code_format<BlockQ6_0, 3>([](const BlockQ6_0& b, int j) { return six_bit_code(b, j) - 32; });
        case TSR_TYPE_Q5_0:
            return code_format<BlockQ5_0, 7>([](const BlockQ5_0& b, int j) { return five_bit_code(b, j) - 16; });
        case TSR_TYPE_Q4_0:
            return code_format<BlockQ4_0, 15>([](const BlockQ4_0& b, int j) { return Nibble{}(b, j) - 8; });
        case TSR_TYPE_IQ4_NL:
            return code_format<BlockIq4Nl, 1>([](const BlockIq4Nl& b, int j) { return kIq4Values[Nibble{}(b, j)]; });
        default:
            return {};
    }
}

}  // namespace tessera::formats
