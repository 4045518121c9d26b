// The block formats, by how they are decoded (piece_*.hpp): X(name, id) for each, where TSR_TYPE_##id is its type.
// Instances of all kernels are made from these lists. UNALIGNED: those whose rows may lie at addresses that kernels of
// one row do not take (row_places.hpp).
#pragma once

// Those with blocks of 32 elements, and those that hold int8 as they are.
#define TESSERA_FORMATS_SMALL_UNALIGNED(X) \
    X(q4_0, Q4_0)                          \
    X(q4_1, Q4_1)                          \
    X(q5_0, Q5_0)                          \
    X(q5_1, Q5_1)                          \
    X(q6_0, Q6_0)                          \
    X(q8_0, Q8_0)                          \
    X(mxfp4, MXFP4)                        \
    X(iq4_nl, IQ4_NL)                      \
    X(q8_K_f16, Q8_K_F16)                  \
    X(q8_row, Q8_ROW)
#define TESSERA_FORMATS_SMALL(X)       \
    TESSERA_FORMATS_SMALL_UNALIGNED(X) \
    X(iq4_xs, IQ4_XS)

// Those of q2_K to q6_K.
#define TESSERA_FORMATS_K_UNALIGNED(X) \
    X(q2_K, Q2_K)                      \
    X(q3_K, Q3_K)                      \
    X(q5_K, Q5_K)                      \
    X(q6_K, Q6_K)
#define TESSERA_FORMATS_K(X)       \
    TESSERA_FORMATS_K_UNALIGNED(X) \
    X(q4_K, Q4_K)

// Those whose codes stand for levels of their own.
#define TESSERA_FORMATS_LEVELS(X) \
    X(iq2_k, IQ2_K)               \
    X(iq3_k, IQ3_K)               \
    X(iq4_k, IQ4_K)               \
    X(iq5_k, IQ5_K)               \
    X(iq6_k, IQ6_K)               \
    X(iq2_ks, IQ2_KS)             \
    X(iq3_ks, IQ3_KS)             \
    X(iq4_ks, IQ4_KS)             \
    X(iq5_ks, IQ5_KS)

// Those whose codes choose vectors of a codebook.
#define TESSERA_FORMATS_CODEBOOK(X) \
    X(iq1_s, IQ1_S)                 \
    X(iq1_m, IQ1_M)                 \
    X(iq1_s_row, IQ1_S_ROW)         \
    X(iq1_m_row, IQ1_M_ROW)         \
    X(iq2_xxs, IQ2_XXS)             \
    X(iq2_xs, IQ2_XS)               \
    X(iq2_s, IQ2_S)                 \
    X(iq3_xxs, IQ3_XXS)             \
    X(iq3_s, IQ3_S)
