// Lines of a plan for people.
#pragma once

#include "core/plan/plan.hpp"

#include <string>
#include <vector>

namespace tessera {

// A fused op that a kernel computes, or that the core splits into its parts: there is no choice of lowerings.
bool is_without_choice(const LoweringChoice& choice);

// Element types that the caches have: "q8_0", "q8_0 and f16".
std::string cache_types(const Plan& plan);
// Why the cache holds more than the context that was asked for; empty where it does not.
std::string further_pages(const Plan& plan);
// "mla_attention: variant 3 of mla, layers 0-26, CPU", ..., one line each.
std::vector<std::string> lowering_lines(const Plan& plan);
// What each group of caches keeps, of which layers, and what it takes on each device; none where all keep all tokens.
std::vector<std::string> cache_group_lines(const Plan& plan);
// Which experts of the CPU are computed on which device in steps of many rows.
std::vector<std::string> streaming_lines(const Plan& plan);

}  // namespace tessera
