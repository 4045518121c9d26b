// The block formats by family (types.h): TESSERA_FORMATS(family, X) is X(name, id) for each format of it, where
// TSR_TYPE_##id is its type. Kernels that every format has are made from these lists. A new family is declared by name
// below and has its modules of kernels.
#pragma once

#include <tessera/types.h>

#define TESSERA_FORMATS(family, X) TSR_BLOCK_TYPE_ROWS(TESSERA_ROW_OF_##family, X)

#define TESSERA_ROW_OF_Small(X, id, code_name, number, packed, name, family, ...) TESSERA_IF_Small_##family(X, name, id)
#define TESSERA_ROW_OF_K(X, id, code_name, number, packed, name, family, ...) TESSERA_IF_K_##family(X, name, id)
#define TESSERA_ROW_OF_Levels(X, id, code_name, number, packed, name, family, ...) \
    TESSERA_IF_Levels_##family(X, name, id)
#define TESSERA_ROW_OF_Codebook(X, id, code_name, number, packed, name, family, ...) \
    TESSERA_IF_Codebook_##family(X, name, id)

#define TESSERA_IF_Small_Small(X, name, id) X(name, id)
#define TESSERA_IF_Small_K(X, name, id)
#define TESSERA_IF_Small_Levels(X, name, id)
#define TESSERA_IF_Small_Codebook(X, name, id)
#define TESSERA_IF_K_Small(X, name, id)
#define TESSERA_IF_K_K(X, name, id) X(name, id)
#define TESSERA_IF_K_Levels(X, name, id)
#define TESSERA_IF_K_Codebook(X, name, id)
#define TESSERA_IF_Levels_Small(X, name, id)
#define TESSERA_IF_Levels_K(X, name, id)
#define TESSERA_IF_Levels_Levels(X, name, id) X(name, id)
#define TESSERA_IF_Levels_Codebook(X, name, id)
#define TESSERA_IF_Codebook_Small(X, name, id)
#define TESSERA_IF_Codebook_K(X, name, id)
#define TESSERA_IF_Codebook_Levels(X, name, id)
#define TESSERA_IF_Codebook_Codebook(X, name, id) X(name, id)

// TESSERA_UNALIGNED(X, name, id): X(name, id), but nothing for a format whose rows lie at multiples of 8 or 16 bytes
// and for which kernels of one row by hand therefore do (reads_by_any in wide_formats.hpp).
#define TESSERA_ALIGNED_Q4_K ~, TESSERA_NO_KERNELS
#define TESSERA_ALIGNED_IQ4_XS ~, TESSERA_NO_KERNELS
#define TESSERA_NO_KERNELS(name, id)
#define TESSERA_SECOND_OF(first, second, ...) second
#define TESSERA_SECOND(...) TESSERA_SECOND_OF(__VA_ARGS__)
#define TESSERA_UNALIGNED(X, name, id) TESSERA_SECOND(TESSERA_ALIGNED_##id, X, ~)(name, id)

// TESSERA_ONE_ROW_BY_LANES(X, name, id): X(name, id), but nothing for a format of which tensor cores take one row, too,
// where they are (mma_multiplies_one_row in wide_formats.hpp).
#if SIMT_ARCH >= 800
#define TESSERA_ONE_ROW_BY_MMA_Q5_K ~, TESSERA_NO_KERNELS
#define TESSERA_ONE_ROW_BY_MMA_Q2_K ~, TESSERA_NO_KERNELS
#define TESSERA_ONE_ROW_BY_MMA_Q3_K ~, TESSERA_NO_KERNELS
#define TESSERA_ONE_ROW_BY_MMA_IQ4_NL ~, TESSERA_NO_KERNELS
#define TESSERA_ONE_ROW_BY_MMA_MXFP4 ~, TESSERA_NO_KERNELS
#endif
#define TESSERA_ONE_ROW_BY_LANES(X, name, id) TESSERA_SECOND(TESSERA_ONE_ROW_BY_MMA_##id, X, ~)(name, id)
