// q8_KV: int8 under the scale of a row. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/encode.hpp>

namespace tessera::formats {

// w = row scale * code
struct BlockQ8KV : BlockOf<TSR_TYPE_Q8_KV, kSmallBlock> {
    struct RowHead {
        float d;
        int32_t sum;  // of the row's codes; not read

        // NaN for an infinity, so that it is not lost.
        static RowHead of(float largest) noexcept { return {largest / 127.0f + largest * 0.0f, 0}; }
    };
    using RowScale = float;
    static constexpr uint32_t kRowHead = sizeof(RowHead);
    int8_t qs[32];
};

inline void codes_of(const BlockQ8KV& block, float row_scale, int half, Codes16& to) noexcept {
    memcpy(to.codes, block.qs + 16 * half, 16);
    to.scale = row_scale;
}

inline void encode(const float* in, BlockQ8KV::RowHead& head, BlockQ8KV& block) noexcept {
    const float inverse_d = encode_detail::inverse(head.d);
    for (int j = 0; j < kSmallBlock; ++j) {
        block.qs[j] = encode_detail::signed_code(in[j] * inverse_d);
        head.sum += block.qs[j];
    }
}

}  // namespace tessera::formats
