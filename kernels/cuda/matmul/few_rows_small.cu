// Products of few rows with the formats of 32 elements a block, and with those that hold int8 as they are.
#include "../formats/families.hpp"
#include "few_rows_kernels.hpp"
#include "one_row.hpp"
#include "one_row_mma.hpp"
#include "../formats/sub_block_small.hpp"

TESSERA_FORMATS(Small, TESSERA_FEW_ROWS_OF)
TESSERA_ONE_ROW(q4_0, Q4_0)
TESSERA_ONE_ROW(q8_0, Q8_0)
TESSERA_ONE_ROW_MMA(iq4_xs, IQ4_XS)
