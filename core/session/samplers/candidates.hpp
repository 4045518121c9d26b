// The tokens that a draw is made from, and what steps do to them. Every function leaves at least one candidate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tessera::session {

struct Candidate {
    int32_t token;
    float logit;    // finite
    double weight;  // share of the probability times a factor common to all
};

// Not empty, no token twice.
using Candidates = std::vector<Candidate>;

// A total order, so that ties do not depend on how the library sorts.
inline bool by_logit(const Candidate& a, const Candidate& b) noexcept {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Extreme penalties, biases and temperatures may overflow; weights need finite logits.
inline float finite(float logit) noexcept {
    return std::clamp(logit, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
}

float best_logit(const Candidates& candidates) noexcept;

// Fills in weights, the best having 1; returns their sum.
double weigh(Candidates& candidates) noexcept;

// Keeps the `count` best, best first; all as they are if there are no more.
void keep_best(Candidates& candidates, size_t count);

// Keeps the fewest first candidates, in the order of `better`, whose weights reach `target`, and at least `minimum`.
template <typename Better>
void keep_until(Candidates& candidates, double target, size_t minimum, Better better) {
    // The head is almost always short, so it is sorted in growing portions instead of sorting the whole vocabulary.
    size_t sorted = 0;
    size_t portion = 128;
    double sum = 0.0;
    const auto at = [&](size_t i) { return candidates.begin() + static_cast<ptrdiff_t>(i); };
    while (sorted < candidates.size()) {
        const size_t end = std::min(candidates.size(), sorted + portion);
        if (end < candidates.size()) std::nth_element(at(sorted), at(end), candidates.end(), better);
        std::sort(at(sorted), at(end), better);
        for (; sorted < end; ++sorted) {
            sum += candidates[sorted].weight;
            if (sum >= target && sorted + 1 >= minimum) {
                candidates.resize(sorted + 1);
                return;
            }
        }
        portion *= 4;
    }
}

}  // namespace tessera::session
