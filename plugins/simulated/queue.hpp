// A queue of a simulated device. As on a GPU, what is put on it happens later: when the queue is waited for (or full).
// So a host that reads a download too early, or lets go of memory too early, is found out.
#pragma once

#include "address_space.hpp"
#include "failures.hpp"
#include "plugins/reference/oracle/oracle.hpp"

#include <tessera/kernel.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace tessera::simulated {

class Device;

// A kernel with all addresses resolved.
struct Launch {
    const oracle::Op* op;
    const tsr_node* node;
    std::array<void*, TSR_MAX_OPERANDS> data;
    const tsr_range* ranges;
    void* workspace;
};

class Queue {
  public:
    explicit Queue(Device& device);

    Device& device() noexcept { return device_; }
    // Whether `queue` points to one of these. Of any readable memory.
    static bool is_queue(const void* queue) noexcept;

    void put_copy(char* to, const char* from, uint64_t bytes);
    void put_launch(const Launch& launch);

    // Does all that has been put here. Throws the first failure; what was put after it is dropped.
    void finish();

  private:
    struct Command {
        bool launches;
        char* to;
        const char* from;
        uint64_t bytes;
        Launch launch;
    };

    void put(const Command& command);
    void flush() noexcept;
    void compute(const Launch& launch);

    static constexpr uint64_t kMark = 0x51D0'0A75'E55E'0001;
    static constexpr size_t kCapacity = 512;

    uint64_t mark_ = kMark;
    Device& device_;
    std::vector<Command> commands_;  // never grows
    std::string failure_;            // of an earlier flush
    tsr_code failure_code_ = TSR_OK;
};

}  // namespace tessera::simulated
