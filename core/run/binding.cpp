#include "core/run/binding.hpp"

#include "core/hardware/numa.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>

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

void take_any_memory() {
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
}

// Where threads run that are not bound.
class FreeThreads {
  public:
    // Before a thread is bound to CPUs. Where none is, the calling one tells; where some are, it may be one of them.
    void bind_one() {
        const std::lock_guard lock(mutex_);
        if (bound_ == 0) cpus_ = allowed_cpus();
        ++bound_;
    }
    // The calling thread, which was bound.
    void unbind_one() {
        const std::lock_guard lock(mutex_);
        run_on(cpus_);
        --bound_;
    }
    // The calling thread, which may have inherited what a bound one has; false if none has ever been bound.
    bool free_one() {
        const std::lock_guard lock(mutex_);
        if (cpus_.empty()) return false;
        run_on(cpus_);
        return true;
    }

  private:
    std::mutex mutex_;
    std::vector<uint32_t> cpus_;  // empty until a thread is bound
    uint32_t bound_ = 0;
};

// Never destroyed: threads of oneTBB end after static objects.
FreeThreads& free_threads() {
    static auto& threads = *new FreeThreads;
    return threads;
}

}  // namespace

ThreadBinding::ThreadBinding(const std::vector<uint32_t>& cpus, const std::vector<uint32_t>& memory_nodes) {
    if (!cpus.empty()) {
        free_threads().bind_one();
        cpus_bound_ = true;
        done_ = run_on(cpus);
    }
    if (!memory_nodes.empty()) {
        memory_bound_ = take_memory_of(memory_nodes);
        done_ = done_ && memory_bound_;
    }
}

ThreadBinding::~ThreadBinding() {
    if (cpus_bound_) free_threads().unbind_one();
    if (memory_bound_) take_any_memory();
}

void ThreadBinding::free_this_thread() {
    if (free_threads().free_one()) take_any_memory();
}

}  // namespace tessera
