// Products of many rows with weights of formats whose codes stand for levels of their own, on cards other than GeForce
// cards.
#include "block_weights_iq3_ks.hpp"
#include "block_weights_levels.hpp"
#include "kernels/cuda/formats/families.hpp"
#include "kernels/cuda/formats/sub_block_levels.hpp"
#include "staged_kernels.hpp"

TESSERA_FORMATS(Levels, TESSERA_PRODUCT_STAGED)
