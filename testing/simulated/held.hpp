// Something of the host's that queued or recorded work refers to: an allocation, a prepared kernel.
#pragma once

#include "hidden.hpp"

#include <string>

namespace tessera::simulated {

class Held {
  public:
    virtual ~Held() = default;
    // For messages: "an allocation of 64 bytes".
    virtual std::string describe() const = 0;

    // Commands on queues, replays included.
    void put_on_queue() noexcept { queued_.fetch_add(1, kHidden); }
    void leave_queue() noexcept { queued_.fetch_sub(1, kHidden); }
    bool queued() const noexcept { return queued_.load(kHidden) != 0; }
    // Recordings. Host only.
    void record() noexcept { ++recorded_; }
    void forget() noexcept { --recorded_; }

    void mark_released() noexcept { released_.store(true, kHidden); }
    bool released() const noexcept { return released_.load(kHidden); }
    // Whether nothing refers to it any more. Host only.
    bool free() const noexcept { return !queued() && recorded_ == 0; }

  private:
    std::atomic<uint32_t> queued_{0};
    uint32_t recorded_ = 0;
    std::atomic<bool> released_{false};
};

}  // namespace tessera::simulated
