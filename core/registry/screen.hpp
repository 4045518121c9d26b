// A trial of plugins before this process maps them, for tools that must survive a bad one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tessera {

// Called for each library that passed all other checks, just before it is mapped. Returns why it must not be mapped;
// empty: it may.
using PluginScreen = std::function<std::string(const std::filesystem::path& manifest)>;

// For the registries that this process loads from now on. Not while one is being loaded.
void set_plugin_screen(PluginScreen screen);

// The answer of the screen; empty if there is none.
std::string screen_plugin(const std::filesystem::path& manifest);

}  // namespace tessera
