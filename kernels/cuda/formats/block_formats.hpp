// What the host and kernels know alike of the block formats. Freestanding.
#pragma once

#include <tessera/formats/block_list.hpp>
#include <tessera/types.h>

namespace tessera::cuda_kernels {

// Whether elements are scale * code + offset rather than scale * code (sub_block.hpp).
constexpr bool has_offsets(tsr_type type) {
    bool has = false;
    formats::visit_block_format(type, [&]<class Block>() { has = Block::kOffsets; });
    return has;
}

// Elements of a block; 1 of other types.
constexpr int block_elements(tsr_type type) {
    int elements = 1;
    formats::visit_block_format(type, [&]<class Block>() { elements = Block::kElements; });
    return elements;
}

// Whether a scale serves 16 elements rather than 32 or more.
constexpr bool scales_by_sixteen(tsr_type type) {
    bool by_sixteen = false;
    formats::visit_block_format(type, [&]<class Block>() { by_sixteen = Block::kScaleElements == 16; });
    return by_sixteen;
}

// Whether products of many rows by tensor cores multiply with it what they decode, so that blocks alone have a scale.
constexpr bool multiplies_with_scales(tsr_type type) {
    return type == TSR_TYPE_Q2_K || type == TSR_TYPE_Q3_K || type == TSR_TYPE_IQ1_M;
}

// Formats whose products of many rows by tensor cores differ on cards other than GeForce cards; X(name, id). They
// multiply with codes times integer scales as two int8 (split_shared.hpp), and take eight blocks of 32 elements for one
// of 256 (tiles_staged.hpp).
#define TESSERA_SPLIT_FORMATS(X) \
    X(q6_K, Q6_K)                \
    X(iq2_xs, IQ2_XS)            \
    X(iq2_s, IQ2_S)              \
    X(iq2_k, IQ2_K)              \
    X(iq3_k, IQ3_K)              \
    X(iq4_k, IQ4_K)              \
    X(iq5_k, IQ5_K)              \
    X(iq6_k, IQ6_K)
#define TESSERA_JOINED_FORMATS(X) \
    X(q4_0, Q4_0)                 \
    X(q4_1, Q4_1)                 \
    X(q5_0, Q5_0)                 \
    X(q5_1, Q5_1)                 \
    X(q6_0, Q6_0)                 \
    X(q8_0, Q8_0)                 \
    X(iq4_nl, IQ4_NL)             \
    X(mxfp4, MXFP4)               \
    X(q8_row, Q8_ROW)             \
    X(iq1_s_row, IQ1_S_ROW)       \
    X(iq1_m_row, IQ1_M_ROW)

#define TESSERA_CASE(name, id) case TSR_TYPE_##id:
constexpr bool has_split_products(tsr_type type) {
    switch (type) {
        TESSERA_SPLIT_FORMATS(TESSERA_CASE)
        return true;
        default:
            return false;
    }
}
constexpr bool has_joined_products(tsr_type type) {
    switch (type) {
        TESSERA_JOINED_FORMATS(TESSERA_CASE)
        return true;
        default:
            return false;
    }
}
#undef TESSERA_CASE
// Whether there are kernels that take blocks through shared memory (tiles_staged.hpp).
constexpr bool has_staged_products(tsr_type type) {
    return block_elements(type) == 256 || has_joined_products(type);
}

// Whether products of few rows read activations as e0 e16 e1 e17 .. within 32 elements, as nibbles lie in a weight
// (where codes are int8; see NibbleLevels).
constexpr bool reads_interleaved(tsr_type type) {
    return type == TSR_TYPE_IQ4_NL || type == TSR_TYPE_IQ4_XS || type == TSR_TYPE_IQ4_KS || type == TSR_TYPE_MXFP4;
}

// Whether products of few rows read sums of activations.
constexpr bool reads_sums(tsr_type type) {
    return has_offsets(type) || type == TSR_TYPE_Q4_0 || type == TSR_TYPE_Q6_K;
}

}  // namespace tessera::cuda_kernels
