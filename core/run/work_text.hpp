// What devices are given to do, in words: for errors, which often come up later than the work that caused them.
#pragma once

#include "core/plan/plan.hpp"

#include <cstdint>
#include <string>

namespace tessera {

// "blk.3.attn_norm (rms_norm, layer 3)"
std::string node_text(const Node& node);
// Nodes [first, first + count) of the plan: "blk.3.attn_norm (rms_norm, layer 3) to blk.17.ffn_out (matmul, layer 17)".
std::string nodes_text(const Plan& plan, uint32_t first, uint32_t count);
// "copy of the result of blk.3.ffn_norm (rms_norm, layer 3) from CUDA0 to CPU, 512 bytes". `bytes` as in "512 bytes".
std::string copy_text(const Plan& plan, const Action& action, const std::string& bytes);

}  // namespace tessera
