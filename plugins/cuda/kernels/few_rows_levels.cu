// Products of few rows with the formats with uneven levels that ik_llama.cpp added.
#include "few_rows.hpp"
#include "piece_levels.hpp"

TESSERA_FEW_ROWS_OF(iq2_k, IQ2_K)
TESSERA_FEW_ROWS_OF(iq3_k, IQ3_K)
TESSERA_FEW_ROWS_OF(iq4_k, IQ4_K)
TESSERA_FEW_ROWS_OF(iq5_k, IQ5_K)
TESSERA_FEW_ROWS_OF(iq6_k, IQ6_K)
TESSERA_FEW_ROWS_OF(iq2_ks, IQ2_KS)
TESSERA_FEW_ROWS_OF(iq3_ks, IQ3_KS)
TESSERA_FEW_ROWS_OF(iq4_ks, IQ4_KS)
TESSERA_FEW_ROWS_OF(iq5_ks, IQ5_KS)
