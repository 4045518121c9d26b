// An end of the process that no disk can delay.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tessera::server {

// Whoever waits in the system for a disk that does not answer cannot be told to stop. If this is still there so long
// after limit(), the process ends at once, with an error.
class EndInTime {
  public:
    EndInTime() = default;
    ~EndInTime();
    EndInTime(const EndInTime&) = delete;
    EndInTime& operator=(const EndInTime&) = delete;

    // Once.
    void limit(std::chrono::seconds time);

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::thread thread_;
};

}  // namespace tessera::server
