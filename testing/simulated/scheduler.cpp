#include "scheduler.hpp"

#include <algorithm>
#include <chrono>

namespace tessera::simulated {
namespace {

constexpr uint32_t kMany = 64;

}  // namespace

Scheduler::Scheduler(tsr_simulated_policy policy, uint64_t seed) : policy_(policy), state_(seed) {
    thread_ = std::thread([this] { run(); });
}

Scheduler::~Scheduler() {
    stops_.store(true, kHidden);
    Bell::ring();
    thread_.join();
}

void Scheduler::add(Queue& queue) {
    const std::lock_guard lock(mutex_);
    queues_.push_back(&queue);
}

void Scheduler::remove(const Queue& queue) {
    const std::lock_guard lock(mutex_);
    std::erase(queues_, &queue);
}

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
uint64_t Scheduler::random() noexcept {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

void Scheduler::run() noexcept {
    while (!stops_.load(kHidden)) {
        const uint32_t bell = Bell::read();
        bool proceeded = false;
        {
            const std::lock_guard lock(mutex_);
            if (const Chosen chosen = choose(); chosen.queue) {
                chosen.queue->proceed(chosen.commands);
                proceeded = true;
            }
        }
        if (!proceeded) {
            Bell::wait(bell);
        } else if (policy_ == TSR_SIMULATED_RANDOM && random() % 16 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        }
    }
}

// How many commands the queue may do now.
uint32_t Scheduler::allowed(const Queue& queue) noexcept {
    switch (policy_) {
        case TSR_SIMULATED_AT_ONCE:
            return kMany;
        case TSR_SIMULATED_ON_WAIT:
            return queue.demanded();
        case TSR_SIMULATED_OLDEST_LAST:
            return &queue == queues_.front() ? queue.demanded() : kMany;
        case TSR_SIMULATED_NEWEST_LAST:
            return &queue == queues_.back() ? queue.demanded() : kMany;
        default:
            return 1 + static_cast<uint32_t>(random() % 4);
    }
}

Scheduler::Chosen Scheduler::choose() noexcept {
    // Who waits for a queue waits for what that queue waits for.
    for (const Queue* queue : queues_) {
        if (queue->demanded() > 0) queue->demand_blocking();
    }
    Chosen chosen;
    uint64_t ready = 0;
    for (Queue* queue : queues_) {
        if (!queue->ready()) continue;
        const uint32_t commands = allowed(*queue);
        // Each of them equally likely.
        if (commands > 0 && random() % ++ready == 0) chosen = {queue, commands};
    }
    // A queue that is alone is seldom interrupted: handing over takes time.
    if (ready == 1 && policy_ == TSR_SIMULATED_RANDOM && random() % 4 != 0) chosen.commands = kMany;
    return chosen;
}

}  // namespace tessera::simulated
