// Events and their records. Recording an event binds it to a new record; who waits is bound to the record of that time.
#pragma once

#include "hidden.hpp"

#include <tessera/status.h>

#include <cstdint>
#include <string>

namespace tessera::simulated {

class Queue;

// Why queued work failed. Made by a queue's thread and kept until the process ends, since records and queues of any
// device may point to it: there are as many as there were failures.
struct Fault {
    tsr_code code;
    std::string message;
    const Fault* next;                          // all of them
    mutable std::atomic<bool> returned{false};  // by the wait for its queue: events tell of it no longer

    // Never throws; without memory for the message there is none.
    static const Fault& make(tsr_code code, const char* message) noexcept;
};

// One recording of an event on a queue. All fields are atomic, because records are used again without any ordering
// between the threads that knew them before.
struct Record {
    std::atomic<uint32_t> done{0};             // release by the queue's thread, acquire by who waits
    std::atomic<uint32_t> uses{0};             // events, commands and host threads that refer to it
    std::atomic<Queue*> queue{nullptr};        // where it was put
    std::atomic<uint32_t> index{0};            // number of the command there
    std::atomic<int64_t> nanoseconds{0};       // when it completed
    std::atomic<const Fault*> fault{nullptr};  // of the work before it

    bool seems_done() const noexcept { return done.load(kHidden) != 0; }
    void hold() noexcept { uses.fetch_add(1, kHidden); }
    void drop() noexcept { uses.fetch_sub(1, kHidden); }
    // By the queue's thread.
    void complete(const Fault* failure) noexcept;
    // Of a record that is done; nullptr: none, or one that has been returned.
    const Fault* open_fault() const noexcept {
        const Fault* known = fault.load(std::memory_order_relaxed);
        return known && !known->returned.load(std::memory_order_relaxed) ? known : nullptr;
    }
};

// A record that nobody uses: not done, with one use. Records live until the process ends. Host only.
Record& take_record();

struct Event {
    bool timed = false;
    Record* current = nullptr;  // nullptr: never recorded, which counts as complete
};

}  // namespace tessera::simulated
