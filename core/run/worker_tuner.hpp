// How many workers take part in steps, by what steps were seen to take.
#pragma once

#include <cstdint>

namespace tessera {

// On a machine that is busy with other work a worker that is not running holds up all others at every barrier, so that
// fewer workers are faster: with one other busy process on two cores, one worker is several times as fast as two.
// Whether that is so is tried: while workers wait for a large part of a step's time, a few steps are taken with fewer
// of them, and now and then some with more again; the faster number is kept. Trials that turn out slower take at most a
// twentieth of the time. Not for several threads at once.
class WorkerTuner {
  public:
    explicit WorkerTuner(uint32_t maximum);

    // Of the next step.
    uint32_t workers() const noexcept { return trial_ ? trial_ : workers_; }

    // A step of workers() took `seconds` for `work`, in units of which a step's time is a multiple; `waiting`: the
    // share of the workers' time, 0 to 1, in which they waited for others.
    void finished(double seconds, double work, double waiting) noexcept;

  private:
    void decide() noexcept;
    void end_trial() noexcept;

    uint32_t maximum_;
    uint32_t workers_;    // the fastest number known
    uint32_t trial_ = 0;  // being tried; 0: none
    bool fewer_next_ = true;
    double cost_ = 0;     // seconds for a unit of work with workers_: a moving average; 0: not known
    double waiting_ = 0;  // likewise
    uint32_t steps_ = 0;  // since the last trial
    uint32_t trial_steps_ = 0;
    double trial_cost_ = 0, trial_seconds_ = 0, trial_work_ = 0;
    double quiet_ = 0;  // seconds of steps until the next trial
    double pause_;      // after a trial that was not faster
};

}  // namespace tessera
