// Plugins that are not used for a fault of their files, for messages about what they would have provided.
#pragma once

#include "core/registry/registry.hpp"

#include <string>

namespace tessera {

// Whether the record is rejected for something that the user can repair (owner, mode, hash, a manifest or library that
// cannot be read or mapped), not because this machine or the configuration has no use for it.
bool is_refused(const PluginRecord& record, const Registry& registry, const Config& config, const Hardware& hardware);

// Such plugins with the reasons, "NAME: REASON; NAME: REASON", of many the first three; empty if there are none.
std::string refused_plugins(const Registry& registry, const Config& config, const Hardware& hardware);

}  // namespace tessera
