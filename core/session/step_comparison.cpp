#include "core/session/step_comparison.hpp"

#include "core/plan/predict.hpp"

#include <algorithm>
#include <set>
#include <span>

namespace tessera {
namespace {

constexpr uint32_t kManyRows = 32;
constexpr size_t kMostSizes = 16;

double between(double from, double to, double share) {
    return from + (to - from) * share;
}

// Numbers of rows between which a step's predicted time is a straight line: how a step is computed changes at some.
std::set<uint32_t> compared_sizes(const Plan& plan, uint32_t fewest, uint32_t prompt_rows_from) {
    const uint32_t most = plan.options.max_rows;
    std::set<uint32_t> all = {fewest, most};
    const auto changes_at = [&](uint32_t rows) {
        if (rows <= fewest || rows > most || all.size() >= kMostSizes) return;
        all.insert({rows - 1, rows});
    };
    changes_at(prompt_rows_from);
    for (const StreamedNode& one : plan.streamed) changes_at(one.rows_from);
    return all;
}

}  // namespace

StepComparison::StepComparison(const Plan& plan, uint32_t prompt_rows_from)
    : fewest_rows_(std::max(kManyRows, plan.options.max_rows / 4)), max_tokens_(plan.options.max_tokens) {
    const auto predict = [&](uint32_t rows) {
        const bool prompt = rows >= prompt_rows_from;
        return Prediction{rows, step_time(plan, rows, 0, prompt).seconds,
                          step_time(plan, rows, max_tokens_, prompt).seconds};
    };
    token_ = predict(1);
    if (plan.options.max_rows < fewest_rows_) return;
    for (const uint32_t rows : compared_sizes(plan, fewest_rows_, prompt_rows_from)) prompts_.push_back(predict(rows));
}

double StepComparison::predicted(uint32_t rows, uint32_t depth) const {
    const double share = max_tokens_ ? std::min(1.0, static_cast<double>(depth) / max_tokens_) : 0;
    const auto at = [&](const Prediction& one) { return between(one.empty, one.full, share); };
    if (rows == 1) return at(token_);
    const auto to = std::ranges::lower_bound(prompts_, rows, {}, &Prediction::rows);
    if (to == prompts_.end()) return 0;
    if (to->rows == rows || to == prompts_.begin()) return at(*to);
    const Prediction& from = *(to - 1);
    return between(at(from), at(*to), static_cast<double>(rows - from.rows) / (to->rows - from.rows));
}

void StepComparison::finished(uint32_t rows, uint32_t depth, double seconds) {
    if (rows != 1 && rows < fewest_rows_) return;
    Kind& kind = rows == 1 ? generation_kind_ : prompt_kind_;
    const double expected = predicted(rows, depth);
    if (expected <= 0 || seconds <= 0) return;
    if (!kind.begun) {
        kind.begun = true;
        return;
    }
    kind.add(rows, seconds, expected);
}

void StepComparison::Kind::add(uint32_t tokens, double measured, double predicted) {
    ratios[compared.steps++ % kRemembered] = predicted / measured;
    compared.tokens += tokens;
    compared.measured_seconds += measured;
    compared.predicted_seconds += predicted;
    std::array<double, kRemembered> sorted = ratios;
    const auto last = std::span(sorted).first(std::min<uint64_t>(compared.steps, kRemembered));
    const auto middle = last.begin() + static_cast<ptrdiff_t>(last.size() / 2);
    std::ranges::nth_element(last, middle);
    compared.ratio = *middle;
}

}  // namespace tessera
