// Products of many rows with weights of q2_K to q6_K, on cards other than GeForce cards.
#include "kernels/cuda/formats/families.hpp"
#include "kernels/cuda/formats/sub_block_k.hpp"
#include "staged_kernels.hpp"

TESSERA_FORMATS(K, TESSERA_PRODUCT_STAGED)
