#include "apps/server/request_workers.hpp"

#include "core/base/log.hpp"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <utility>

namespace tessera::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAge(60);
// What a request costs beside its bytes.
constexpr uint64_t kEach = 4 << 10;

}  // namespace

RequestWorkers::RequestWorkers()
    : small_(RequestWorkers::kSmallBytes, kAge),
      large_(RequestWorkers::kSmallBytes * 16, kAge),
      small_thread_([this] { run(false); }),
      any_thread_([this] { run(true); }) {}

RequestWorkers::~RequestWorkers() {
    stop();
}

void RequestWorkers::post(const std::string& client, uint64_t bytes, Work work) {
    const std::scoped_lock lock(mutex_);
    (bytes > kSmallBytes ? large_ : small_).push(client, bytes + kEach, std::move(work), Clock::now());
    // Not every thread takes it.
    changed_.notify_all();
}

void RequestWorkers::stop() {
    {
        const std::scoped_lock lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }
    for (std::thread* thread : {&small_thread_, &any_thread_}) {
        if (thread->joinable()) thread->join();
    }
}

void RequestWorkers::run(bool takes_large) {
    // As tools that list threads show it.
    pthread_setname_np(pthread_self(), "tessera-worker");
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stopped_ || !small_.empty() || (takes_large && !large_.empty()); });
        if (stopped_) return;
        Work work = (takes_large && !large_.empty() ? large_ : small_).pop(Clock::now());
        lock.unlock();
        try {
            work();
        } catch (const std::exception& failure) {
            log().error("work on a request was given up: {}", failure.what());
        }
        // What it holds ends without the lock.
        work = nullptr;
        lock.lock();
    }
}

}  // namespace tessera::server
