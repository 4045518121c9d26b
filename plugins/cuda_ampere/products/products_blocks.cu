// Products of many rows by int8 tensor cores with formats whose blocks have 32 elements and rows a multiple of 256, for
// cards with fewer lanes of f32 beside their tensor cores than GeForce cards have: activations have one scale for 256
// elements (tiles_blocks.hpp), so that an integer sum takes one multiply-add, not two as in tiles_mma.hpp.
#include "kernels/cuda/formats/piece_codebook.hpp"
#include "kernels/cuda/formats/piece_small.hpp"
#include "block_weights_iq1_m.hpp"
#include "block_weights_nibbles.hpp"
#include "tiles_blocks.hpp"

namespace tessera::cuda_kernels {

// Only rows have a scale.
template <int kParts>
struct BlockWeights<TSR_TYPE_Q8_ROW, kParts> {
    using F = Format<TSR_TYPE_Q8_ROW>;
    static constexpr int kGroup = 64, kMinimums = 0, kWords = 16 / kParts;
    uint32_t w[kWords];
    float scale;

    SIMT_DEVICE void load(const char* block, float row_scale, int s, int part) {
        piece_bits::get_words<F::kAlignment>(block + 64 * s + 4 * kWords * part, w);
        scale = row_scale;
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int i = 0; i < kWords / 4; ++i) {
            const uint32_t piece[4] = {w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]};
            to.set_codes(s, row, kWords / 4 * part + i, piece);
        }
        if (part == 0) to.scales[s % 2][0][row] = scale;
        if (s == 0) to.bias[part][row] = kMagic * scale * (8 / kParts);
    }
};

}  // namespace tessera::cuda_kernels

#define TESSERA_PRODUCT_BLOCKS(name, id)                                  \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 3)                  \
    product_##name##_blocks_64(tessera::cuda_kernels::Tiles a) {          \
        tessera::cuda_kernels::multiply_tile_blocks<TSR_TYPE_##id, 1>(a); \
    }                                                                     \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 2)                  \
    product_##name##_blocks_128(tessera::cuda_kernels::Tiles a) {         \
        tessera::cuda_kernels::multiply_tile_blocks<TSR_TYPE_##id, 2>(a); \
    }

TESSERA_JOINED_FORMATS(TESSERA_PRODUCT_BLOCKS)
