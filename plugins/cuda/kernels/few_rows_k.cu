// Products of few rows with the K formats.
#include "few_rows.hpp"
#include "one_row.hpp"
#include "piece_k.hpp"

TESSERA_FEW_ROWS_OF(q2_K, Q2_K)
TESSERA_FEW_ROWS_OF(q3_K, Q3_K)
TESSERA_SEVERAL_ROWS_OF(q4_K, Q4_K)
TESSERA_FEW_ROWS_OF(q5_K, Q5_K)
TESSERA_FEW_ROWS_OF(q6_K, Q6_K)
TESSERA_ONE_ROW_BY_16(q4_K, Q4_K)
TESSERA_ONE_ROW(q6_K, Q6_K)
