/* Element types. The numbers are those of the GGUF format, so that a file's types need no translation; they are format
 * constants and never change. Sources: the public GGUF specification; numbers from 133 on are those that ik_llama.cpp
 * writes into its files. */
#pragma once

#include <stdint.h>

typedef uint32_t tsr_type;

/* The one list of element types; enumerators, names, sizes, packed types, and what knows each of them (block formats,
 * kernels, layouts) are generated from it by the macros below. A row of a tensor is its prefix, then whole blocks.
 * Rows: M(X, ID, name in C++ (BlockQ2K), number, number of the packed type, name, family (how codes are decoded:
 * kernels of a family are compiled together), elements of a block, bytes of a block, bytes of the prefix). */
#define TSR_FLOAT_TYPE_ROWS(M, X)                 \
    M(X, F32, F32, 0, 20000, f32, Float, 1, 4, 0) \
    M(X, F16, F16, 1, 20001, f16, Float, 1, 2, 0) \
    M(X, BF16, Bf16, 30, 20030, bf16, Float, 1, 2, 0)

#define TSR_BLOCK_TYPE_ROWS(M, X)                                            \
    M(X, Q4_0, Q4_0, 2, 20002, q4_0, Small, 32, 18, 0)                       \
    M(X, Q4_1, Q4_1, 3, 20003, q4_1, Small, 32, 20, 0)                       \
    M(X, Q5_0, Q5_0, 6, 20006, q5_0, Small, 32, 22, 0)                       \
    M(X, Q5_1, Q5_1, 7, 20007, q5_1, Small, 32, 24, 0)                       \
    M(X, Q8_0, Q8_0, 8, 20008, q8_0, Small, 32, 34, 0)                       \
    M(X, Q2_K, Q2K, 10, 20010, q2_K, K, 256, 84, 0)                          \
    M(X, Q3_K, Q3K, 11, 20011, q3_K, K, 256, 110, 0)                         \
    M(X, Q4_K, Q4K, 12, 20012, q4_K, K, 256, 144, 0)                         \
    M(X, Q5_K, Q5K, 13, 20013, q5_K, K, 256, 176, 0)                         \
    M(X, Q6_K, Q6K, 14, 20014, q6_K, K, 256, 210, 0)                         \
    M(X, IQ2_XXS, Iq2Xxs, 16, 20016, iq2_xxs, Codebook, 256, 66, 0)          \
    M(X, IQ2_XS, Iq2Xs, 17, 20017, iq2_xs, Codebook, 256, 74, 0)             \
    M(X, IQ3_XXS, Iq3Xxs, 18, 20018, iq3_xxs, Codebook, 256, 98, 0)          \
    M(X, IQ1_S, Iq1S, 19, 20019, iq1_s, Codebook, 256, 50, 0)                \
    M(X, IQ4_NL, Iq4Nl, 20, 20020, iq4_nl, Small, 32, 18, 0)                 \
    M(X, IQ3_S, Iq3S, 21, 20021, iq3_s, Codebook, 256, 110, 0)               \
    M(X, IQ2_S, Iq2S, 22, 20022, iq2_s, Codebook, 256, 82, 0)                \
    M(X, IQ4_XS, Iq4Xs, 23, 20023, iq4_xs, Small, 256, 136, 0)               \
    M(X, IQ1_M, Iq1M, 29, 20029, iq1_m, Codebook, 256, 56, 0)                \
    M(X, TQ1_0, Tq1_0, 34, 21034, tq1_0, Small, 256, 54, 0)                  \
    M(X, TQ2_0, Tq2_0, 35, 20035, tq2_0, Small, 256, 66, 0)                  \
    M(X, MXFP4, Mxfp4, 39, 20039, mxfp4, Small, 32, 17, 0)                   \
    M(X, NVFP4, Nvfp4, 40, 20040, nvfp4, Small, 64, 36, 0)                   \
    M(X, Q1_0, Q1_0, 41, 20041, q1_0, Small, 128, 18, 0)                     \
    M(X, Q6_0, Q6_0, 133, 20133, q6_0, Small, 32, 26, 0)                     \
    M(X, IQ1_BN, Iq1Bn, 134, 21134, iq1_bn, Small, 64, 13, 2)                \
    M(X, IQ2_BN, Iq2Bn, 135, 20135, iq2_bn, Small, 64, 16, 4)                \
    M(X, IQ2_K, Iq2K, 137, 20137, iq2_k, Levels, 256, 76, 0)                 \
    M(X, IQ3_K, Iq3K, 138, 20138, iq3_k, Levels, 256, 110, 0)                \
    M(X, IQ4_K, Iq4K, 139, 20139, iq4_k, Levels, 256, 144, 0)                \
    M(X, IQ5_K, Iq5K, 140, 20140, iq5_k, Levels, 256, 176, 0)                \
    M(X, IQ6_K, Iq6K, 141, 20141, iq6_k, Levels, 256, 212, 0)                \
    M(X, IQ4_KS, Iq4Ks, 144, 20144, iq4_ks, Levels, 256, 136, 4)             \
    M(X, IQ2_KS, Iq2Ks, 145, 20145, iq2_ks, Levels, 256, 70, 2)              \
    M(X, IQ4_KSS, Iq4Kss, 146, 20146, iq4_kss, Levels, 256, 128, 4)          \
    M(X, Q8_KV, Q8KV, 151, 20151, q8_KV, Small, 32, 32, 8)                   \
    M(X, IQ5_KS, Iq5Ks, 152, 20152, iq5_ks, Levels, 256, 168, 4)             \
    M(X, IQ2_KT, Iq2Kt, 153, 20153, iq2_kt, Levels, 256, 68, 4)              \
    M(X, IQ3_KT, Iq3Kt, 154, 20154, iq3_kt, Levels, 256, 100, 4)             \
    M(X, IQ4_KT, Iq4Kt, 155, 20155, iq4_kt, Levels, 256, 128, 4)             \
    M(X, IQ3_KS, Iq3Ks, 156, 20156, iq3_ks, Levels, 256, 102, 2)             \
    M(X, IQ2_KL, Iq2Kl, 157, 20157, iq2_kl, Levels, 256, 86, 2)              \
    M(X, IQ1_KT, Iq1Kt, 158, 20158, iq1_kt, Levels, 256, 56, 4)              \
    /* Rows of interleaved types that have no type of their own in files. */ \
    M(X, IQ1_S_ROW, Iq1SRow, 65536, 21000, iq1_s_row, Codebook, 32, 6, 2)    \
    M(X, IQ1_M_ROW, Iq1MRow, 65537, 21001, iq1_m_row, Codebook, 32, 7, 2)    \
    M(X, Q8_K_F16, Q8KF16, 65538, 21002, q8_K_f16, Small, 256, 258, 0)       \
    M(X, Q8_ROW, Q8Row, 65539, 21003, q8_row, Small, 32, 32, 4)

/* Without packed types and kernels: M(X, ID, number, name, elements and bytes of a block, bytes of the prefix). */
#define TSR_PLAIN_TYPE_ROWS(M, X) \
    M(X, I8, 24, "i8", 1, 1, 0)   \
    M(X, I16, 25, "i16", 1, 2, 0) \
    M(X, I32, 26, "i32", 1, 4, 0) \
    M(X, I64, 27, "i64", 1, 8, 0) \
    M(X, F64, 28, "f64", 1, 8, 0)

#define TSR_TYPE_ROW(X, id, code_name, number, packed_number, name, family, elements, bytes, prefix) \
    X(id, number, #name, elements, bytes, prefix)
#define TSR_PLAIN_TYPE_ROW(X, id, number, name, elements, bytes, prefix) X(id, number, name, elements, bytes, prefix)
#define TSR_CODE_NAME_ROW(X, id, code_name, ...) X(id, code_name)
#define TSR_PACKED_TYPE_ROW(X, id, code_name, number, packed_number, name, ...) \
    X(id##_X8, packed_number, #name "_x8", id, 8)

/* All types that tensors can have: X(ID, number, name, elements of a block, bytes of a block, bytes of a row before its
 * first block). */
#define TSR_TYPES(X)                     \
    TSR_FLOAT_TYPE_ROWS(TSR_TYPE_ROW, X) \
    TSR_BLOCK_TYPE_ROWS(TSR_TYPE_ROW, X) \
    TSR_PLAIN_TYPE_ROWS(TSR_PLAIN_TYPE_ROW, X)

/* Types of floats and of blocks: X(ID, name in C++). */
#define TSR_FLOAT_TYPES(X) TSR_FLOAT_TYPE_ROWS(TSR_CODE_NAME_ROW, X)
#define TSR_BLOCK_TYPES(X) TSR_BLOCK_TYPE_ROWS(TSR_CODE_NAME_ROW, X)

/* Types of tensors in files whose neighbouring rows are interleaved: X(ID, number, name, type of the rows, rows). They
 * take the bytes that their rows take. Outside files they are layouts of the type of their rows (tsr_layout), by the
 * same names. */
#define TSR_INTERLEAVED_TYPES(X)                 \
    X(Q4_0_R8, 202, "q4_0_r8", Q4_0, 8)          \
    X(Q5_0_R4, 206, "q5_0_r4", Q5_0, 4)          \
    X(Q8_0_R8, 208, "q8_0_r8", Q8_0, 8)          \
    X(Q2_K_R4, 210, "q2_k_r4", Q2_K, 4)          \
    X(Q3_K_R4, 211, "q3_k_r4", Q3_K, 4)          \
    X(Q4_K_R4, 212, "q4_k_r4", Q4_K, 4)          \
    X(Q5_K_R4, 213, "q5_k_r4", Q5_K, 4)          \
    X(Q6_K_R4, 214, "q6_k_r4", Q6_K, 4)          \
    X(IQ2_XXS_R4, 216, "iq2_xxs_r4", IQ2_XXS, 4) \
    X(IQ2_XS_R4, 217, "iq2_xs_r4", IQ2_XS, 4)    \
    X(IQ3_XXS_R4, 218, "iq3_xxs_r4", IQ3_XXS, 4) \
    X(IQ1_S_R4, 219, "iq1_s_r4", IQ1_S_ROW, 4)   \
    X(IQ4_NL_R4, 220, "iq4_nl_r4", IQ4_NL, 4)    \
    X(IQ3_S_R4, 221, "iq3_s_r4", IQ3_S, 4)       \
    X(IQ2_S_R4, 222, "iq2_s_r4", IQ2_S, 4)       \
    X(IQ4_XS_R8, 223, "iq4_xs_r8", IQ4_XS, 8)    \
    X(IQ1_M_R4, 229, "iq1_m_r4", IQ1_M_ROW, 4)   \
    X(BF16_R16, 230, "bf16_r16", BF16, 16)       \
    X(Q6_0_R4, 233, "q6_0_r4", Q6_0, 4)          \
    X(IQ2_K_R4, 337, "iq2_k_r4", IQ2_K, 4)       \
    X(IQ3_K_R4, 338, "iq3_k_r4", IQ3_K, 4)       \
    X(IQ4_K_R4, 339, "iq4_k_r4", IQ4_K, 4)       \
    X(IQ5_K_R4, 340, "iq5_k_r4", IQ5_K, 4)       \
    X(IQ4_KS_R4, 344, "iq4_ks_r4", IQ4_KS, 4)    \
    X(IQ5_KS_R4, 352, "iq5_ks_r4", IQ5_KS, 4)    \
    X(MXFP4_R8, 353, "mxfp4_r8", MXFP4, 8)       \
    X(Q8_K_R16, 397, "q8_k_r16", Q8_K_F16, 16)   \
    X(Q8_KV_R8, 398, "q8_KV_r8", Q8_ROW, 8)      \
    X(Q8_K_R8, 399, "q8_k_r8", Q8_K_F16, 8)

/* Types of tensors in files that `tessera repack` writes: groups of eight rows in the packed layouts of the x86 plugins
 * (kernels/x86/layouts), so that they are used in the mapped file. As above; the numbers are this project's own. */
#define TSR_PACKED_TYPES(X)                     \
    TSR_FLOAT_TYPE_ROWS(TSR_PACKED_TYPE_ROW, X) \
    TSR_BLOCK_TYPE_ROWS(TSR_PACKED_TYPE_ROW, X)

enum {
#define TSR_ENUMERATE(id, number, ...) TSR_TYPE_##id = number,
    TSR_TYPES(TSR_ENUMERATE) TSR_INTERLEAVED_TYPES(TSR_ENUMERATE) TSR_PACKED_TYPES(TSR_ENUMERATE)
#undef TSR_ENUMERATE
        TSR_TYPE_FIRST_PACKED = 20000,
    TSR_TYPE_FIRST_PRIVATE = 65536, /* numbers from here on are in no file */
    TSR_TYPE_NONE = 0x7FFFFFFF      /* an optional tensor that is not there */
};
