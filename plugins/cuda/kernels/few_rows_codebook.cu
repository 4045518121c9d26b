// Products of few rows with iq1, iq2 and iq3.
#include "few_rows.hpp"
#include "piece_codebook.hpp"

TESSERA_FEW_ROWS_OF(iq1_s, IQ1_S)
TESSERA_FEW_ROWS_OF(iq1_m, IQ1_M)
TESSERA_FEW_ROWS_OF(iq1_s_row, IQ1_S_ROW)
TESSERA_FEW_ROWS_OF(iq1_m_row, IQ1_M_ROW)
TESSERA_FEW_ROWS_OF(iq2_xxs, IQ2_XXS)
TESSERA_FEW_ROWS_OF(iq2_xs, IQ2_XS)
TESSERA_FEW_ROWS_OF(iq2_s, IQ2_S)
TESSERA_FEW_ROWS_OF(iq3_xxs, IQ3_XXS)
TESSERA_FEW_ROWS_OF(iq3_s, IQ3_S)
