// Products of few rows with iq1, iq2 and iq3.
#include "../formats/families.hpp"
#include "few_rows_kernels.hpp"
#include "../formats/sub_block_codebook.hpp"

TESSERA_FORMATS(Codebook, TESSERA_FEW_ROWS_OF)
