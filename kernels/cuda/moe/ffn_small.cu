// Feed-forward networks of few rows with weights of formats with blocks of 32 elements, and of those that hold int8.
#include "../formats/families.hpp"
#include "ffn_few.hpp"
#include "ffn_one_row.hpp"
#include "../formats/sub_block_small.hpp"

TESSERA_FORMATS(Small, TESSERA_FFN_OF)
TESSERA_FFN_ONE_ROW(q4_0, Q4_0)
TESSERA_FFN_ONE_ROW(q8_0, Q8_0)
TESSERA_FFN_ONE_ROW_BY_8(iq4_xs, IQ4_XS)
