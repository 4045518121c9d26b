#include "workers.hpp"

#include <exception>
#include <stdexcept>
#include <thread>

namespace tessera::conformance {

void Workers::fail(std::string what) {
    const std::scoped_lock lock(mutex_);
    if (failure_.empty()) failure_ = std::move(what);
}

// Where some wait inside the kernel and the rest has returned from it, nobody can go on: all are let go.
void Workers::arrive(bool ends) {
    std::unique_lock lock(mutex_);
    if (ends) {
        ++ended_;
    } else {
        if (open_) return;
        ++waiting_;
    }
    if (waiting_ + ended_ == count_ && waiting_ > 0) {
        if (ended_ > 0) {
            open_ = true;
            if (failure_.empty()) {
                failure_ = std::to_string(waiting_) + " of " + std::to_string(count_) +
                           " workers wait at a barrier that the others did not pass";
            }
        }
        waiting_ = 0;
        ++phase_;
        changed_.notify_all();
    } else if (!ends) {
        const uint64_t phase = phase_;
        changed_.wait(lock, [&] { return phase_ != phase; });
    }
}

void Workers::barrier(void* team, uint32_t) {
    static_cast<Workers*>(team)->arrive(false);
}

uint32_t Workers::piece(void* team, uint32_t worker, uint32_t count) {
    auto& self = *static_cast<Workers*>(team);
    const std::scoped_lock lock(self.mutex_);
    if (self.shared_phase_ != self.phase_) {
        self.shared_phase_ = self.phase_;
        for (uint64_t i = 0; i < self.count_; ++i) {
            self.shares_[i] = {static_cast<uint32_t>(count * i / self.count_),
                               static_cast<uint32_t>(count * (i + 1) / self.count_)};
        }
    }
    for (uint32_t i = 0; i < self.count_; ++i) {
        Share& share = self.shares_[(worker + i) % self.count_];
        if (share.next < share.end) return i == 0 ? share.next++ : --share.end;
    }
    return UINT32_MAX;
}

void Workers::work(const tsr_kernel& kernel, void* state, tsr_run arguments) {
    try {
        if (const tsr_status* status = kernel.run(&kernel, state, &arguments)) {
            fail("run failed: " + std::string(status->message ? status->message : "no message"));
            if (status->destroy) status->destroy(status);
        }
    } catch (const std::exception& error) {
        fail("run threw an exception, which a plugin must not: " + std::string(error.what()));
    } catch (...) {
        fail("run threw an exception, which a plugin must not");
    }
    arrive(true);
}

void Workers::run(const tsr_kernel& kernel, void* state, const tsr_run& arguments, bool hand_out) {
    tsr_run run = arguments;
    run.workers = count_;
    run.team = this;
    run.barrier = barrier;
    run.piece = hand_out ? piece : nullptr;
    ended_ = waiting_ = 0;
    ++phase_;
    open_ = false;
    failure_.clear();
    std::vector<std::thread> threads;
    for (run.worker = 1; run.worker < count_; ++run.worker)
        threads.emplace_back([this, &kernel, state, run] { work(kernel, state, run); });
    run.worker = 0;
    work(kernel, state, run);
    for (std::thread& thread : threads) thread.join();
    if (!failure_.empty()) throw std::runtime_error(failure_);
}

}  // namespace tessera::conformance
