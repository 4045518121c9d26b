// Products of many rows with weights of q2_K to q6_K.
#include "piece_k.hpp"
#include "product_kernels.hpp"  // of the plugin

TESSERA_PRODUCT(q2_K, TSR_TYPE_Q2_K)
TESSERA_PRODUCT(q3_K, TSR_TYPE_Q3_K)
TESSERA_PRODUCT(q4_K, TSR_TYPE_Q4_K)
TESSERA_PRODUCT(q5_K, TSR_TYPE_Q5_K)
TESSERA_PRODUCT(q6_K, TSR_TYPE_Q6_K)
