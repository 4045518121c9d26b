// Feed-forward networks of few rows with weights of formats whose codes choose vectors of a codebook.
#include "ffn_few.hpp"
#include "piece_codebook.hpp"

TESSERA_FFN(iq1_s, TSR_TYPE_IQ1_S)
TESSERA_FFN(iq1_m, TSR_TYPE_IQ1_M)
TESSERA_FFN(iq1_s_row, TSR_TYPE_IQ1_S_ROW)
TESSERA_FFN(iq1_m_row, TSR_TYPE_IQ1_M_ROW)
TESSERA_FFN(iq2_xxs, TSR_TYPE_IQ2_XXS)
TESSERA_FFN(iq2_xs, TSR_TYPE_IQ2_XS)
TESSERA_FFN(iq2_s, TSR_TYPE_IQ2_S)
TESSERA_FFN(iq3_xxs, TSR_TYPE_IQ3_XXS)
TESSERA_FFN(iq3_s, TSR_TYPE_IQ3_S)
