// Runs a generator interactively.
#pragma once

#include "apps/tessera/output.hpp"
#include "core/session/generate.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

namespace tessera::app {

// Prompts that take more than one step show their progress, until the first text of an answer.
class PromptProgress {
  public:
    // `tokens`: of all prompts that `generator` is about to compute.
    PromptProgress(const session::Generator& generator, uint64_t tokens, uint32_t rows_of_a_step);

    void update();
    // Before text is written.
    void finish();

  private:
    const session::Generator& generator_;
    uint64_t before_;
    uint64_t tokens_;
    std::optional<ProgressBar> bar_;
};

// Steps until nothing is left to do; when `stop`, the flag of an InterruptScope, becomes true, the step under way ends
// soon and everything is cancelled. `engine`: that of the generator.
void run(session::Generator& generator, Engine& engine, PromptProgress& progress, const std::atomic<bool>& stop);

}  // namespace tessera::app
