// Architectures of plugins (tessera/extensions/architecture.h): the host's side. What they say is checked.
#pragma once

#include "core/model/model.hpp"
#include "core/model/model_file.hpp"
#include "core/registry/registry.hpp"

#include <tessera/extensions/architecture.h>

namespace tessera {

class PluginArchitecture {
  public:
    // `architecture` is of the registry, which outlives this.
    PluginArchitecture(const tsr_architecture& architecture, const Registry& registry);

    const char* plugin() const noexcept { return plugin_; }

    // Fills the numbers of `info`. Throws Error with the code and message of the plugin's status, TSR_INTERNAL for an
    // exception, TSR_CORRUPT_DATA for numbers that no file has.
    void measure(ModelFile& model, ModelInfo& info) const;
    // Throws the same, and what Weights throws; TSR_INTERNAL for a graph whose output is not the logits.
    Graph build(ModelFile& model, const ModelInfo& info, const OpSet& ops, const GraphLimits& limits) const;

  private:
    void check(const Graph& graph, Value tokens, Value logits, const ModelInfo& info, const GraphLimits& limits) const;
    PluginCall call(const char* function) const { return {plugin_, function, "architecture", table_.name}; }

    const tsr_architecture& table_;
    const char* plugin_;
    uint32_t abi_minor_;
};

}  // namespace tessera
