#include "core/session/sampler.hpp"

#include "core/base/error.hpp"
#include "core/session/sampling_math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::session {
namespace {

// A total order, so that ties do not depend on how the library sorts.
bool by_logit(const Sampler::Candidate& a, const Sampler::Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Extreme penalties, biases and temperatures may overflow; weights need finite logits.
float finite(float logit) {
    return std::clamp(logit, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
}

}  // namespace

void check_logits(std::span<const float> logits) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    bool good = true;
    for (const float logit : logits) good &= logit < kInfinity;  // false for NaN, too
    if (good) return;
    const auto bad = std::ranges::find_if(logits, [](float logit) { return !(logit < kInfinity); });
    fail(
        TSR_INTERNAL,
        "the logit of token {} is {}: the model's output is broken; 'tessera inspect --check' looks for broken weights",
        bad - logits.begin(), *bad);
}

Sampler::Sampler(SamplingParameters parameters, size_t vocabulary_size)
    : parameters_(std::move(parameters)), vocabulary_size_(vocabulary_size) {
    check_sampling_parameters(parameters_, vocabulary_size);
    penalties_on_ = parameters_.penalty_last_n != 0 &&
                    (parameters_.repetition_penalty != 1.0f || parameters_.frequency_penalty != 0.0f ||
                     parameters_.presence_penalty != 0.0f);
    candidates_.reserve(vocabulary_size);
    if (!parameters_.logit_bias.empty()) {
        bias_.assign(vocabulary_size, 0.0f);
        for (const auto& [token, bias] : parameters_.logit_bias) bias_[static_cast<size_t>(token)] += bias;
    }
    if (penalties_on_) {
        counts_.resize(vocabulary_size);
        if (parameters_.penalty_last_n > 0) window_.resize(static_cast<size_t>(parameters_.penalty_last_n));
        if (std::ranges::find(parameters_.order, SamplingStep::kPenalties) == parameters_.order.end())
            parameters_.order.insert(parameters_.order.begin(), SamplingStep::kPenalties);
    }
    reset();
}

void Sampler::reset() {
    random_.seed(parameters_.seed);
    std::ranges::fill(counts_, 0u);
    window_fill_ = 0;
    window_next_ = 0;
    candidates_.clear();
}

void Sampler::accept(int32_t token) {
    if (token < 0 || static_cast<size_t>(token) >= vocabulary_size_)
        fail(TSR_INVALID_ARGUMENT, "token {} is not in the vocabulary, which has {}", token, vocabulary_size_);
    if (!penalties_on_) return;
    ++counts_[static_cast<size_t>(token)];
    if (window_.empty()) return;
    if (window_fill_ == window_.size()) {
        --counts_[static_cast<size_t>(window_[window_next_])];
    } else {
        ++window_fill_;
    }
    window_[window_next_] = token;
    window_next_ = window_next_ + 1 == window_.size() ? 0 : window_next_ + 1;
}

int32_t Sampler::sample(std::span<const float> logits, TokenMask allowed) {
    check(logits);
    std::span<const SamplingStep> steps = parameters_.order;
    if (parameters_.temperature == 0.0f) {
        collect(logits, allowed, penalties_on_, 1);
        candidates_.front().weight = 1.0;
        return candidates_.front().token;
    }
    // The first steps of the usual orders need not see the whole vocabulary as candidates.
    const bool penalize = penalties_on_ && !steps.empty() && steps.front() == SamplingStep::kPenalties;
    if (!steps.empty() && steps.front() == SamplingStep::kPenalties) steps = steps.subspan(1);
    size_t limit = vocabulary_size_;
    if (!steps.empty() && steps.front() == SamplingStep::kTopK) {
        if (parameters_.top_k > 0) limit = std::min(limit, static_cast<size_t>(parameters_.top_k));
        steps = steps.subspan(1);
    }
    collect(logits, allowed, penalize, limit);
    for (const SamplingStep step : steps) apply(step);

    const double total = weigh();
    const double at = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
    double sum = 0.0;
    int32_t last = candidates_.front().token;
    for (const Candidate& one : candidates_) {
        if (one.weight == 0.0) continue;
        sum += one.weight;
        last = one.token;
        if (sum > at) break;
    }
    return last;
}

void Sampler::check(std::span<const float> logits) const {
    if (logits.size() != vocabulary_size_)
        fail(TSR_INVALID_ARGUMENT, "expected {} logits, one a token of the vocabulary, found {}", vocabulary_size_,
             logits.size());
    check_logits(logits);
}

void Sampler::collect(std::span<const float> logits, TokenMask allowed, bool penalize, size_t limit) {
    candidates_.clear();
    const bool plain = bias_.empty() && !penalize;
    const bool all = allowed.empty();
    const auto forbidden = [&](size_t i) {
        return i / 32 >= allowed.size() || (allowed[i / 32] >> (i % 32) & 1u) == 0;
    };
    // Below the limit a list, from there on a heap with the worst on top.
    float worst = -std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < logits.size(); ++i) {
        if (!all && forbidden(i)) continue;
        float logit = logits[i];
        if (!plain && logit != -std::numeric_limits<float>::infinity()) {
            if (!bias_.empty()) logit += bias_[i];
            if (logit != -std::numeric_limits<float>::infinity()) {
                logit = finite(logit);
                if (penalize && counts_[i] != 0) logit = penalized(logit, counts_[i]);
            }
        }
        // Of equals the first stays, as in by_logit; what is forbidden is never more than -infinity.
        if (!(logit > worst)) continue;
        if (candidates_.size() == limit) {
            std::ranges::pop_heap(candidates_, by_logit);
            candidates_.pop_back();
        }
        candidates_.push_back({static_cast<int32_t>(i), logit, 0.0});
        if (limit == logits.size()) continue;
        if (candidates_.size() == limit) {
            if (worst == -std::numeric_limits<float>::infinity()) {
                std::ranges::make_heap(candidates_, by_logit);
            } else {
                std::ranges::push_heap(candidates_, by_logit);
            }
            worst = candidates_.front().logit;
        }
    }
    if (candidates_.empty())
        fail(TSR_INTERNAL, "every token is forbidden: of {} logits those that are allowed are -infinity",
             logits.size());
    if (limit != logits.size()) std::ranges::sort(candidates_, by_logit);
}

void Sampler::apply(SamplingStep step) {
    switch (step) {
        case SamplingStep::kPenalties:
            return penalties_on_ ? apply_penalties() : void();
        case SamplingStep::kTopK:
            return keep_top_k();
        case SamplingStep::kTypical:
            return keep_typical();
        case SamplingStep::kTopP:
            return keep_top_p();
        case SamplingStep::kMinP:
            return keep_min_p();
        case SamplingStep::kTemperature:
            return apply_temperature();
        case SamplingStep::kDry:
        case SamplingStep::kTopNSigma:
        case SamplingStep::kXtc:
        case SamplingStep::kAdaptiveP:
            return;
    }
}

float Sampler::penalized(float logit, uint32_t count) const {
    logit = logit > 0.0f ? logit / parameters_.repetition_penalty : logit * parameters_.repetition_penalty;
    return finite(logit - (static_cast<float>(count) * parameters_.frequency_penalty + parameters_.presence_penalty));
}

void Sampler::apply_penalties() {
    for (Candidate& one : candidates_) {
        const uint32_t count = counts_[static_cast<size_t>(one.token)];
        if (count != 0) one.logit = penalized(one.logit, count);
    }
}

void Sampler::keep_top_k() {
    if (parameters_.top_k <= 0) return;
    const auto k = static_cast<size_t>(parameters_.top_k);
    if (k >= candidates_.size()) return;
    std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<ptrdiff_t>(k), by_logit);
    candidates_.resize(k);
    // The order after nth_element depends on the library.
    std::ranges::sort(candidates_, by_logit);
}

void Sampler::keep_min_p() {
    if (parameters_.min_p <= 0.0f) return;
    weigh();
    std::erase_if(candidates_,
                  [&](const Candidate& one) { return one.weight < static_cast<double>(parameters_.min_p); });
}

void Sampler::keep_top_p() {
    if (parameters_.top_p >= 1.0f) return;
    keep_until(static_cast<double>(parameters_.top_p) * weigh(), by_logit);
}

void Sampler::keep_typical() {
    if (parameters_.typical_p >= 1.0f) return;
    const double total = weigh();
    // |-log p - entropy| is how far a logit is from the mean logit: the logarithm of the sum cancels.
    double mean = 0.0;
    for (const Candidate& one : candidates_) mean += one.weight * static_cast<double>(one.logit);
    mean /= total;
    keep_until(static_cast<double>(parameters_.typical_p) * total, [mean](const Candidate& a, const Candidate& b) {
        const double left = std::abs(static_cast<double>(a.logit) - mean);
        const double right = std::abs(static_cast<double>(b.logit) - mean);
        return left != right ? left < right : a.token < b.token;
    });
}

void Sampler::apply_temperature() {
    // Relative to the best, so that no temperature, however small, overflows.
    const float best = best_logit();
    for (Candidate& one : candidates_) one.logit = finite((one.logit - best) / parameters_.temperature);
}

float Sampler::best_logit() const {
    float best = candidates_.front().logit;
    for (const Candidate& one : candidates_) best = std::max(best, one.logit);
    return best;
}

double Sampler::weigh() {
    const auto best = static_cast<double>(best_logit());
    double total = 0.0;
    for (Candidate& one : candidates_) {
        one.weight = exp_of_negative(static_cast<double>(one.logit) - best);
        total += one.weight;
    }
    return total;
}

template <typename Better>
void Sampler::keep_until(double target, Better better) {
    // The head is almost always short, so it is sorted in growing portions instead of sorting the whole vocabulary.
    size_t sorted = 0;
    size_t portion = 128;
    double sum = 0.0;
    const auto at = [&](size_t i) { return candidates_.begin() + static_cast<ptrdiff_t>(i); };
    while (sorted < candidates_.size()) {
        const size_t end = std::min(candidates_.size(), sorted + portion);
        if (end < candidates_.size()) std::nth_element(at(sorted), at(end), candidates_.end(), better);
        std::sort(at(sorted), at(end), better);
        for (; sorted < end; ++sorted) {
            sum += candidates_[sorted].weight;
            if (sum >= target) {
                candidates_.resize(sorted + 1);
                return;
            }
        }
        portion *= 4;
    }
}

}  // namespace tessera::session
