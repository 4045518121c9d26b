#include "core/hardware/available_cpus.hpp"

#include "core/hardware/numa.hpp"
#include "core/hardware/probe.hpp"

#include <algorithm>

namespace tessera {

uint32_t available_cpus() {
    const auto allowed = static_cast<uint32_t>(allowed_cpus().size());
    return std::max(1u, std::min(allowed, probe_cpu_quota().value_or(UINT32_MAX)));
}

}  // namespace tessera
