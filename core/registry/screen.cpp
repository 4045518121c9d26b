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

std::string screen_plugin(const PluginRecord& plugin, const Config& config) {
    return screen_of_process() ? screen_of_process()(plugin, config) : std::string();
}

}  // namespace tessera
