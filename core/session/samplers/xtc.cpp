#include "core/session/samplers/truncation.hpp"

namespace tessera::session {

void drop_top_choices(Candidates& candidates, float threshold, size_t minimum) {
    const double least = static_cast<double>(threshold) * weigh(candidates);
    const Candidate* last = nullptr;
    size_t choices = 0;
    for (const Candidate& one : candidates) {
        if (one.weight < least) continue;
        ++choices;
        if (!last || by_logit(*last, one)) last = &one;
    }
    if (choices < 2 || candidates.size() - (choices - 1) < minimum) return;
    const int32_t kept = last->token;
    std::erase_if(candidates, [&](const Candidate& one) { return one.weight >= least && one.token != kept; });
}

}  // namespace tessera::session
