// The ops that a graph may use: the core's own and those that plugins bring.
#pragma once

#include <tessera/graph.h>

#include <span>
#include <string_view>
#include <vector>

namespace tessera {

// Ops and lowerings of the core (ops.h). Fused ops have a lowering "parts"; "cached_attention" has "flash" and "tiles".
std::span<const tsr_operator* const> builtin_operators();

class OpSet {
  public:
    OpSet() : operators_(builtin_operators().begin(), builtin_operators().end()) {}

    // Throws Error(TSR_INVALID_ARGUMENT) if an op of that name is there already. `op` outlives the set.
    void add(const tsr_operator* op);

    // nullptr if there is none.
    const tsr_operator* find(std::string_view name) const noexcept;

  private:
    std::vector<const tsr_operator*> operators_;
};

}  // namespace tessera
