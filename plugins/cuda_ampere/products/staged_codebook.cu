// Products of many rows with weights of formats whose codes choose vectors of a codebook, on cards other than GeForce
// cards.
#include "block_weights_entries.hpp"
#include "block_weights_iq1_m.hpp"
#include "block_weights_iq2.hpp"
#include "kernels/cuda/formats/families.hpp"
#include "kernels/cuda/formats/sub_block_codebook.hpp"
#include "staged_kernels.hpp"

TESSERA_FORMATS(Codebook, TESSERA_PRODUCT_STAGED)
