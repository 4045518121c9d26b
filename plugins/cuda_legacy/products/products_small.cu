// Products of many rows with weights of formats with blocks of 32 elements, and of those that hold int8.
#include "kernels/cuda/formats/families.hpp"
#include "kernels/cuda/formats/sub_block_small.hpp"
#include "product_kernels.hpp"

TESSERA_FORMATS(Small, TESSERA_PRODUCT)
