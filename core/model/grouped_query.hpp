// Attention with grouped queries, as llama and qwen3 have it.
#pragma once

#include "core/model/blocks.hpp"

namespace tessera {

struct GroupedQueryParameters {
    int64_t head_dim = 0;
    RopeParameters rope;
    bool normalize_heads = false;  // RMS norm of each head of q and k before rope
    double scale = 0;              // of attention scores
};

// Reads the head's length and rope; `mode` is how the architecture pairs elements for the rotary embedding.
GroupedQueryParameters read_grouped_query(ModelFile& model, const CommonParameters& common, const char* mode);

// x [embedding, R] -> heads [head_dim * heads, R].
Value grouped_query_attention(ModelBuilder& builder, const GroupedQueryParameters& parameters, int64_t layer, Value x);

}  // namespace tessera
