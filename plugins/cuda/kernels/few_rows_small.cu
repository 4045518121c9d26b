// Products of few rows with the formats of 32 elements a block, and with those that hold int8 as they are.
#include "few_rows.hpp"
#include "one_row.hpp"
#include "one_row_mma.hpp"
#include "piece_small.hpp"

TESSERA_FEW_ROWS_OF(q4_0, Q4_0)
TESSERA_FEW_ROWS_OF(q4_1, Q4_1)
TESSERA_FEW_ROWS_OF(q5_0, Q5_0)
TESSERA_FEW_ROWS_OF(q5_1, Q5_1)
TESSERA_FEW_ROWS_OF(q6_0, Q6_0)
TESSERA_FEW_ROWS_OF(q8_0, Q8_0)
TESSERA_FEW_ROWS_OF(mxfp4, MXFP4)
TESSERA_FEW_ROWS_OF(iq4_nl, IQ4_NL)
TESSERA_SEVERAL_ROWS_OF(iq4_xs, IQ4_XS)
TESSERA_FEW_ROWS_OF(q8_K_f16, Q8_K_F16)
TESSERA_FEW_ROWS_OF(q8_row, Q8_ROW)
TESSERA_ONE_ROW(q4_0, Q4_0)
TESSERA_ONE_ROW(q8_0, Q8_0)
TESSERA_ONE_ROW_MMA(iq4_xs, IQ4_XS)
