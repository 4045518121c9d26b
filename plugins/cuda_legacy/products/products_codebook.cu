// Products of many rows with weights of formats whose codes choose vectors of a codebook.
#include "kernels/cuda/formats/families.hpp"
#include "kernels/cuda/formats/sub_block_codebook.hpp"
#include "product_kernels.hpp"

TESSERA_FORMATS(Codebook, TESSERA_PRODUCT)
