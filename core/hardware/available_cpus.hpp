// CPUs that threads of this process can use at once.
#pragma once

#include <cstdint>

namespace tessera {

// Counts the CPUs of the affinity mask, or fewer where control groups limit CPU time (a quota of 1.5 CPUs counts as 2).
// At least 1.
uint32_t available_cpus();

}  // namespace tessera
