// Tells systemd, where it has started the process, how it is doing (sd_notify(3)).
#pragma once

#include <string_view>

namespace tessera::server {

// "READY=1", "STOPPING=1". Does nothing where no service manager listens.
void notify_service_manager(std::string_view state) noexcept;

}  // namespace tessera::server
