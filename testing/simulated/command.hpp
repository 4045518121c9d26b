// What is put on a queue.
#pragma once

#include "address_space.hpp"
#include "event.hpp"
#include "simulated_failures.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::simulated {

struct Recording;

// A kernel with all addresses resolved. Run by the queue's thread, any number of times.
class Work {
  public:
    virtual ~Work() = default;
    // Throws sdk::Failure.
    virtual void run() const = 0;
    virtual const char* op() const noexcept = 0;
    virtual const char* node() const noexcept = 0;
};

struct Copy {
    tsr_simulated_operation operation = TSR_SIMULATED_COPY;
    Place to, from;
    uint64_t bytes = 0;
    std::unique_ptr<char[]> staged;  // what `from` held when it was put, where the host's memory is not page-locked

    // The host memory that it reads or writes; nullptr for copies between devices.
    char* host() const noexcept;
};

struct Command {
    enum class Kind { kCopy, kWork, kRecord, kWait, kReplay };
    Kind kind = Kind::kCopy;
    Copy copy;
    std::unique_ptr<Work> work;
    Record* record = nullptr;        // of kRecord and kWait: used once
    Recording* recording = nullptr;  // of kReplay
    std::vector<Held*> held;         // all that it refers to
    std::atomic<Command*> next{nullptr};
};

// Work that was captured. Its memory stays where it was; its addresses are those of the time of recording.
struct Recording {
    std::vector<std::unique_ptr<Command>> commands;  // kCopy and kWork
    std::vector<Held*> held;                         // by any of them, each once
    std::atomic<uint32_t> replays{0};                // under way
};

}  // namespace tessera::simulated
