#include "apps/server/model_host.hpp"

#include "apps/server/api_error.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace tessera::server {

void ModelHost::progress(uint64_t done, uint64_t total) {
    const std::scoped_lock lock(mutex_);
    done_ = done;
    total_ = total;
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void ModelHost::ready(std::shared_ptr<const ServedModel> model) {
    const std::scoped_lock lock(mutex_);
    model_ = std::move(model);
    if (state_ == State::kLoading) state_ = State::kReady;
}

void ModelHost::failed(std::string message) {
    const std::scoped_lock lock(mutex_);
    state_ = State::kFailed;
    message_ = std::move(message);
}

void ModelHost::drain() {
    const std::scoped_lock lock(mutex_);
    state_ = State::kDraining;
}

std::shared_ptr<const ServedModel> ModelHost::peek() const {
    const std::scoped_lock lock(mutex_);
    return model_;
}

double ModelHost::Health::loaded() const noexcept {
    return total_bytes ? static_cast<double>(loaded_bytes) / static_cast<double>(total_bytes) : 0;
}

ModelHost::Health ModelHost::health() const {
    const std::scoped_lock lock(mutex_);
    double left = 1;
    if (done_ > 0) left = seconds_ * static_cast<double>(total_ - std::min(done_, total_)) / static_cast<double>(done_);
    // What little has been loaded says little.
    return {state_, done_, total_, message_, static_cast<unsigned>(std::clamp(std::ceil(left), 1.0, 600.0))};
}

std::shared_ptr<const ServedModel> ModelHost::model() const {
    const Health now = health();
    switch (now.state) {
        case State::kReady:
            return peek();
        case State::kLoading: {
            ApiError error(503, fmt::format("the model is being loaded ({:.0f} %)", now.loaded() * 100), {}, "loading");
            error.retry_after = now.seconds_left;
            throw error;
        }
        case State::kDraining:
            throw ApiError(503, "the server is being stopped and accepts no more requests", {}, "stopping");
        case State::kFailed:
            break;
    }
    throw ApiError(503, "the model could not be loaded: " + now.message, {}, "load_failed");
}

}  // namespace tessera::server
