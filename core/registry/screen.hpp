// A trial of plugins before this process maps them, for tools that must survive a bad one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tessera {

// Asked for each library that nothing speaks against, just before it is mapped. A text is the reason why it is not.
using PluginScreen = std::function<std::string(const std::filesystem::path& manifest)>;

// For the registries that this process loads from now on. Not while one is being loaded.
void set_plugin_screen(PluginScreen screen);

// What the screen says; empty if there is none.
std::string screen_plugin(const std::filesystem::path& manifest);

}  // namespace tessera
