// The thread of a device that decides which of its queues proceeds next. Only one does at a time.
#pragma once

#include "options.hpp"
#include "queue.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::simulated {

class Scheduler {
  public:
    Scheduler(tsr_simulated_policy policy, uint64_t seed);
    // Of a device without queues.
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // The scheduler knows the queue until remove() has returned. The host.
    void add(Queue& queue);
    void remove(const Queue& queue);

  private:
    struct Chosen {
        Queue* queue = nullptr;
        uint32_t commands = 0;
    };

    void run() noexcept;
    Chosen choose() noexcept;
    uint32_t allowed(const Queue& queue) noexcept;
    uint64_t random() noexcept;

    tsr_simulated_policy policy_;
    uint64_t state_;              // of the random numbers
    std::mutex mutex_;            // the queue that proceeds is in the list
    std::vector<Queue*> queues_;  // by number
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

}  // namespace tessera::simulated
