// Products of many rows with weights of formats with blocks of 32 elements, and of those that hold int8, on cards other
// than GeForce cards: activations have one scale for 256 elements, so that an integer sum takes one multiply-add, not
// two as in tiles_mma.hpp.
#include "block_weights_nibbles.hpp"
#include "block_weights_q8_row.hpp"
#include "kernels/cuda/formats/sub_block_small.hpp"
#include "staged_kernels.hpp"

TESSERA_PRODUCT_STAGED(q4_0, Q4_0)
TESSERA_PRODUCT_STAGED(q4_1, Q4_1)
TESSERA_PRODUCT_STAGED(q5_0, Q5_0)
TESSERA_PRODUCT_STAGED(q5_1, Q5_1)
TESSERA_PRODUCT_STAGED(q6_0, Q6_0)
TESSERA_PRODUCT_STAGED(q8_0, Q8_0)
TESSERA_PRODUCT_STAGED(iq4_nl, IQ4_NL)
TESSERA_PRODUCT_STAGED(mxfp4, MXFP4)
TESSERA_PRODUCT_STAGED(q8_row, Q8_ROW)
TESSERA_PRODUCT_STAGED(iq4_xs, IQ4_XS)
TESSERA_PRODUCT_STAGED(tq1_0, TQ1_0)
TESSERA_PRODUCT_STAGED(tq2_0, TQ2_0)
TESSERA_PRODUCT_STAGED(q8_K_f16, Q8_K_F16)
