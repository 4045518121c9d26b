// Inside core/model: the architectures.
#pragma once

#include "core/model/blocks.hpp"

namespace tessera {

// Each fills in what differs from the common parameters and builds its graph.
void describe_deepseek2(const gguf::GgufFile& file, ModelInfo& info);
Graph build_deepseek2(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits);
Graph build_qwen3moe(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits);
Graph build_llama(const gguf::GgufFile& file, const OpSet& ops, const GraphLimits& limits);

}  // namespace tessera
