// Messages of the core while it works. Results are never logged: they are returned to the caller.
#pragma once

#include <spdlog/spdlog.h>

namespace tessera {

// The logger "tessera", made on first use: standard error, level warn until an application sets another.
// Any thread may log; sinks are exchanged before other threads start.
spdlog::logger& log();

}  // namespace tessera
