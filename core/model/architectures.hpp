// Inside core/model: the architectures that the core knows.
#pragma once

#include "core/model/readers.hpp"
#include "core/model/unused.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace tessera {

// Defined by a file of core/model/architectures, as the variable architectures::STEM of the file STEM.cpp. The build
// makes the list of all.
struct Architecture {
    std::array<std::string_view, 4> names;  // general.architecture; "" past the last
    // Throws Error naming the key or tensor.
    ModelDescription (*describe)(ModelFile& model);
    KnownUnused unused;  // what of its files it knows and does without

    bool has_name(std::string_view name) const {
        return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
    }
};

std::span<const Architecture* const> own_architectures();

// For models that read_latent_model() reads: keys of an indexer, which is not computed.
inline constexpr KeyRule kIndexerKeys[] = {{"attention.indexer.*", "*", "the indexer is not computed", true}};

}  // namespace tessera
