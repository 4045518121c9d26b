// A trial of plugins before this process maps them, for tools that must survive a bad one.
#pragma once

#include "core/registry/registry.hpp"

#include <functional>
#include <string>

namespace tessera {

// Called for each plugin that passed all other checks, just before its library is mapped. Returns why it must not be
// mapped; empty: it may.
using PluginScreen = std::function<std::string(const PluginRecord& plugin, const Config& config)>;

// For the registries that this process loads from now on. Not while one is being loaded.
void set_plugin_screen(PluginScreen screen);

// The answer of the screen; empty if there is none.
std::string screen_plugin(const PluginRecord& plugin, const Config& config);

}  // namespace tessera
