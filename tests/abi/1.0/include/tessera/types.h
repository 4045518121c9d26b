/* Element types. The numbers are those of the GGUF format, so that a file's types need no translation; they are format
 * constants and never change. Sources: the public GGUF specification; numbers from 133 on are those that ik_llama.cpp
 * writes into its files. */
#pragma once

#include <stdint.h>

typedef uint32_t tsr_type;

/* All types that tensors can have, by number: X(ID, number, name, elements of a block, bytes of a block, bytes of a row
 * before its first block). A row is its prefix, then whole blocks. */
#define TSR_TYPES(X)                                                              \
    X(F32, 0, "f32", 1, 4, 0)                                                     \
    X(F16, 1, "f16", 1, 2, 0)                                                     \
    X(Q4_0, 2, "q4_0", 32, 18, 0)                                                 \
    X(Q4_1, 3, "q4_1", 32, 20, 0)                                                 \
    X(Q5_0, 6, "q5_0", 32, 22, 0)                                                 \
    X(Q5_1, 7, "q5_1", 32, 24, 0)                                                 \
    X(Q8_0, 8, "q8_0", 32, 34, 0)                                                 \
    X(Q2_K, 10, "q2_K", 256, 84, 0)                                               \
    X(Q3_K, 11, "q3_K", 256, 110, 0)                                              \
    X(Q4_K, 12, "q4_K", 256, 144, 0)                                              \
    X(Q5_K, 13, "q5_K", 256, 176, 0)                                              \
    X(Q6_K, 14, "q6_K", 256, 210, 0)                                              \
    X(IQ2_XXS, 16, "iq2_xxs", 256, 66, 0)                                         \
    X(IQ2_XS, 17, "iq2_xs", 256, 74, 0)                                           \
    X(IQ3_XXS, 18, "iq3_xxs", 256, 98, 0)                                         \
    X(IQ1_S, 19, "iq1_s", 256, 50, 0)                                             \
    X(IQ4_NL, 20, "iq4_nl", 32, 18, 0)                                            \
    X(IQ3_S, 21, "iq3_s", 256, 110, 0)                                            \
    X(IQ2_S, 22, "iq2_s", 256, 82, 0)                                             \
    X(IQ4_XS, 23, "iq4_xs", 256, 136, 0)                                          \
    X(I8, 24, "i8", 1, 1, 0)                                                      \
    X(I16, 25, "i16", 1, 2, 0)                                                    \
    X(I32, 26, "i32", 1, 4, 0)                                                    \
    X(I64, 27, "i64", 1, 8, 0)                                                    \
    X(F64, 28, "f64", 1, 8, 0)                                                    \
    X(IQ1_M, 29, "iq1_m", 256, 56, 0)                                             \
    X(BF16, 30, "bf16", 1, 2, 0)                                                  \
    X(MXFP4, 39, "mxfp4", 32, 17, 0)                                              \
    X(Q6_0, 133, "q6_0", 32, 26, 0)                                               \
    X(IQ2_K, 137, "iq2_k", 256, 76, 0)                                            \
    X(IQ3_K, 138, "iq3_k", 256, 110, 0)                                           \
    X(IQ4_K, 139, "iq4_k", 256, 144, 0)                                           \
    X(IQ5_K, 140, "iq5_k", 256, 176, 0)                                           \
    X(IQ6_K, 141, "iq6_k", 256, 212, 0)                                           \
    X(IQ4_KS, 144, "iq4_ks", 256, 136, 4)                                         \
    X(IQ2_KS, 145, "iq2_ks", 256, 70, 2)                                          \
    X(IQ5_KS, 152, "iq5_ks", 256, 168, 4)                                         \
    X(IQ3_KS, 156, "iq3_ks", 256, 102, 2)                                         \
    /* Rows of the interleaved kinds that exist in no other way: not in files. */ \
    X(IQ1_S_ROW, 65536, "iq1_s_row", 32, 6, 2)                                    \
    X(IQ1_M_ROW, 65537, "iq1_m_row", 32, 7, 2)                                    \
    X(Q8_K_F16, 65538, "q8_K_f16", 256, 258, 0)                                   \
    X(Q8_ROW, 65539, "q8_row", 32, 32, 4)

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

/* Types of tensors in files that `tessera repack` writes: rows packed in groups as the kernels of the x86 plugins read
 * them (tessera/cpu/matmul/packed.hpp), so that they are used where they lie in the mapped file. As above; the numbers
 * are this project's own. */
#define TSR_PACKED_TYPES(X)                              \
    X(F32_X8, 20000, "f32_x8", F32, 8)                   \
    X(F16_X8, 20001, "f16_x8", F16, 8)                   \
    X(Q4_0_X8, 20002, "q4_0_x8", Q4_0, 8)                \
    X(Q4_1_X8, 20003, "q4_1_x8", Q4_1, 8)                \
    X(Q5_0_X8, 20006, "q5_0_x8", Q5_0, 8)                \
    X(Q5_1_X8, 20007, "q5_1_x8", Q5_1, 8)                \
    X(Q8_0_X8, 20008, "q8_0_x8", Q8_0, 8)                \
    X(Q2_K_X8, 20010, "q2_K_x8", Q2_K, 8)                \
    X(Q3_K_X8, 20011, "q3_K_x8", Q3_K, 8)                \
    X(Q4_K_X8, 20012, "q4_K_x8", Q4_K, 8)                \
    X(Q5_K_X8, 20013, "q5_K_x8", Q5_K, 8)                \
    X(Q6_K_X8, 20014, "q6_K_x8", Q6_K, 8)                \
    X(IQ2_XXS_X8, 20016, "iq2_xxs_x8", IQ2_XXS, 8)       \
    X(IQ2_XS_X8, 20017, "iq2_xs_x8", IQ2_XS, 8)          \
    X(IQ3_XXS_X8, 20018, "iq3_xxs_x8", IQ3_XXS, 8)       \
    X(IQ1_S_X8, 20019, "iq1_s_x8", IQ1_S, 8)             \
    X(IQ4_NL_X8, 20020, "iq4_nl_x8", IQ4_NL, 8)          \
    X(IQ3_S_X8, 20021, "iq3_s_x8", IQ3_S, 8)             \
    X(IQ2_S_X8, 20022, "iq2_s_x8", IQ2_S, 8)             \
    X(IQ4_XS_X8, 20023, "iq4_xs_x8", IQ4_XS, 8)          \
    X(IQ1_M_X8, 20029, "iq1_m_x8", IQ1_M, 8)             \
    X(BF16_X8, 20030, "bf16_x8", BF16, 8)                \
    X(MXFP4_X8, 20039, "mxfp4_x8", MXFP4, 8)             \
    X(Q6_0_X8, 20133, "q6_0_x8", Q6_0, 8)                \
    X(IQ2_K_X8, 20137, "iq2_k_x8", IQ2_K, 8)             \
    X(IQ3_K_X8, 20138, "iq3_k_x8", IQ3_K, 8)             \
    X(IQ4_K_X8, 20139, "iq4_k_x8", IQ4_K, 8)             \
    X(IQ5_K_X8, 20140, "iq5_k_x8", IQ5_K, 8)             \
    X(IQ6_K_X8, 20141, "iq6_k_x8", IQ6_K, 8)             \
    X(IQ4_KS_X8, 20144, "iq4_ks_x8", IQ4_KS, 8)          \
    X(IQ2_KS_X8, 20145, "iq2_ks_x8", IQ2_KS, 8)          \
    X(IQ5_KS_X8, 20152, "iq5_ks_x8", IQ5_KS, 8)          \
    X(IQ3_KS_X8, 20156, "iq3_ks_x8", IQ3_KS, 8)          \
    X(IQ1_S_ROW_X8, 21000, "iq1_s_row_x8", IQ1_S_ROW, 8) \
    X(IQ1_M_ROW_X8, 21001, "iq1_m_row_x8", IQ1_M_ROW, 8) \
    X(Q8_K_F16_X8, 21002, "q8_K_f16_x8", Q8_K_F16, 8)    \
    X(Q8_ROW_X8, 21003, "q8_row_x8", Q8_ROW, 8)

enum {
#define TSR_ENUMERATE(id, number, ...) TSR_TYPE_##id = number,
    TSR_TYPES(TSR_ENUMERATE) TSR_INTERLEAVED_TYPES(TSR_ENUMERATE) TSR_PACKED_TYPES(TSR_ENUMERATE)
#undef TSR_ENUMERATE
        TSR_TYPE_FIRST_PACKED = 20000,
    TSR_TYPE_FIRST_PRIVATE = 65536, /* numbers from here on are in no file */
    TSR_TYPE_NONE = 0x7FFFFFFF      /* an optional tensor that is not there */
};
