// Feed-forward networks of few rows with weights of q2_K to q6_K.
#include "../formats/families.hpp"
#include "ffn_few.hpp"
#include "ffn_one_row.hpp"
#include "../formats/sub_block_k.hpp"

TESSERA_FORMATS(K, TESSERA_FFN_OF)
TESSERA_FFN_ONE_ROW_BY_16(q4_K, Q4_K)
TESSERA_FFN_ONE_ROW(q6_K, Q6_K)
