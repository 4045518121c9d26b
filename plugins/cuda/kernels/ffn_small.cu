// Feed-forward networks of few rows with weights of formats with blocks of 32 elements, and of those that hold int8.
#include "ffn_few.hpp"
#include "ffn_one_row.hpp"
#include "piece_small.hpp"

TESSERA_FFN(q4_0, TSR_TYPE_Q4_0)
TESSERA_FFN(q4_1, TSR_TYPE_Q4_1)
TESSERA_FFN(q5_0, TSR_TYPE_Q5_0)
TESSERA_FFN(q5_1, TSR_TYPE_Q5_1)
TESSERA_FFN(q6_0, TSR_TYPE_Q6_0)
TESSERA_FFN(q8_0, TSR_TYPE_Q8_0)
TESSERA_FFN(mxfp4, TSR_TYPE_MXFP4)
TESSERA_FFN(iq4_nl, TSR_TYPE_IQ4_NL)
TESSERA_FFN(q8_K_f16, TSR_TYPE_Q8_K_F16)
TESSERA_FFN(q8_row, TSR_TYPE_Q8_ROW)
TESSERA_FFN_ONE_ROW(q4_0, Q4_0)
TESSERA_FFN_ONE_ROW(q8_0, Q8_0)
TESSERA_FFN_ONE_ROW_BY_8(iq4_xs, IQ4_XS)
