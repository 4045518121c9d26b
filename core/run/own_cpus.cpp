#include "core/run/own_cpus.hpp"

#include "core/hardware/numa.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace tessera {

OwnCpus::OwnCpus() : region_of_(static_cast<size_t>(std::clamp<long>(sysconf(_SC_NPROCESSORS_CONF), 1, CPU_SETSIZE))) {}

void OwnCpus::begin() noexcept {
    if (++region_ == 0) region_ = 1;
    take(current_cpu());
}

void OwnCpus::join() noexcept {
    if (take(current_cpu())) return;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;  // more CPUs than the set has room for
    cpu_set_t others = allowed;
    for (size_t cpu = 0; cpu < region_of_.size(); ++cpu) {
        if (region_of_[cpu].load(std::memory_order_relaxed) == region_) CPU_CLR(cpu, &others);
    }
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
    take(current_cpu());
    sched_setaffinity(0, sizeof allowed, &allowed);
}

// False if a thread of the region has it.
bool OwnCpus::take(uint32_t cpu) noexcept {
    if (cpu >= region_of_.size()) return true;
    return region_of_[cpu].exchange(region_, std::memory_order_relaxed) != region_;
}

}  // namespace tessera
