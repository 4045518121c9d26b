// Products of few rows with the formats with uneven levels that ik_llama.cpp added.
#include "../formats/families.hpp"
#include "few_rows_kernels.hpp"
#include "../formats/sub_block_levels.hpp"

TESSERA_FORMATS(Levels, TESSERA_FEW_ROWS_OF)
