// Feed-forward networks of few rows with weights of q2_K to q6_K.
#include "ffn_few.hpp"
#include "ffn_one_row.hpp"
#include "piece_k.hpp"

TESSERA_FFN(q2_K, TSR_TYPE_Q2_K)
TESSERA_FFN(q3_K, TSR_TYPE_Q3_K)
TESSERA_FFN(q5_K, TSR_TYPE_Q5_K)
TESSERA_FFN(q6_K, TSR_TYPE_Q6_K)
TESSERA_FFN_ONE_ROW_BY_16(q4_K, Q4_K)
TESSERA_FFN_ONE_ROW(q6_K, Q6_K)
