// Penalties of tokens that have occurred. Sources: SamplingStep.
#pragma once

#include "core/session/samplers/candidates.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::session {

class Penalties {
  public:
    // window: how many of the last tokens count; 0: all.
    Penalties(float repetition, float frequency, float presence, size_t window, size_t vocabulary_size);

    void accept(int32_t token);
    void reset() noexcept;

    float penalized(int32_t token, float logit) const noexcept {
        const uint32_t count = counts_[static_cast<size_t>(token)];
        if (count == 0) return logit;
        logit = logit > 0.0f ? logit / repetition_ : logit * repetition_;
        return finite(logit - (static_cast<float>(count) * frequency_ + presence_));
    }

  private:
    float repetition_, frequency_, presence_;
    std::vector<uint32_t> counts_;  // by token: how often in the window
    std::vector<int32_t> window_;   // ring of the last tokens; empty: all count
    size_t fill_ = 0;
    size_t next_ = 0;
};

}  // namespace tessera::session
