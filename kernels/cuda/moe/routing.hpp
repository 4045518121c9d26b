// Arguments of moe_route; see arguments.hpp.
#pragma once

#include "../arguments.hpp"

namespace tessera::cuda_kernels {

// The experts of each row and their weights, as ops.h defines moe_route.
struct Route {
    const void *logits, *bias;  // bias: of each expert, or nullptr
    void *ids, *weights;
    Rows rows;
    int64_t logits_row, ids_slot, ids_row, weights_row;  // strides
    int32_t experts, groups, groups_used, used, keep_at_least;
    int32_t sigmoid, normalize;
    float scale, keep_ratio;
};

inline constexpr int kMaximumExperts = 1024;
inline constexpr int kMaximumGroups = 64;
inline constexpr int kMaximumUsed = 64;

}  // namespace tessera::cuda_kernels
