// The ops that a graph may use: the core's own and those of plugins.
#pragma once

#include "core/base/plugin_call.hpp"

#include <tessera/graph.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Ops and lowerings of the core (ops.h). Fused ops have a lowering "parts"; "cached_attention" has "flash" and "tiles".
std::span<const tsr_operator* const> builtin_operators();

class OpSet {
  public:
    OpSet() : operators_(builtin_operators().begin(), builtin_operators().end()) {}

    // Throws Error(TSR_INVALID_ARGUMENT) if an op of that name exists. `op` outlives the set.
    // `plugin`: its name, which lives as long.
    void add(const tsr_operator* op, const char* plugin = nullptr);

    // nullptr if there is none.
    const tsr_operator* find(std::string_view name) const noexcept;

    // Whether it is one of the core's own ops.
    bool is_own(std::string_view op) const noexcept { return !plugins_.contains(op); }

    // Calls of the functions of an op, for call_plugin. Of the core's own ops the plugin is "(core)".
    PluginCall call(const tsr_operator& op, const char* function, const char* node) const;

  private:
    const char* plugin_of(std::string_view op) const noexcept;

    std::vector<const tsr_operator*> operators_;
    std::map<std::string, const char*, std::less<>> plugins_;  // by op
};

}  // namespace tessera
