// Products of many rows with weights of formats whose codes choose vectors of a codebook.
#include "piece_codebook.hpp"
#include "product_kernels.hpp"  // of the plugin

TESSERA_PRODUCT(iq1_s, TSR_TYPE_IQ1_S)
TESSERA_PRODUCT(iq1_m, TSR_TYPE_IQ1_M)
TESSERA_PRODUCT(iq1_s_row, TSR_TYPE_IQ1_S_ROW)
TESSERA_PRODUCT(iq1_m_row, TSR_TYPE_IQ1_M_ROW)
TESSERA_PRODUCT(iq2_xxs, TSR_TYPE_IQ2_XXS)
TESSERA_PRODUCT(iq2_xs, TSR_TYPE_IQ2_XS)
TESSERA_PRODUCT(iq2_s, TSR_TYPE_IQ2_S)
TESSERA_PRODUCT(iq3_xxs, TSR_TYPE_IQ3_XXS)
TESSERA_PRODUCT(iq3_s, TSR_TYPE_IQ3_S)
