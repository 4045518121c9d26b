#include "workers.hpp"

#include "wrong.hpp"

#include <tessera/cpp/float_state.hpp>

#include <exception>
#include <stdexcept>
#include <thread>

namespace tessera::conformance {
namespace {

constexpr uint32_t kMaxPieces = 65535;
constexpr uint32_t kNobody = UINT32_MAX;
thread_local uint32_t t_worker = kNobody;

}  // namespace

void Workers::fail_locked(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
}

void Workers::fail(std::string what) {
    const std::scoped_lock lock(mutex_);
    fail_locked(std::move(what));
}

// Only a thread of the team may call its functions, and only as itself.
void Workers::check_worker(uint32_t worker, const char* function) {
    if (worker == t_worker) return;
    fail_locked(std::string(function) + " is called with worker " + std::to_string(worker) + " by " +
                (t_worker == kNobody ? "a thread that is not of the team" : "worker " + std::to_string(t_worker)));
}

// Pieces that nobody takes are results that nobody computes.
void Workers::check_all_taken() {
    if (shared_phase_ != phase_) return;
    uint32_t left = 0;
    for (const Share& share : shares_) left += share.end - share.next;
    if (left > 0) {
        fail_locked(std::to_string(left) + " of " + std::to_string(pieces_) +
                    " pieces are taken by no worker: each asks until it gets UINT32_MAX");
    }
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
        check_all_taken();
        waiting_ = 0;
        ++phase_;
        changed_.notify_all();
    } else if (!ends) {
        const uint64_t phase = phase_;
        changed_.wait(lock, [&] { return phase_ != phase; });
    }
}

void Workers::barrier(void* team, uint32_t worker) {
    auto& self = *static_cast<Workers*>(team);
    {
        const std::scoped_lock lock(self.mutex_);
        self.check_worker(worker, "barrier");
    }
    self.arrive(false);
}

uint32_t Workers::piece(void* team, uint32_t worker, uint32_t count) {
    auto& self = *static_cast<Workers*>(team);
    const std::scoped_lock lock(self.mutex_);
    self.check_worker(worker, "piece");
    if (worker >= self.count_) return UINT32_MAX;
    if (count > kMaxPieces) {
        self.fail_locked("piece is called with a count of " + std::to_string(count) + ", expected at most " +
                         std::to_string(kMaxPieces));
        return UINT32_MAX;
    }
    if (self.shared_phase_ != self.phase_) {
        self.shared_phase_ = self.phase_;
        self.pieces_ = count;
        for (uint64_t i = 0; i < self.count_; ++i) {
            self.shares_[i] = {static_cast<uint32_t>(count * i / self.count_),
                               static_cast<uint32_t>(count * (i + 1) / self.count_)};
        }
    }
    if (count != self.pieces_) {
        self.fail_locked("piece is called with counts of " + std::to_string(self.pieces_) + " and " +
                         std::to_string(count) + " without a barrier between");
    }
    if (self.shares_[worker].is_done) {
        self.fail_locked(
            "a worker calls piece again after UINT32_MAX, without a barrier between: pieces start again with "
            "the next barrier only");
    }
    for (uint32_t i = 0; i < self.count_; ++i) {
        Share& share = self.shares_[(worker + i) % self.count_];
        if (share.next < share.end) return i == 0 ? share.next++ : --share.end;
    }
    self.shares_[worker].is_done = true;
    return UINT32_MAX;
}

void Workers::work(const tsr_kernel& kernel, void* state, tsr_run arguments) {
    t_worker = arguments.worker;
    const sdk::FloatState before = sdk::FloatState::of_this_thread();
    try {
        if (const tsr_status* status = kernel.run(&kernel, state, &arguments)) {
            fail("run failed: " + text_of(status));
        }
    } catch (const std::exception& error) {
        fail("run threw an exception, which a plugin must not: " + std::string(error.what()));
    } catch (...) {
        fail("run threw an exception, which a plugin must not");
    }
    if (const sdk::FloatState after = sdk::FloatState::of_this_thread(); after != before) {
        before.restore();
        fail("run leaves its thread computing differently: " + before.difference(after));
    }
    t_worker = kNobody;
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
    const bool is_cancelled = arguments.cancelled && *arguments.cancelled;
    if (!is_cancelled) check_all_taken();
    if (!failure_.empty()) throw std::runtime_error(failure_);
}

}  // namespace tessera::conformance
