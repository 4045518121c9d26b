/* Element types. The numbers are those of the GGUF format, so that a file's types need no translation;
 * they are format constants and never change. Sources: the public GGUF specification; ids from 133 on are
 * those that ik_llama.cpp writes into its files. */
#pragma once

#include <stdint.h>

typedef uint32_t tsr_type;

enum {
    TSR_TYPE_F32 = 0,
    TSR_TYPE_F16 = 1,
    TSR_TYPE_Q4_0 = 2,
    TSR_TYPE_Q4_1 = 3,
    TSR_TYPE_Q5_0 = 6,
    TSR_TYPE_Q5_1 = 7,
    TSR_TYPE_Q8_0 = 8,
    TSR_TYPE_Q2_K = 10,
    TSR_TYPE_Q3_K = 11,
    TSR_TYPE_Q4_K = 12,
    TSR_TYPE_Q5_K = 13,
    TSR_TYPE_Q6_K = 14,
    TSR_TYPE_IQ2_XXS = 16,
    TSR_TYPE_IQ2_XS = 17,
    TSR_TYPE_IQ3_XXS = 18,
    TSR_TYPE_IQ1_S = 19,
    TSR_TYPE_IQ4_NL = 20,
    TSR_TYPE_IQ3_S = 21,
    TSR_TYPE_IQ2_S = 22,
    TSR_TYPE_IQ4_XS = 23,
    TSR_TYPE_I8 = 24,
    TSR_TYPE_I16 = 25,
    TSR_TYPE_I32 = 26,
    TSR_TYPE_I64 = 27,
    TSR_TYPE_F64 = 28,
    TSR_TYPE_IQ1_M = 29,
    TSR_TYPE_BF16 = 30,
    TSR_TYPE_MXFP4 = 39,
    TSR_TYPE_NONE = 0x7FFFFFFF /* an optional tensor that is not there */
};
