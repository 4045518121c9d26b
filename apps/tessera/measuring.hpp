// Timed work of a loaded model over random tokens.
#pragma once

#include "apps/tessera/step_canceller.hpp"
#include "core/session/engine.hpp"

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::app {

// One sequence of random tokens, the same for every run. All times in seconds. Throws what Engine::step throws, and
// Error(TSR_CANCELLED) soon after `stop` is set.
class SpeedMeter {
  public:
    // Needs an engine of one sequence; `stop`, the flag of an InterruptScope, and `engine` outlive the meter.
    SpeedMeter(Engine& engine, const std::atomic<bool>& stop);
    ~SpeedMeter();
    SpeedMeter(const SpeedMeter&) = delete;
    SpeedMeter& operator=(const SpeedMeter&) = delete;

    // Work after `depth` cached tokens. Filling the cache to that depth does not count. The tokens stay cached: a token
    // depends only on its position, so that a later call continues from there.
    double prompt(uint32_t depth, uint32_t tokens);
    double generation(uint32_t depth, uint32_t tokens);
    double prompt_and_generation(uint32_t depth, uint32_t prompt, uint32_t generation);

  private:
    void bring_to(uint32_t depth);
    std::span<const Token> next(uint32_t tokens) const;
    void feed(uint32_t tokens);
    void generate(uint32_t tokens);

    Engine& engine_;
    const std::atomic<bool>& stop_;
    SequenceId sequence_;
    std::vector<Token> tokens_;
    StepCanceller canceller_;
};

struct Spread {
    double mean = 0;
    double deviation = 0;  // of a sample: 0 for fewer than two
};
Spread spread_of(const std::vector<double>& samples);

}  // namespace tessera::app
