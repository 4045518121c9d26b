#include "core/registry/screen.hpp"

#include <utility>

namespace tessera {
namespace {

PluginScreen& screen_of_process() {
    static PluginScreen screen;
    return screen;
}

}  // namespace

void set_plugin_screen(PluginScreen screen) {
    screen_of_process() = std::move(screen);
}

std::string screen_plugin(const std::filesystem::path& manifest) {
    return screen_of_process() ? screen_of_process()(manifest) : std::string();
}

}  // namespace tessera
