// Sub-blocks of any format, by what it says of its blocks' codes (tessera/formats/block_codes.hpp): what a format has
// that has none by hand. Freestanding.
#pragma once

#include "sub_block_bits.hpp"

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/block_list.hpp>

namespace tessera::cuda_kernels {

template <int kType>
struct Format : sub_block_bits::FormatOf<typename formats::BlockFor<static_cast<tsr_type>(kType)>::Type> {
    using Block = typename formats::BlockFor<static_cast<tsr_type>(kType)>::Type;
    using Base = sub_block_bits::FormatOf<Block>;
    static_assert(formats::kHasCodes<Block>, "a format needs codes_of or a Format by hand in a header of its family");

    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        const auto& block = *reinterpret_cast<const Block*>(Base::block(blocks, pair));
        const int half = static_cast<int>(2 * (pair % (Base::kBlockElements / 32)) + odd);
        const formats::Codes16 of = formats::codes_at(block, row_scale, half);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = sub_block_bits::four_values(of.codes[4 * i], of.codes[4 * i + 1], of.codes[4 * i + 2],
                                                     of.codes[4 * i + 3]);
        p.scale = of.scale;
        p.offset = of.offset;
        return p;
    }
};

}  // namespace tessera::cuda_kernels
