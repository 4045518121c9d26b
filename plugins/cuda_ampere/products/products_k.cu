// Products of many rows with weights of q2_K to q6_K.
#include "kernels/cuda/formats/families.hpp"
#include "kernels/cuda/formats/sub_block_k.hpp"
#include "product_kernels.hpp"

TESSERA_FORMATS(K, TESSERA_PRODUCT)
