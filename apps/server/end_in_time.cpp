#include "apps/server/end_in_time.hpp"

#include "core/base/log.hpp"

#include <cstdlib>

namespace tessera::server {

void EndInTime::limit(std::chrono::seconds time) {
    thread_ = std::thread([this, time] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, time, [this] { return ended_; })) return;
        if (done_) std::_Exit(EXIT_SUCCESS);
        log().error("not everything has ended in {} s, as where a disk does not answer; the process ends now",
                    time.count());
        log().flush();
        std::_Exit(EXIT_FAILURE);
    });
}

void EndInTime::done() {
    const std::scoped_lock lock(mutex_);
    done_ = true;
}

EndInTime::~EndInTime() {
    if (!thread_.joinable()) return;
    {
        const std::scoped_lock lock(mutex_);
        ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

}  // namespace tessera::server
