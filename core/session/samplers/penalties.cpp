#include "core/session/samplers/penalties.hpp"

namespace tessera::session {

Penalties::Penalties(float repetition, float frequency, float presence, size_t window, size_t vocabulary_size)
    : repetition_(repetition), frequency_(frequency), presence_(presence), counts_(vocabulary_size), window_(window) {}

void Penalties::reset() noexcept {
    std::ranges::fill(counts_, 0u);
    fill_ = 0;
    next_ = 0;
}

void Penalties::accept(int32_t token) {
    ++counts_[static_cast<size_t>(token)];
    if (window_.empty()) return;
    if (fill_ == window_.size()) {
        --counts_[static_cast<size_t>(window_[next_])];
    } else {
        ++fill_;
    }
    window_[next_] = token;
    next_ = next_ + 1 == window_.size() ? 0 : next_ + 1;
}

}  // namespace tessera::session
