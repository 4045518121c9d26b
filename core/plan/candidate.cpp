#include "core/plan/candidate.hpp"

#include <algorithm>

namespace tessera {
namespace {

// A gain that estimates cannot tell from nothing is not worth another arrangement.
constexpr double kWorthwhile = 0.995;

using Figures = std::array<double, 4>;

double regret(const Figures& figures, const Figures& least) {
    double slowest = 1;
    for (size_t i = 0; i < least.size(); ++i) {
        if (least[i] > 0) slowest = std::max(slowest, figures[i] / least[i]);
    }
    return slowest;
}

}  // namespace

bool Candidate::better_than(const Candidate& other) const {
    if (device_excess != other.device_excess) return device_excess < other.device_excess;
    if (excess != other.excess) return excess < other.excess;
    return use.seconds() < kWorthwhile * other.use.seconds();
}

const Placement* Best::steadiest() const {
    if (!fits()) return nullptr;
    constexpr double kNearly = 1.1;
    const double limit = kNearly * best_->use.seconds();
    const auto is_near = [&](const Noted& noted) { return noted.use.seconds() <= limit; };
    Figures least = best_->use.figures();
    for (const Noted& noted : fitting_) {
        if (!is_near(noted)) continue;
        for (size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], noted.use.figures()[i]);
    }
    double slowest = regret(best_->use.figures(), least);
    const Placement* found = nullptr;
    for (const Noted& noted : fitting_) {
        if (!is_near(noted)) continue;
        const double ratio = regret(noted.use.figures(), least);
        if (ratio >= kWorthwhile * slowest) continue;
        slowest = ratio;
        found = &noted.placement;
    }
    return found;
}

}  // namespace tessera
