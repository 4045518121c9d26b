#include "apps/tessera/generating.hpp"

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

void run(session::Generator& generator, PromptProgress& progress, const std::atomic<bool>& stop) {
    while (generator.step()) {
        progress.update();
        if (stop.load(std::memory_order_relaxed)) generator.cancel_all();
    }
    progress.finish();
}

}  // namespace tessera::app
