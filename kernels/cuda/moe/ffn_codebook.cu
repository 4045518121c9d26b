// Feed-forward networks of few rows with weights of formats whose codes choose vectors of a codebook.
#include "../formats/families.hpp"
#include "ffn_few.hpp"
#include "../formats/sub_block_codebook.hpp"

TESSERA_FORMATS(Codebook, TESSERA_FFN_OF)
