// Extensions of plugins (tsr_plugin.get_extension).
#pragma once

#include "core/base/plugin_call.hpp"

#include <tessera/cpp/abi.hpp>
#include <tessera/plugin.h>

namespace tessera {

// nullptr if the plugin has none of that tag. What it points to is the plugin's, and not checked yet. Throws Error for
// an exception of the plugin.
inline const void* find_extension(const tsr_plugin& table, const char* tag) {
    const auto get = sdk::field_or_zero(table, &tsr_plugin::get_extension);
    if (!get) return nullptr;
    return call_plugin({table.name, "get_extension"}, [&] { return get(&table, tag); });
}

}  // namespace tessera
