// Feed-forward networks of few rows with weights of formats whose codes stand for levels of their own.
#include "ffn_few.hpp"
#include "piece_levels.hpp"

TESSERA_FFN(iq2_k, TSR_TYPE_IQ2_K)
TESSERA_FFN(iq3_k, TSR_TYPE_IQ3_K)
TESSERA_FFN(iq4_k, TSR_TYPE_IQ4_K)
TESSERA_FFN(iq5_k, TSR_TYPE_IQ5_K)
TESSERA_FFN(iq6_k, TSR_TYPE_IQ6_K)
TESSERA_FFN(iq2_ks, TSR_TYPE_IQ2_KS)
TESSERA_FFN(iq3_ks, TSR_TYPE_IQ3_KS)
TESSERA_FFN(iq4_ks, TSR_TYPE_IQ4_KS)
TESSERA_FFN(iq5_ks, TSR_TYPE_IQ5_KS)
