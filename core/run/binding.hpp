// Threads and the memory that they touch, bound to parts of the machine.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// Binds the calling thread, and no other, while this object lives.
class ThreadBinding {
  public:
    // The thread runs on `cpus`, and pages that it is the first to touch are taken from `memory_nodes` alternately;
    // afterwards it runs where threads ran before the process bound any, and memory is the system's choice again. An
    // empty list leaves that as it is. What the system does not allow is left as it is, too: see done().
    ThreadBinding(const std::vector<uint32_t>& cpus, const std::vector<uint32_t>& memory_nodes);
    ~ThreadBinding();
    ThreadBinding(const ThreadBinding&) = delete;
    ThreadBinding& operator=(const ThreadBinding&) = delete;

    bool done() const noexcept { return done_; }

    // A thread that a bound one starts is bound as that one is. This frees the calling thread of what it inherited; in
    // a process that has bound no thread it changes nothing.
    static void free_this_thread();

  private:
    bool cpus_bound_ = false;
    bool memory_bound_ = false;
    bool done_ = true;
};

}  // namespace tessera
