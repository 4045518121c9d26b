#include "apps/tessera/measuring.hpp"

#include "core/base/error.hpp"

#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

namespace tessera::app {
namespace {

template <typename Work>
double seconds_of(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

SpeedMeter::SpeedMeter(Engine& engine, const std::atomic<bool>& stop)
    : engine_(engine), stop_(stop), sequence_(engine.cache().create()), tokens_(engine.context()), canceller_(engine) {
    std::mt19937 random(1);
    for (Token& token : tokens_) token = static_cast<Token>(random() % engine.info().vocabulary);
}

SpeedMeter::~SpeedMeter() {
    engine_.cache().remove(sequence_);
}

double SpeedMeter::prompt(uint32_t depth, uint32_t tokens) {
    return prompt_and_generation(depth, tokens, 0);
}
double SpeedMeter::generation(uint32_t depth, uint32_t tokens) {
    return prompt_and_generation(depth, 0, tokens);
}

double SpeedMeter::prompt_and_generation(uint32_t depth, uint32_t prompt, uint32_t generation) {
    bring_to(depth);
    return seconds_of([&] {
        feed(prompt);
        generate(generation);
    });
}

void SpeedMeter::bring_to(uint32_t depth) {
    PagedCache& cache = engine_.cache();
    // Layers with a window hold no longer what is far before the end.
    if (cache.length(sequence_) > depth) cache.truncate(sequence_, cache.can_truncate(sequence_, depth) ? depth : 0);
    if (const uint32_t length = cache.length(sequence_); length < depth) feed(depth - length);
}

std::span<const Token> SpeedMeter::next(uint32_t tokens) const {
    const uint32_t begin = engine_.cache().length(sequence_);
    if (uint64_t{begin} + tokens > tokens_.size()) {
        fail(TSR_INVALID_ARGUMENT, "{} tokens after {} do not fit a context of {}", tokens, begin, tokens_.size());
    }
    return std::span(tokens_).subspan(begin, tokens);
}

void SpeedMeter::feed(uint32_t tokens) {
    if (tokens == 0) return;
    const std::span<const Token> given = next(tokens);
    engine_.prefill(sequence_, given, [&](size_t, size_t) { return !stop_.load(); });
}

void SpeedMeter::generate(uint32_t tokens) {
    const std::span<const Token> given = next(tokens);
    for (uint32_t i = 0; i < tokens; ++i) {
        if (stop_.load()) fail(TSR_CANCELLED, "stopped after {} of {} tokens", i, tokens);
        const BatchEntry entry{sequence_, given.subspan(i, 1)};
        engine_.step({&entry, 1});
    }
}

Spread spread_of(const std::vector<double>& samples) {
    if (samples.empty()) return {};
    const auto count = static_cast<double>(samples.size());
    const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
    double squares = 0;
    for (const double sample : samples) squares += (sample - mean) * (sample - mean);
    return {mean, samples.size() < 2 ? 0.0 : std::sqrt(squares / (count - 1))};
}

}  // namespace tessera::app
