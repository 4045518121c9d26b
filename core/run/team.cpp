#include "core/run/team.hpp"

#include "core/base/error.hpp"
#include "core/base/seconds.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {
namespace {

// How long a region waits for workers to arrive. Waking a sleeping thread takes some 50 us; the region begins without
// one that is preempted for longer than this.
constexpr auto kPatience = std::chrono::milliseconds(2);
// The same where it can take part in a later call.
constexpr auto kPatienceOfCalls = std::chrono::microseconds(300);

// How long the destructor waits for workers that were requested and have not arrived, if oneTBB has no thread for them.
constexpr auto kShutdownTimeout = std::chrono::seconds(2);

// Spins this often before it yields: on a machine with more threads than cores the awaited thread may need this core.
constexpr uint32_t kSpins = 2000;

std::atomic<uint64_t> teams{0};

void relax() noexcept {
    __builtin_ia32_pause();
}

template <typename Done>
void spin_until(Done&& done) noexcept {
    for (uint32_t spins = 0; !done(); ++spins) {
        if (spins < kSpins) {
            relax();
        } else {
            std::this_thread::yield();
        }
    }
}

// oneTBB starts threads when they are first needed, some of them from its own threads, where a failure would end the
// process. So this checks beforehand whether the system starts that many.
void check_threads(uint32_t others) {
    std::mutex mutex;
    std::vector<std::jthread> started;
    started.reserve(others);
    const std::unique_lock hold(mutex);  // until all have been started; released before they are joined
    const auto wait = [&mutex] { const std::lock_guard here(mutex); };
    try {
        while (started.size() < others) started.emplace_back(wait);
    } catch (const std::system_error& error) {
        fail(TSR_IO_ERROR, Notice(fmt::format("the system starts {} of {} threads ({})", started.size() + 1, others + 1,
                                              error.code().message()),
                                  {{AdviceCode::kFewerThreads, ""}, {AdviceCode::kMoreProcesses, ""}}));
    }
}

}  // namespace

// Lives until every worker that was requested has seen it, the late ones too.
struct Team::Region {
    static constexpr uint32_t kClosed = 1u << 31;

    Region(Team& of, Entry what, void* with, std::shared_ptr<std::atomic<uint32_t>> count)
        : team(of), entry(what), context(with), alive(std::move(count)) {
        alive->fetch_add(1, std::memory_order_relaxed);
    }
    ~Region() { alive->fetch_sub(1, std::memory_order_release); }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    Team& team;
    Entry entry;
    void* context;
    std::shared_ptr<std::atomic<uint32_t>> alive;  // counts regions
    std::atomic<uint32_t> entered{1};  // workers that have arrived (the caller is the first); kClosed: no other may
    std::atomic<uint32_t> workers{0};  // that take part; 0 until the region begins
    std::atomic<uint32_t> finished{0};
};

struct Team::Arena {
    explicit Arena(uint32_t threads)
        : allowed(tbb::global_control::max_allowed_parallelism, threads), workers(static_cast<int>(threads), 1) {}

    tbb::global_control allowed;  // more threads than cores, if the user wants that
    tbb::task_arena workers;
};

// Threads of oneTBB are used by one team after another: each is bound when it first works for a team, and unbound by
// the next one. Those that a bound thread started are as it is, whoever they work for.
void Team::bind_this_thread() {
    thread_local uint64_t team = 0;
    thread_local std::unique_ptr<ThreadBinding> binding;
    if (team == number_) return;
    team = number_;
    binding.reset();
    const auto& cpus = placement_.cpus;
    if (cpus.empty()) return ThreadBinding::free_this_thread();
    const uint32_t place = places_taken_.fetch_add(1, std::memory_order_relaxed) + 1;  // the caller has the first
    binding = std::make_unique<ThreadBinding>(cpus[place % cpus.size()], placement_.memory_nodes);
    if (!binding->done()) placed_ = false;
}

Team::Team(uint32_t threads, NumaPlacement placement)
    : threads_(std::max(threads, 1u)),
      number_(++teams),
      placement_(std::move(placement)),
      arena_(std::make_unique<Arena>(threads_)),
      caller_(placement_.cpus.empty()
                  ? nullptr
                  : std::make_unique<ThreadBinding>(placement_.cpus.front(), placement_.memory_nodes)),
      pieces_(threads_) {
    if (caller_ && !caller_->done()) placed_ = false;
    check_threads(threads_ - 1);
}

// Waits until workers have seen all closed regions, which would remain in the arena otherwise; it takes no time.
Team::~Team() {
    const auto deadline = std::chrono::steady_clock::now() + kShutdownTimeout;
    spin_until(
        [&] { return regions_->load(std::memory_order_acquire) == 0 || std::chrono::steady_clock::now() > deadline; });
    arena_->workers.terminate();
}

void Team::join(const std::shared_ptr<Region>& region) {
    uint32_t inside = region->entered.load(std::memory_order_relaxed);
    do {
        if (inside & Region::kClosed) return;
    } while (!region->entered.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel));
    spin_until([&] {
        const uint32_t workers = region->workers.load(std::memory_order_acquire);
        return workers > inside || (workers != 0 && region->entered.load(std::memory_order_acquire) & Region::kClosed);
    });
    const uint32_t workers = region->workers.load(std::memory_order_acquire);
    if (workers <= inside) return;    // too late: no call was left
    region->team.bind_this_thread();  // alive: the region waits for this worker
    region->team.own_cpus_.join();
    region->entry(region->context, inside, workers);
    region->finished.fetch_add(1, std::memory_order_release);
}

void Team::run_region(uint32_t wanted, bool calls, Entry entry, void* context) {
    const uint32_t limit = wanted == 0 ? threads_ : std::min(wanted, threads_);
    const auto start = std::chrono::steady_clock::now();
    phase_.fetch_add(1, std::memory_order_relaxed);  // a new phase of pieces
    if (limit == 1) {
        begin_barriers(1);
        entry(context, 0, 1);
        region_seconds_ += seconds_since(start);
        return;
    }
    own_cpus_.begin();
    const auto region = std::make_shared<Region>(*this, entry, context, regions_);
    for (uint32_t i = 1; i < limit; ++i) arena_->workers.enqueue([region] { join(region); });

    const auto deadline = std::chrono::steady_clock::now() + (calls ? kPatienceOfCalls : kPatience);
    wait_until([&] {
        return region->entered.load(std::memory_order_acquire) == limit || std::chrono::steady_clock::now() > deadline;
    });
    const uint32_t first = calls ? region->entered.load(std::memory_order_acquire)
                                 : region->entered.fetch_or(Region::kClosed, std::memory_order_acq_rel);
    begin_barriers(first);
    region_ = calls ? region.get() : nullptr;
    region->workers.store(first, std::memory_order_release);
    entry(context, 0, first);
    // Nobody is admitted from here on: this worker has left, or all end with the call that it ended with. Those that
    // were admitted to what would have followed may not know yet, and must before they find the region closed.
    const uint32_t workers = this->workers();
    wait_until([&] { return region->workers.load(std::memory_order_acquire) == workers; });
    region->entered.fetch_or(Region::kClosed, std::memory_order_acq_rel);
    wait_until([&] { return region->finished.load(std::memory_order_acquire) == workers - 1; });
    region_seconds_ += seconds_since(start) * workers;
}

Team::Time Team::take_time() noexcept {
    const double waiting = 1e-9 * static_cast<double>(waiting_nanoseconds_.exchange(0, std::memory_order_relaxed));
    return {std::exchange(region_seconds_, 0), waiting};
}

// As spin_until; counts the time.
template <typename Done>
void Team::wait_until(Done&& done) noexcept {
    if (done()) return;
    const auto start = std::chrono::steady_clock::now();
    spin_until(done);
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start);
    waiting_nanoseconds_.fetch_add(static_cast<uint64_t>(time.count()), std::memory_order_relaxed);
}

// The last worker to arrive releases the others. `ends`: the worker waits at the end of a call.
void Team::arrive(bool ends, bool waits, uint32_t next) noexcept {
    const uint32_t phase = phase_.load(std::memory_order_relaxed);
    const uint32_t mine = ends ? kArrival | kArrivalAtEnd : kArrival;
    const uint32_t arrived = waiting_.fetch_add(mine, std::memory_order_acq_rel) + mine;
    const uint32_t workers = this->workers();
    if (arrived % kArrivalAtEnd == workers) {
        const uint32_t left = left_.load(std::memory_order_relaxed);
        const uint32_t at_end = arrived / kArrivalAtEnd;
        const bool differ = at_end != 0 && at_end != workers - left;
        if (differ || misused_.load(std::memory_order_relaxed)) differed_.store(true, std::memory_order_relaxed);
        open_.store(differ || (at_end == 0 && open_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
        waiting_.store(left * kArrival, std::memory_order_relaxed);
        const bool goes_on = next != kNoCall && at_end == workers && !differed_.load(std::memory_order_relaxed);
        const uint32_t more = goes_on && region_ ? region_->entered.load(std::memory_order_acquire) : workers;
        workers_.store(more, std::memory_order_relaxed);
        next_call_ = next;
        phase_.store(phase + 1, std::memory_order_release);
        // After that, so that they begin in the new phase.
        if (more > workers) region_->workers.store(more, std::memory_order_release);
    } else if (waits) {
        wait_until([&] { return phase_.load(std::memory_order_acquire) != phase; });
    }
}

void Team::barrier() noexcept {
    if (!open_.load(std::memory_order_relaxed)) arrive(false, true, kNoCall);
}

bool Team::end_of_call(uint32_t next) noexcept {
    do {
        arrive(true, true, next);
    } while (open_.load(std::memory_order_relaxed));
    return !differed_.load(std::memory_order_relaxed);
}

void Team::leave() noexcept {
    left_.fetch_add(1, std::memory_order_relaxed);
    arrive(false, false, kNoCall);
}

void Team::begin_barriers(uint32_t workers) noexcept {
    workers_.store(workers, std::memory_order_relaxed);
    next_call_ = 0;
    region_ = nullptr;
    waiting_.store(0, std::memory_order_relaxed);
    left_.store(0, std::memory_order_relaxed);
    open_.store(false, std::memory_order_relaxed);
    differed_.store(false, std::memory_order_relaxed);
    misused_.store(false, std::memory_order_relaxed);
}

uint32_t Team::piece(void* team, uint32_t worker, uint32_t count) noexcept {
    auto& self = *static_cast<Team*>(team);
    if (count > Pieces::kMaximum) {
        self.misused_.store(true, std::memory_order_relaxed);
        return Pieces::kNone;
    }
    return self.pieces_.take(self.phase_.load(std::memory_order_relaxed), worker, self.workers(), count);
}

void Team::barrier(void* team, uint32_t) noexcept {
    static_cast<Team*>(team)->barrier();
}

}  // namespace tessera
