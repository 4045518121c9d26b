// Inside core/graph: what the core's own ops are made of.
#pragma once

#include <tessera/graph.h>

#include <span>
#include <string_view>

namespace tessera {

// Of the op of that name: "parts" of fused ops, the two variants of cached attention; none of others. Live as long as
// the program.
std::span<const tsr_lowering* const> builtin_lowerings(std::string_view op);

}  // namespace tessera
