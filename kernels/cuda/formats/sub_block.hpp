// Sub-blocks of all block formats: 16 elements of a row as int8 codes with a scale and an offset, which products
// multiply with quantised activations (quantise.hpp) by dp4a or mma. A module of kernels includes the families that it
// needs.
#pragma once

#include "sub_block_codebook.hpp"
#include "sub_block_k.hpp"
#include "sub_block_levels.hpp"
#include "sub_block_small.hpp"
