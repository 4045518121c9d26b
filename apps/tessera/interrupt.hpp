// Ctrl-C: the first one asks for a clean end, a second one quits at once.
#pragma once

#include <atomic>

namespace tessera::app {

// While it lives, SIGINT sets the flag instead of ending the process. One at a time; blocking reads are interrupted.
class InterruptScope {
  public:
    InterruptScope();
    ~InterruptScope();
    InterruptScope(const InterruptScope&) = delete;
    InterruptScope& operator=(const InterruptScope&) = delete;

    const std::atomic<bool>& flag() const noexcept;
    bool interrupted() const noexcept { return flag().load(); }
    // What was asked for is done; the next Ctrl-C is a first one again.
    void clear() noexcept;
};

}  // namespace tessera::app
