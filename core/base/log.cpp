#include "core/base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace tessera {

spdlog::logger& log() {
    // Not in spdlog's registry: an application that shuts spdlog down must not destroy the core's logger.
    // Never destroyed: threads that wait for a disk may outlive main, and log then.
    static const auto& logger = *new auto([] {
        auto made = std::make_shared<spdlog::logger>("tessera", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_level(spdlog::level::warn);
        made->set_pattern("%n: %l: %v");
        return made;
    }());
    return *logger;
}

}  // namespace tessera
