// Ctrl-C within a step.
#pragma once

#include "core/session/engine.hpp"

#include <thread>

namespace tessera::app {

// While it lives, an interrupt (see InterruptScope) cancels the steps of an engine, which then throw
// Error(TSR_CANCELLED): a step of a long prompt takes seconds. Until the interrupt is cleared, each later step is
// cancelled as well. Where the system starts no further thread, steps run to their end.
class StepCanceller {
  public:
    // `engine` outlives it.
    explicit StepCanceller(Engine& engine);
    ~StepCanceller();
    StepCanceller(const StepCanceller&) = delete;
    StepCanceller& operator=(const StepCanceller&) = delete;

  private:
    void watch();

    Engine& engine_;
    int done_;  // an event: readable at the end; -1: there is none, and no thread
    std::thread thread_;
};

}  // namespace tessera::app
