// Products of many rows with weights of formats whose codes stand for levels of their own.
#include "kernels/cuda/formats/families.hpp"
#include "kernels/cuda/formats/sub_block_levels.hpp"
#include "product_kernels.hpp"

TESSERA_FORMATS(Levels, TESSERA_PRODUCT)
