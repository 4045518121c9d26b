// Instances of the products with q8_0: by the width of loads that the weight's alignment allows, and by rows of a tile.
#include "matmul_q8_0.hpp"
#include "quantise.hpp"

namespace tessera::cuda_kernels {

#if SIMT_ARCH >= 610
using ActivationRow = Int8Row;
#else
using ActivationRow = FloatRow;
#endif

}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

SIMT_KERNEL(32 * kQuantiseWarps, 4) quantise_activations(Matmul a) {
#if SIMT_ARCH >= 610
    for_blocks(a, [](const Matmul& m, const float* x, void* row, int block, int blocks) {
        quantise_block(m, x, row, block, blocks);
    });
#else
    for_blocks(a, [](const Matmul& m, const float* x, void* row, int block, int blocks) {
        spread_block(m, x, row, block, blocks);
    });
#endif
}

// Tiles of 8 rows keep more in registers: 2 blocks a multiprocessor.
#define TESSERA_MATMUL(width, tile)                                                      \
    SIMT_KERNEL(32 * kMatmulWarps, tile == 8 ? 2 : 4) matmul_q8_0_width##width##_tile##tile(Matmul a) {  \
        multiply_q8_0<ActivationRow, width, tile>(a);                                    \
    }
#define TESSERA_MATMUL_WIDTHS(tile) \
    TESSERA_MATMUL(16, tile)        \
    TESSERA_MATMUL(8, tile)         \
    TESSERA_MATMUL(4, tile)         \
    TESSERA_MATMUL(2, tile)

TESSERA_MATMUL_WIDTHS(1)
TESSERA_MATMUL_WIDTHS(2)
TESSERA_MATMUL_WIDTHS(4)
TESSERA_MATMUL_WIDTHS(8)

#define TESSERA_MATMUL_ID(width)                                                     \
    SIMT_KERNEL(32 * kMatmulWarps, 4) matmul_id_q8_0_width##width(MatmulId m) {      \
        multiply_by_id_q8_0<ActivationRow, width>(m);                                \
    }
TESSERA_MATMUL_ID(16)
TESSERA_MATMUL_ID(8)
TESSERA_MATMUL_ID(4)
TESSERA_MATMUL_ID(2)
