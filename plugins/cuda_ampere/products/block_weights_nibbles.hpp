// Weights of iq4_nl and mxfp4 as tiles_staged.hpp multiplies them, eight blocks of 32 elements for one of 256. Two
// blocks are loaded as words that nothing aligns, and decoded when they are stored.
#pragma once

#include "kernels/cuda/formats/sub_block_small.hpp"
#include "tiles_blocks.hpp"

namespace tessera::cuda_kernels {
namespace block_weights {

template <int kType>
struct OfNibbles {
    using F = Format<kType>;
    static constexpr int kGroup = 32, kMinimums = 0;
    Table16 levels;
    float bias;

    // Compilers do not make them anew for each look-up.
    SIMT_DEVICE void begin_with(const int8_t (&values)[16]) {
        levels = sub_block_bits::table16(values);
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) levels.words[i] = static_cast<uint32_t>(kept(static_cast<int>(levels.words[i])));
    }
    SIMT_DEVICE void load_bias(const char* block) {
        float sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < 8; ++i) sum += scale_of<kType>(block, i, 1.f);
        bias = kMagic * sum;
    }
    // 32 elements, the first or the second of a segment.
    template <class Shared>
    SIMT_DEVICE void set(Shared& to, int s, int row, int half, float scale, const uint32_t (&words)[4]) const {
        uint32_t low[4], high[4];
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) sub_block_bits::look_up(levels, words[i], low[i], high[i]);
        to.set_codes(s, row, 2 * half, low);
        to.set_codes(s, row, 2 * half + 1, high);
        to.scales[s % 2][half][row] = scale;
    }
};

}  // namespace block_weights

template <int kParts>
struct BlockWeights<TSR_TYPE_IQ4_NL, kParts> : block_weights::OfNibbles<TSR_TYPE_IQ4_NL> {
    static_assert(kParts == 1 && F::kBlockBytes == 18 && F::kAlignment == 2);
    uint32_t raw[10], past;  // words around two blocks, and bytes before them

    SIMT_DEVICE void begin() { begin_with(formats::kIq4Values); }
    SIMT_DEVICE void load(const char* block, float, int s, int) {
        using namespace sub_block_bits;
        const char* from = block + 36 * s;
        past = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 2);
        const char* aligned = from - past;
        SIMT_UNROLL
        for (int i = 0; i < 9; ++i) raw[i] = get<uint32_t>(aligned + 4 * i);
        raw[9] = past ? two_at(aligned + 36) : 0;
        if (s == 0) load_bias(block);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int) const {
        using namespace simt;
        const uint32_t from_0 = 0x3210u + 0x1111u * past, from_2 = 0x5432u + 0x1111u * past;
        uint32_t words[2][4];
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            words[0][i] = byte_permute(raw[i], raw[i + 1], from_2);
            words[1][i] = byte_permute(raw[i + 5], raw[i + 6], from_0);
        }
        set(to, s, row, 0, unpack_low<half_t>(byte_permute(raw[0], raw[1], from_0)), words[0]);
        set(to, s, row, 1, unpack_low<half_t>(byte_permute(raw[4], raw[5], from_2)), words[1]);
        if (s == 0) to.bias[0][row] = bias;
    }
};

template <int kParts>
struct BlockWeights<TSR_TYPE_MXFP4, kParts> : block_weights::OfNibbles<TSR_TYPE_MXFP4> {
    static_assert(kParts == 1 && F::kBlockBytes == 17);
    uint32_t raw[10], past;  // words around 36 bytes, and bytes before them

    SIMT_DEVICE void begin() { begin_with(formats::kMxfp4Values); }
    SIMT_DEVICE void load(const char* block, float, int s, int) {
        using namespace sub_block_bits;
        // The last two blocks with two bytes before them, so that nothing past the end is read.
        const char* from = block + (s == 3 ? 100 : 34 * s);
        past = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 3);
        const char* aligned = from - past;
        SIMT_UNROLL
        for (int i = 0; i < 9; ++i) raw[i] = get<uint32_t>(aligned + 4 * i);
        if (s < 3) {
            raw[9] = get<uint32_t>(aligned + 36);
        } else {
            raw[9] = 0;
            if (past > 0) raw[9] = byte_at(aligned + 36);
            if (past > 1) raw[9] |= byte_at(aligned + 37) << 8;
            if (past > 2) raw[9] |= byte_at(aligned + 38) << 16;
        }
        if (s == 0) load_bias(block);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int) const {
        using namespace simt;
        using namespace block_weights;
        const uint32_t selector = 0x3210u + 0x1111u * past;
        uint32_t w[9], words[2][4];
        SIMT_UNROLL
        for (int i = 0; i < 9; ++i) w[i] = byte_permute(raw[i], raw[i + 1], selector);
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            words[0][i] = byte_permute(w[i], w[i + 1], s == 3 ? 0x6543u : 0x4321u);
            words[1][i] = s == 3 ? w[i + 5] : byte_permute(w[i + 4], w[i + 5], 0x5432u);
        }
        set(to, s, row, 0, mxfp4_scale(w[0] >> (s == 3 ? 16 : 0) & 255), words[0]);
        set(to, s, row, 1, mxfp4_scale(w[4] >> (s == 3 ? 24 : 8) & 255), words[1]);
        if (s == 0) to.bias[0][row] = bias;
    }
};

}  // namespace tessera::cuda_kernels
