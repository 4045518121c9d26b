#include "apps/tessera/generating.hpp"

#include "apps/tessera/step_canceller.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace tessera::app {

PromptProgress::PromptProgress(const session::Generator& generator, uint64_t tokens, uint32_t rows_of_a_step)
    : generator_(generator), before_(generator.timings().prompt_tokens), tokens_(tokens) {
    if (tokens <= rows_of_a_step) return;
    bar_.emplace("prompt", [](uint64_t amount) { return counted(amount, "token"); });
    update();
}

void PromptProgress::update() {
    if (!bar_) return;
    const uint64_t done = generator_.timings().prompt_tokens - before_;
    // Some of the tokens may have been found in the cache.
    done < tokens_ ? bar_->update(done, tokens_) : finish();
}

void PromptProgress::finish() {
    bar_.reset();
}

void run(session::Generator& generator, Engine& engine, PromptProgress& progress, const std::atomic<bool>& stop) {
    const StepCanceller canceller(engine);
    for (bool more = true, stopping = false; more;) {
        try {
            if (!stopping) more = generator.step();
            stopping = stopping || stop.load(std::memory_order_relaxed);
            if (stopping) {
                generator.cancel_all();
                more = false;
            }
        } catch (const Error& error) {
            // The requests of the step, and of others that were under way, are still to be cancelled.
            if (error.code() != TSR_CANCELLED || !stop.load(std::memory_order_relaxed)) throw;
            stopping = true;
        }
        progress.update();
    }
    progress.finish();
}

}  // namespace tessera::app
