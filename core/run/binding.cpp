#include "core/run/binding.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace tessera {
namespace {

bool run_on(const std::vector<uint32_t>& cpus) {
    const uint32_t count = *std::ranges::max_element(cpus) + 1;
    cpu_set_t* set = CPU_ALLOC(count);
    if (!set) return false;
    const size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, set);
    for (const uint32_t cpu : cpus) CPU_SET_S(cpu, bytes, set);
    const bool done = sched_setaffinity(0, bytes, set) == 0;
    CPU_FREE(set);
    return done;
}

bool take_memory_of(const std::vector<uint32_t>& nodes) {
    constexpr size_t kBits = sizeof(unsigned long) * CHAR_BIT;
    std::vector<unsigned long> mask(*std::ranges::max_element(nodes) / kBits + 1, 0);
    for (const uint32_t node : nodes) mask[node / kBits] |= 1ul << node % kBits;
    // The system uses one bit less than the number it is given.
    return syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, mask.data(), mask.size() * kBits + 1) == 0;
}

}  // namespace

ThreadBinding::ThreadBinding(const std::vector<uint32_t>& cpus, const std::vector<uint32_t>& memory_nodes,
                             std::vector<uint32_t> cpus_after)
    : cpus_after_(std::move(cpus_after)) {
    if (!cpus.empty()) done_ = run_on(cpus);
    if (!memory_nodes.empty()) {
        memory_bound_ = take_memory_of(memory_nodes);
        done_ = done_ && memory_bound_;
    }
}

ThreadBinding::~ThreadBinding() {
    if (!cpus_after_.empty()) run_on(cpus_after_);
    if (memory_bound_) syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
}

}  // namespace tessera
