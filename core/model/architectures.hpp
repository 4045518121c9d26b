// Inside core/model: the architectures.
#pragma once

#include "core/model/blocks.hpp"
#include "core/model/unused.hpp"

#include <span>
#include <string_view>

namespace tessera {

struct Architecture {
    std::string_view name;
    void (*describe)(ModelFile& model, ModelInfo& info);  // what differs from the common parameters; may be null
    Graph (*build)(ModelFile& model, const OpSet& ops, const GraphLimits& limits);
    KnownUnused unused;  // what of its files it knows and does without
};

extern const Architecture kDeepseek2, kQwen3moe, kLlama;

}  // namespace tessera
