#include "core/run/worker_tuner.hpp"

#include <algorithm>

namespace tessera {
namespace {

constexpr double kMuchWaiting = 0.3;
constexpr double kFaster = 0.95;  // of the time, to be worth a change
constexpr double kOfAverage = 0.25;
constexpr uint32_t kStepsBefore = 3;  // until an average is relied on
constexpr uint32_t kTrialSteps = 3;
constexpr double kLongTrial = 0.5;  // seconds that a trial may take, if its first step has not taken more
constexpr double kShortPause = 0.05, kLongPause = 2;
constexpr double kCostOfTrials = 20;  // seconds between trials for each that the last one has cost

}  // namespace

WorkerTuner::WorkerTuner(uint32_t maximum) : maximum_(std::max(maximum, 1u)), workers_(maximum_), pause_(kShortPause) {}

void WorkerTuner::finished(double seconds, double work, double waiting) noexcept {
    if (maximum_ == 1 || !(seconds > 0) || !(work > 0)) return;
    if (trial_) {
        ++trial_steps_;
        trial_seconds_ += seconds;
        trial_work_ += work;
        // A trial that is clearly slower ends at once.
        const bool slower = trial_seconds_ > 2 * cost_ * trial_work_;
        if (trial_steps_ == kTrialSteps || trial_seconds_ >= kLongTrial || slower) end_trial();
        return;
    }
    const double cost = seconds / work;
    cost_ = steps_ == 0 && cost_ == 0 ? cost : cost_ + kOfAverage * (cost - cost_);
    waiting_ += kOfAverage * (std::clamp(waiting, 0.0, 1.0) - waiting_);
    quiet_ -= seconds;
    if (++steps_ >= kStepsBefore && quiet_ <= 0) decide();
}

void WorkerTuner::decide() noexcept {
    const bool fewer = workers_ > 1 && waiting_ > kMuchWaiting;
    const bool more = workers_ < maximum_;
    if (!fewer && !more) return;
    const bool down = fewer && (!more || fewer_next_);
    fewer_next_ = !down;
    trial_ = down ? std::max(workers_ * 3 / 4, 1u) : std::min(workers_ + std::max(workers_ / 3, 1u), maximum_);
    trial_steps_ = 0;
    trial_seconds_ = trial_work_ = 0;
}

void WorkerTuner::end_trial() noexcept {
    trial_cost_ = trial_seconds_ / trial_work_;
    steps_ = 0;
    if (trial_cost_ < kFaster * cost_) {
        fewer_next_ = trial_ < workers_;  // go on in this direction
        workers_ = trial_;
        cost_ = trial_cost_;
        pause_ = kShortPause;
        quiet_ = 0;
    } else {
        const double lost = trial_seconds_ - cost_ * trial_work_;
        pause_ = std::min(2 * pause_, kLongPause);
        quiet_ = std::max(pause_, kCostOfTrials * lost);
    }
    trial_ = 0;
}

}  // namespace tessera
