// Rows of any format, of random bits under scales that give weights of a wanted size.
#pragma once

#include <tessera/formats/formats.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace tessera::conformance {

// All types that weights can have.
inline std::vector<tsr_type> weight_types() {
    std::vector<tsr_type> types = {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16};
    formats::each_block_format([&]<class Block>() { types.push_back(Block::kType); });
    return types;
}

// Sets the f16 numbers that a block's scale consists of, unless the block's header has a function for it; minima get
// the sign that takes away.
template <class Block>
void scale_block(Block& block, float d) {
    if constexpr (requires { set_scale(block, d); }) {
        set_scale(block, d);
    } else {
        block.d = formats::f32_to_f16(d);
        if constexpr (requires { block.m; }) block.m = formats::f32_to_f16(-8 * d);
        if constexpr (requires { block.dmin; }) block.dmin = formats::f32_to_f16(d);
    }
}

// Scales of all blocks, or of the row, are `scale_of()`.
template <class ScaleOf>
void set_scales(tsr_type type, unsigned char* row, size_t elements, ScaleOf&& scale_of) {
    formats::visit_block_format(type, [&]<class Block>() {
        if constexpr (formats::kPrefixBytes<Block> != 0) {
            if constexpr (sizeof(typename Block::RowScale) == 4) {
                const float d = scale_of();
                std::memcpy(row, &d, sizeof d);
            } else {
                const uint16_t d = formats::f32_to_f16(scale_of());
                std::memcpy(row, &d, sizeof d);
            }
        } else {
            for (size_t i = 0; i < elements / Block::kElements; ++i) {
                Block block;
                std::memcpy(&block, row + i * sizeof(Block), sizeof(Block));
                scale_block(block, scale_of());
                std::memcpy(row + i * sizeof(Block), &block, sizeof(Block));
            }
        }
    });
}

// `rows` rows of `elements`, one after another, of about `size` each (root of the mean square). Plain formats:
// normally distributed.
inline void fill_rows(tsr_type type, void* to, size_t elements, size_t rows, float size, std::mt19937& random) {
    const size_t row_bytes = formats::format_bytes(type, elements);
    std::vector<float> values(elements);
    std::normal_distribution<float> normal(0, size);
    std::uniform_real_distribution<float> spread(0.5f, 1.5f);
    for (size_t r = 0; r < rows; ++r) {
        auto* row = static_cast<unsigned char*>(to) + r * row_bytes;
        if (formats::format_size(type).elements == 1) {
            for (float& v : values) v = normal(random);
            formats::encode_row(type, values.data(), elements, row);
            continue;
        }
        std::generate_n(row, row_bytes, [&] { return static_cast<unsigned char>(random()); });
        set_scales(type, row, elements, [] { return 1.0f; });
        formats::decode_row(type, row, elements, values.data());
        double squares = 0;
        for (const float v : values) squares += static_cast<double>(v) * v;
        const float unit = static_cast<float>(std::sqrt(squares / static_cast<double>(elements)));
        // A short row of few bits may be nothing but zeros.
        const float scale = unit > 0 ? size / unit : size;
        set_scales(type, row, elements, [&] { return scale * spread(random); });
    }
}

}  // namespace tessera::conformance
