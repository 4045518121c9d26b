#include "core/session/samplers/mirostat.hpp"

#include "core/session/sampling_math.hpp"

#include <array>
#include <functional>

namespace tessera::session {

Mirostat::Mirostat(int version, float target, float rate, size_t vocabulary_size)
    : version_(version),
      target_(static_cast<double>(target)),
      rate_(static_cast<double>(rate)),
      vocabulary_size_(static_cast<double>(vocabulary_size)) {
    reset();
}

void Mirostat::reset() noexcept {
    bound_ = 2.0 * target_;
}

double Mirostat::truncate(Candidates& candidates) {
    if (version_ == 1) {
        keep_by_rank(candidates);
    } else {
        keep_by_surprise(candidates);
    }
    return weigh(candidates);
}

void Mirostat::keep_by_rank(Candidates& candidates) const {
    if (candidates.size() == 1) return;
    // Candidates stay in their order: what sorting a part leaves behind depends on the library.
    std::array<float, 100> best;
    size_t ranks = 0;
    for (const Candidate& one : candidates) {
        if (ranks == best.size()) {
            if (!(one.logit > best.front())) continue;
            std::ranges::pop_heap(best, std::greater());
            best.back() = one.logit;
        } else {
            best[ranks++] = one.logit;
            if (ranks < best.size()) continue;
            std::ranges::make_heap(best, std::greater());
            continue;
        }
        std::ranges::push_heap(best, std::greater());
    }
    std::ranges::sort(best.begin(), best.begin() + static_cast<ptrdiff_t>(ranks), std::greater());
    double products = 0.0, squares = 0.0;
    for (size_t i = 0; i + 1 < ranks; ++i) {
        const double rank = logarithm(static_cast<double>(i + 2) / static_cast<double>(i + 1));
        products += rank * (static_cast<double>(best[i]) - static_cast<double>(best[i + 1]));
        squares += rank * rank;
    }
    const double exponent = products / squares;
    const double epsilon = exponent - 1.0;
    // k = (epsilon 2^bound / (1 - N^-epsilon))^(1 / exponent), by logarithms. epsilon / (1 - N^-epsilon) is positive
    // whatever the sign of epsilon, and 1 / log N where it is 0.
    const double log_size = logarithm(vocabulary_size_);
    const double scaled = epsilon * log_size;
    double log_ratio = 0.0;
    if (scaled > 1e-8) {
        log_ratio = logarithm(epsilon) - logarithm(1.0 - exp_of_negative(-scaled));
    } else if (scaled < -1e-8) {
        // |epsilon| / (N^|epsilon| - 1)
        log_ratio = logarithm(-epsilon) + scaled - logarithm(1.0 - exp_of_negative(scaled));
    } else if (log_size > 0.0) {
        log_ratio = -logarithm(log_size);
    }
    const double log_count = log_ratio + bound_ * kLn2;
    const double log_all = logarithm(static_cast<double>(candidates.size()));
    if (log_count <= 0.0) return keep_best(candidates, 1);
    if (log_count >= log_all * exponent) return;
    keep_best(candidates, std::max(size_t{1}, static_cast<size_t>(1.0 / exp_of_negative(-log_count / exponent))));
}

void Mirostat::keep_by_surprise(Candidates& candidates) const {
    const double total = weigh(candidates);
    const auto best = static_cast<double>(best_logit(candidates));
    const double least = logarithm(total) - bound_ * kLn2;
    if (!(least <= 0.0)) return keep_best(candidates, 1);
    std::erase_if(candidates, [&](const Candidate& one) { return static_cast<double>(one.logit) - best < least; });
}

void Mirostat::accept(double probability) noexcept {
    bound_ -= rate_ * (-logarithm(probability) / kLn2 - target_);
}

}  // namespace tessera::session
