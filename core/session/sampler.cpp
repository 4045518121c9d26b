#include "core/session/sampler.hpp"

#include "core/base/error.hpp"
#include "core/session/samplers/temperature.hpp"
#include "core/session/samplers/truncation.hpp"

#include <algorithm>
#include <limits>

namespace tessera::session {
namespace {

// Changes logits by what was accepted, and leaves none out.
bool adjusts(SamplingStep step) {
    return step == SamplingStep::kPenalties || step == SamplingStep::kDry;
}

}  // namespace

void check_logits(std::span<const float> logits) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    bool good = true;
    for (const float logit : logits) good &= logit < kInfinity;  // false for NaN, too
    if (good) return;
    const auto bad = std::ranges::find_if(logits, [](float logit) { return !(logit < kInfinity); });
    fail(TSR_INTERNAL,
         Notice(fmt::format("the logit of token {} is {}: the model's output is broken", bad - logits.begin(), *bad),
                {{AdviceCode::kCheckFile, ""}}));
}

Sampler::Sampler(SamplingParameters parameters, size_t vocabulary_size, DryText text)
    : parameters_(std::move(parameters)), vocabulary_size_(vocabulary_size) {
    check_sampling_parameters(parameters_, vocabulary_size);
    candidates_.reserve(vocabulary_size);
    if (!parameters_.logit_bias.empty()) {
        bias_.assign(vocabulary_size, 0.0f);
        for (const auto& [token, bias] : parameters_.logit_bias) bias_[static_cast<size_t>(token)] += bias;
    }
    choose_steps();
    make_states(std::move(text));
    reset();
}

bool Sampler::on(SamplingStep step) const {
    const SamplingParameters& p = parameters_;
    if (step == SamplingStep::kTemperature) return true;
    if (step == SamplingStep::kPenalties && p.penalty_last_n == 0) return false;
    if (step == SamplingStep::kDry && p.dry_last_n == 0) return false;
    // No two tokens can be that likely.
    if (step == SamplingStep::kXtc && p.xtc_threshold > 0.5f) return false;
    return std::ranges::any_of(kSamplingFields,
                               [&](const SamplingField& field) { return field.step == step && field.turns_on(p); });
}

void Sampler::choose_steps() {
    std::vector<SamplingStep>& order = parameters_.order;
    if (on(SamplingStep::kPenalties) && std::ranges::find(order, SamplingStep::kPenalties) == order.end())
        order.insert(order.begin(), SamplingStep::kPenalties);
    for (const SamplingStep step : order) {
        // Of the draw itself.
        if (step == SamplingStep::kAdaptiveP) continue;
        if (parameters_.mirostat != 0 && !adjusts(step)) continue;
        if (on(step)) steps_.push_back(step);
    }
    if (parameters_.mirostat != 0) steps_.push_back(SamplingStep::kTemperature);
    adjusting_ = static_cast<size_t>(std::ranges::find_if_not(steps_, adjusts) - steps_.begin());

    const bool ranged = parameters_.temperature_range > 0.0f && parameters_.mirostat == 0;
    const auto at = std::ranges::find(steps_, SamplingStep::kTemperature);
    if (parameters_.temperature != 0.0f || (ranged && at != steps_.end())) return;
    // Of what comes before the temperature only these can leave the best token out; nothing after it matters.
    greedy_ = std::none_of(steps_.begin(), at, [](SamplingStep step) {
        return step == SamplingStep::kTypical || step == SamplingStep::kXtc;
    });
    steps_.erase(at, steps_.end());
    if (greedy_) {
        std::erase_if(steps_, [](SamplingStep step) { return !adjusts(step); });
        adjusting_ = steps_.size();
    } else {
        steps_.push_back(SamplingStep::kTemperature);
    }
}

void Sampler::make_states(DryText text) {
    const SamplingParameters& p = parameters_;
    const auto uses = [&](SamplingStep step) { return std::ranges::find(steps_, step) != steps_.end(); };
    if (uses(SamplingStep::kPenalties))
        penalties_.emplace(p.repetition_penalty, p.frequency_penalty, p.presence_penalty,
                           static_cast<size_t>(std::max(p.penalty_last_n, 0)), vocabulary_size_);
    if (uses(SamplingStep::kDry)) {
        if (!text.breakers && !p.dry_sequence_breakers.empty())
            fail(TSR_INVALID_ARGUMENT, "dry_sequence_breakers: expected them in tokens, too");
        if (text.context == 0) fail(TSR_INVALID_ARGUMENT, "dry_penalty_last_n: expected the context's size, too");
        const size_t window = p.dry_last_n < 0 ? text.context : static_cast<size_t>(p.dry_last_n);
        dry_.emplace(p.dry_multiplier, p.dry_base, p.dry_allowed_length, std::min(window, text.context),
                     vocabulary_size_, std::move(text.breakers));
    }
    if (greedy_) return;
    if (p.mirostat != 0) {
        mirostat_.emplace(p.mirostat, p.mirostat_tau, p.mirostat_eta, vocabulary_size_);
    } else if (on(SamplingStep::kAdaptiveP) && std::ranges::find(p.order, SamplingStep::kAdaptiveP) != p.order.end()) {
        adaptive_.emplace(p.adaptive_target, p.adaptive_decay);
    }
}

void Sampler::reset() {
    random_.seed(parameters_.seed);
    candidates_.clear();
    drawn_.reset();
    if (penalties_) penalties_->reset();
    if (dry_) dry_->reset();
    if (adaptive_) adaptive_->reset();
    if (mirostat_) mirostat_->reset();
}

void Sampler::accept(int32_t token) {
    if (token < 0 || static_cast<size_t>(token) >= vocabulary_size_)
        fail(TSR_INVALID_ARGUMENT, "token {} is not in the vocabulary, which has {}", token, vocabulary_size_);
    if (penalties_) penalties_->accept(token);
    if (dry_) dry_->accept(token);
    if (drawn_ && drawn_->token == token) {
        if (adaptive_) adaptive_->accept(drawn_->probability);
        if (mirostat_) mirostat_->accept(drawn_->probability);
    }
    drawn_.reset();
}

int32_t Sampler::sample(std::span<const float> logits, TokenMask allowed) {
    check(logits);
    if (dry_) dry_->find_repetitions();
    if (greedy_) {
        collect(logits, allowed, 1);
        candidates_.front().weight = 1.0;
        return candidates_.front().token;
    }
    // The first steps of the usual orders need not see the whole vocabulary as candidates.
    auto steps = std::span<const SamplingStep>(steps_).subspan(adjusting_);
    size_t limit = vocabulary_size_;
    if (!steps.empty() && steps.front() == SamplingStep::kTopK) {
        limit = std::min(limit, static_cast<size_t>(parameters_.top_k));
        steps = steps.subspan(1);
    }
    collect(logits, allowed, limit);
    for (const SamplingStep step : steps) apply(step);
    return draw();
}

double Sampler::random_share() {
    return static_cast<double>(random_() >> 11) * 0x1p-53;
}

int32_t Sampler::draw() {
    const double total = mirostat_   ? mirostat_->truncate(candidates_)
                         : adaptive_ ? adaptive_->weigh_near_target(candidates_)
                                     : weigh(candidates_);
    const double at = random_share() * total;
    double sum = 0.0;
    const Candidate* last = &candidates_.front();
    for (const Candidate& one : candidates_) {
        if (one.weight == 0.0) continue;
        sum += one.weight;
        last = &one;
        if (sum > at) break;
    }
    if (mirostat_) drawn_ = Drawn{last->token, last->weight / total};
    if (adaptive_) drawn_ = Drawn{last->token, adaptive_->probability_of(*last)};
    return last->token;
}

void Sampler::check(std::span<const float> logits) const {
    if (logits.size() != vocabulary_size_)
        fail(TSR_INVALID_ARGUMENT, "expected {} logits, one a token of the vocabulary, found {}", vocabulary_size_,
             logits.size());
    check_logits(logits);
}

void Sampler::collect(std::span<const float> logits, TokenMask allowed, size_t limit) {
    const auto adjusting = std::span(steps_).first(adjusting_);
    if (adjusting.empty())
        return collect(logits, allowed, limit, bias_.empty(), [](int32_t, float logit) { return logit; });
    if (adjusting.size() == 1 && penalties_)
        return collect(logits, allowed, limit, false,
                       [&](int32_t token, float logit) { return penalties_->penalized(token, logit); });
    collect(logits, allowed, limit, false, [&](int32_t token, float logit) {
        for (const SamplingStep step : adjusting) logit = adjusted(step, token, logit);
        return logit;
    });
}

template <typename Adjust>
void Sampler::collect(std::span<const float> logits, TokenMask allowed, size_t limit, bool plain, Adjust adjust) {
    candidates_.clear();
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
                logit = adjust(static_cast<int32_t>(i), finite(logit));
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

float Sampler::adjusted(SamplingStep step, int32_t token, float logit) const {
    return step == SamplingStep::kPenalties ? penalties_->penalized(token, logit) : dry_->penalized(token, logit);
}

void Sampler::apply(SamplingStep step) {
    const SamplingParameters& p = parameters_;
    const auto minimum = static_cast<size_t>(p.min_keep);
    switch (step) {
        case SamplingStep::kPenalties:
        case SamplingStep::kDry:
            for (Candidate& one : candidates_) one.logit = adjusted(step, one.token, one.logit);
            return;
        case SamplingStep::kTopNSigma:
            return keep_top_n_sigma(candidates_, p.top_n_sigma);
        case SamplingStep::kTopK:
            return keep_best(candidates_, static_cast<size_t>(p.top_k));
        case SamplingStep::kTypical:
            return keep_typical(candidates_, p.typical_p, minimum);
        case SamplingStep::kTopP:
            return keep_top_p(candidates_, p.top_p, minimum);
        case SamplingStep::kMinP:
            return keep_min_p(candidates_, p.min_p, minimum);
        case SamplingStep::kXtc:
            if (random_share() < static_cast<double>(p.xtc_probability))
                drop_top_choices(candidates_, p.xtc_threshold, minimum);
            return;
        case SamplingStep::kTemperature:
            if (p.temperature_range > 0.0f && p.mirostat == 0)
                return apply_dynamic_temperature(candidates_, p.temperature, p.temperature_range,
                                                 p.temperature_exponent);
            return apply_temperature(candidates_, p.temperature);
        case SamplingStep::kAdaptiveP:
            return;
    }
}

}  // namespace tessera::session
