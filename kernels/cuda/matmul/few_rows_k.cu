// Products of few rows with the K formats.
#include "../formats/families.hpp"
#include "few_rows_kernels.hpp"
#include "one_row.hpp"
#include "../formats/sub_block_k.hpp"

TESSERA_FORMATS(K, TESSERA_FEW_ROWS_OF)
TESSERA_ONE_ROW_BY_16(q4_K, Q4_K)
TESSERA_ONE_ROW(q6_K, Q6_K)
