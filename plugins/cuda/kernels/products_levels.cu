// Products of many rows with weights of formats whose codes stand for levels of their own.
#include "piece_levels.hpp"
#include "product_kernels.hpp"  // of the plugin

TESSERA_PRODUCT(iq2_k, TSR_TYPE_IQ2_K)
TESSERA_PRODUCT(iq3_k, TSR_TYPE_IQ3_K)
TESSERA_PRODUCT(iq4_k, TSR_TYPE_IQ4_K)
TESSERA_PRODUCT(iq5_k, TSR_TYPE_IQ5_K)
TESSERA_PRODUCT(iq6_k, TSR_TYPE_IQ6_K)
TESSERA_PRODUCT(iq2_ks, TSR_TYPE_IQ2_KS)
TESSERA_PRODUCT(iq3_ks, TSR_TYPE_IQ3_KS)
TESSERA_PRODUCT(iq4_ks, TSR_TYPE_IQ4_KS)
TESSERA_PRODUCT(iq5_ks, TSR_TYPE_IQ5_KS)
