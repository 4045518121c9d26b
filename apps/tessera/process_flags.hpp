// Flags that concern the process as a whole, in all commands.
#pragma once

#include "apps/tessera/arguments.hpp"

namespace tessera::app {

// Sets messages (-v, -lv, --log-file, --log-disable), the CPUs that threads may run on (-C, -Cr) and the priority
// (--prio). Before other threads start. Throws UsageError, and Error for what the system refuses.
void apply_process_flags(Arguments& arguments);

}  // namespace tessera::app
