// Feed-forward networks of few rows with weights of formats whose codes stand for levels of their own.
#include "../formats/families.hpp"
#include "ffn_few.hpp"
#include "../formats/sub_block_levels.hpp"

TESSERA_FORMATS(Levels, TESSERA_FFN_OF)
