// What descriptions can say and graphs cannot compute yet.
#pragma once

#include "core/model/description.hpp"
#include "core/model/model_file.hpp"

#include <string>
#include <vector>

namespace tessera {

// A line for each such thing, naming the first layer that asks for it; empty if all can be computed.
std::vector<std::string> not_computed(const ModelDescription& description);

// Throws Error(TSR_UNSUPPORTED) naming them.
void check_computed(const ModelDescription& description, const ModelFile& model);

}  // namespace tessera
