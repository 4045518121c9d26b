// The threads that parse requests, apply templates and tokenise.
#pragma once

#include "core/session/fair_queue.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::server {

// Clients take turns by the bytes of what they sent. One of two threads works on small bodies alone: a large one takes
// seconds, and nobody else is to wait for it.
class RequestWorkers {
  public:
    static constexpr uint64_t kSmallBytes = 256 << 10;

    RequestWorkers();
    // As stop().
    ~RequestWorkers();
    RequestWorkers(const RequestWorkers&) = delete;
    RequestWorkers& operator=(const RequestWorkers&) = delete;

    // `work` is called by one of the threads; never, if stop() comes before. What it throws is logged and ends nothing
    // else: it should have told its client. Any thread.
    void post(const std::string& client, uint64_t bytes, std::function<void()> work);

    // Finishes what the threads are at and drops what waits. Not by one of the threads.
    void stop();

  private:
    using Work = std::function<void()>;
    void run(bool takes_large);

    std::mutex mutex_;
    std::condition_variable changed_;
    session::FairQueue<Work> small_, large_;
    bool stopped_ = false;
    std::thread small_thread_, any_thread_;
};

}  // namespace tessera::server
