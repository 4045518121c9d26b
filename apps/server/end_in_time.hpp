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
    // Nothing is left but to give memory back, which takes long where there is much of it: from now on the end at the
    // limit is no error, and nothing is said.
    void done();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false, done_ = false;
    std::thread thread_;
};

}  // namespace tessera::server
