// moe_route: the experts of a row and their weights. Sources: DeepSeek-V2 (arXiv 2405.04434), DeepSeek-V3
// (arXiv 2412.19437).
#include "rows.hpp"

#include <tessera/cpu/checks/routing.hpp>
#include <tessera/cpu/exponential.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>
#include <tessera/cpu/rows.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace tessera::x86 {
namespace {

using Isa = cpu::isa::Avx2Vectors;

constexpr int64_t kMaxRoutedExperts = 4096;  // of a node: their scores are on the stack

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Scores as integers of the same order, whose maximum compilers compute with vectors: NaN is below all others,
// and both zeros are equal. kTaken is below everything.
constexpr int32_t kTaken = std::numeric_limits<int32_t>::min();

int32_t rank_of(float score) noexcept {
    const auto bits = std::bit_cast<int32_t>(score + 0.0f);
    const int32_t ordered = bits ^ (bits >> 31 & std::numeric_limits<int32_t>::max());
    return score == score ? ordered : kTaken + 1;
}

// The first of the largest; from now on taken.
int64_t take_best(int32_t* ranks, int64_t n) noexcept {
    int32_t best = kTaken;
    for (int64_t i = 0; i < n; ++i) best = std::max(best, ranks[i]);
    int64_t at = 0;
    while (at + 1 < n && ranks[at] != best) ++at;
    ranks[at] = kTaken;
    return at;
}

// to[i] = function(from[i]) in vectors. Both may be one.
template <class Function>
void map(const float* from, int64_t n, float* to, Function function) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) Isa::store(to + i, function(Isa::load(from + i)));
    if (i < n) {
        alignas(32) float last[kLanes];
        Isa::store(last, function(Isa::load_first(from + i, static_cast<int>(n - i))));
        std::copy_n(last, n - i, to + i);
    }
}

void softmax(const float* logits, int64_t n, float* p) noexcept {
    float largest = kLowest;
    for (int64_t e = 0; e < n; ++e) largest = logits[e] > largest ? logits[e] : largest;
    const auto top = Isa::splat(largest);
    map(logits, n, p, [&](auto x) { return cpu::exp_not_positive<Isa>(Isa::subtract(x, top)); });
    double sum = 0;
    // The exponential bounds its argument, which makes a number of NaN: broken logits must not look like others.
    for (int64_t e = 0; e < n; ++e) sum += static_cast<double>(logits[e] == logits[e] ? p[e] : logits[e]);
    const auto inverse = Isa::splat(static_cast<float>(1 / sum));
    map(p, n, p, [&](auto x) { return Isa::multiply(x, inverse); });
}

void sigmoid(const float* logits, int64_t n, float* p) noexcept {
    const auto one = Isa::splat(1.0f);
    map(logits, n, p, [&](auto x) {
        // exp(-|x|) is the numerator where x is negative, one elsewhere.
        const auto e = cpu::exp_not_positive<Isa>(Isa::subtract(Isa::zero(), Isa::magnitude(x)));
        const auto numerator = Isa::add(e, Isa::where_not_less(x, Isa::zero(), Isa::subtract(one, e)));
        return Isa::divide(numerator, Isa::add(one, e));
    });
}

// The best score of a group; for sigmoid gating the sum of its two best.
float group_score(const float* scores, int64_t n, bool two) noexcept {
    float best = kLowest, second = kLowest;
    for (int64_t e = 0; e < n; ++e) {
        second = std::max(second, std::min(best, scores[e]));
        best = std::max(best, scores[e]);
    }
    return two && n > 1 ? best + second : best;
}

// One row: experts and weights of the `used` best. `scores` (of all experts) is not `p`.
class Router {
  public:
    Router(const cpu::RouteAttributes& want, int64_t experts, const float* bias) noexcept
        : want_(want), experts_(experts), bias_(bias) {}

    void route(const float* logits, int32_t* ids, int64_t id_stride, float* weights) noexcept {
        if (want_.sigmoid) {
            sigmoid(logits, experts_, p_);
        } else {
            softmax(logits, experts_, p_);
        }
        // Softmax keeps the order of the logits, which lose nothing to rounding.
        const float* scores = want_.sigmoid ? p_ : logits;
        if (bias_) {
            for (int64_t e = 0; e < experts_; ++e) scores_[e] = p_[e] + bias_[e];
            scores = scores_;
        }
        for (int64_t e = 0; e < experts_; ++e) ranks_[e] = rank_of(scores[e]);
        if (want_.groups > 1) keep_best_groups(scores);
        float largest = kLowest;
        for (int64_t i = 0; i < want_.used; ++i) {
            const int64_t expert = take_best(ranks_, experts_);
            ids[i * id_stride] = static_cast<int32_t>(expert);
            weights[i] = p_[expert];
            largest = std::max(largest, weights[i]);
        }
        // With a bias the first one chosen need not have the largest weight.
        const double threshold = want_.keep_ratio * static_cast<double>(largest);
        double sum = 0;
        for (int64_t i = 0; i < want_.used; ++i) {
            if (want_.keep_ratio > 0 && i >= want_.keep_at_least && !(static_cast<double>(weights[i]) >= threshold)) {
                ids[i * id_stride] = -1;
                weights[i] = 0;
            }
            sum += static_cast<double>(weights[i]);
        }
        const double factor = want_.scale / (want_.normalize ? std::max(sum, 0x1p-14) : 1.0);
        for (int64_t i = 0; i < want_.used; ++i) {
            weights[i] = static_cast<float>(static_cast<double>(weights[i]) * factor);
        }
    }

  private:
    void keep_best_groups(const float* scores) noexcept {
        const int64_t size = experts_ / want_.groups;
        for (int64_t g = 0; g < want_.groups; ++g) {
            group_ranks_[g] = rank_of(group_score(scores + g * size, size, want_.sigmoid));
        }
        for (int64_t i = 0; i < want_.groups_used; ++i) take_best(group_ranks_, want_.groups);
        for (int64_t g = 0; g < want_.groups; ++g) {
            if (group_ranks_[g] != kTaken) std::fill_n(ranks_ + g * size, size, kTaken);
        }
    }

    const cpu::RouteAttributes& want_;
    const int64_t experts_;
    const float* const bias_;
    float p_[kMaxRoutedExperts], scores_[kMaxRoutedExperts];
    int32_t ranks_[kMaxRoutedExperts], group_ranks_[kMaxRoutedExperts];
};

void run_moe_route(const tsr_node& node, const tsr_run& run) noexcept {
    const cpu::View logits = cpu::input(node, run, 0);
    const cpu::View ids = cpu::output(node, run, 0);
    const cpu::View weights = cpu::output(node, run, 1);
    const cpu::RouteAttributes want(node);
    const tsr_range rows = sdk::actual_rows(*logits.tensor, run);
    const cpu::Share part = cpu::share(std::max(0, rows.end - rows.begin), run);
    if (part.begin == part.end) return;
    Router router(want, logits.dim(0), sdk::has_input(node, 1) ? cpu::input(node, run, 1).floats(0) : nullptr);
    const int64_t id_stride = ids.tensor->strides[0] / static_cast<int64_t>(sizeof(int32_t));
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        router.route(logits.floats(r), reinterpret_cast<int32_t*>(ids.row(r)), id_stride, weights.floats(r));
    }
}

}  // namespace

constinit const RowOp kRouting[] = {
    {.op = TSR_OP_MOE_ROUTE, .run = run_row_op<run_moe_route>, .longest = kMaxRoutedExperts}, {}};

}  // namespace tessera::x86
