#include "executor.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace tessera::cuda::emulator {
namespace {

namespace context = boost::context::detail;

constexpr size_t kFreePages = 16384;  // 256 MB of cells are kept
constexpr uint64_t kStackMark = 0x5A5EC7EDB10C4A57;

// Kept for the life of the thread, since stacks are expensive to make.
thread_local std::unique_ptr<Executor> executor_of_thread;

std::string index_text(uint32_t x, uint32_t y, uint32_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

bool same(const Site& a, const Site& b) {
    const auto equal = [](const char* x, const char* y) { return x == y || std::strcmp(x, y) == 0; };
    return a.line == b.line && equal(a.file, b.file) && equal(a.operation, b.operation);
}

uint8_t* map(uint64_t bytes) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<uint8_t*>(memory);
}

}  // namespace

constinit thread_local Executor* running __attribute__((tls_model("initial-exec"))) = nullptr;

std::string site_text(const Site& site) {
    const char* const slash = std::strrchr(site.file, '/');
    return std::string(site.operation) + " (" + (slash ? slash + 1 : site.file) + ":" + std::to_string(site.line) + ")";
}

Outcome run(const Launch& launch, const Options& options) {
    if (!executor_of_thread) executor_of_thread = std::make_unique<Executor>();
    return executor_of_thread->run(launch, options);
}

Executor::Executor() : stacks_(map(kStackStride * (kMaximumThreads + 1))), shared_memory_(map(kSharedBytes)) {
    shared_cells_.resize(kSharedBytes / 4);
    fibers_.resize(kMaximumThreads);
    for (uint32_t i = 0; i < kMaximumThreads; ++i)
        fibers_[i].stack_low = reinterpret_cast<uintptr_t>(stacks_ + (i + 1) * kStackStride);
    shared_begin_ = reinterpret_cast<uintptr_t>(shared_memory_);
}

Executor::~Executor() {
    munmap(stacks_, kStackStride * (kMaximumThreads + 1));
    munmap(shared_memory_, kSharedBytes);
}

Outcome Executor::run(const Launch& launch, const Options& options) {
    launch_ = &launch;
    options_ = options;
    outcome_ = {};
    outcome_.counters.launches = 1;
    random_ = Random(options.seed);
    clocks_.begin_launch();
    counting_.begin(options.count);
    std::fill(shared_cells_.begin(), shared_cells_.end(), Cell{});
    threads_ = launch.block[0] * launch.block[1] * launch.block[2];

    const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    if (threads_ == 0 || threads_ > kMaximumThreads || blocks == 0) {
        outcome_.fault = Fault::kLaunchFailed;
        outcome_.report =
            "a launch of " + std::to_string(blocks) + " blocks of " + std::to_string(threads_) + " threads";
        return std::move(outcome_);
    }
    BlockOrder order(blocks, options.ordered, random_);
    running = this;
    for (uint64_t i = 0; i < blocks && outcome_.fault == Fault::kNone; ++i) run_block(order.next());
    running = nullptr;
    if (options.collect && outcome_.fault == Fault::kNone) collect();

    for (auto& page : used_pages_) {
        if (free_pages_.size() < kFreePages) free_pages_.push_back(std::move(page));
    }
    used_pages_.clear();
    pages_.clear();
    recent_pages_.fill({});
    released_.clear();
    block_clocks_.clear();
    block_numbers_.clear();
    pool_.clear();
    return std::move(outcome_);
}

void Executor::run_block(uint64_t block) {
    const uint32_t warps = (threads_ + 31) / 32;
    outcome_.counters.blocks += 1;
    block_index_[0] = static_cast<uint32_t>(block % launch_->grid[0]);
    block_index_[1] = static_cast<uint32_t>(block / launch_->grid[0] % launch_->grid[1]);
    block_index_[2] = static_cast<uint32_t>(block / launch_->grid[0] / launch_->grid[1]);
    clocks_.begin_block(warps);
    block_clocks_.push_back(clocks_.block_first);
    block_numbers_.push_back(block);
    fenced_ = false;
    acquiring_.clear();
    acquired_.clear();
    barriers_.fill({});

    // Dynamic memory first, then static arrays as they are asked for.
    dynamic_ = shared_memory_ + kRedZone;
    shared_span_ = kRedZone + (launch_->dynamic_shared + 15) / 16 * 16 + kRedZone;
    std::memset(dynamic_, 0xFF, launch_->dynamic_shared);
    static_bytes_ = 0;
    statics_.clear();

    alive_ = threads_;
    steps_ = 0;
    ready_warps_ = 0;
    for (uint32_t w = 0; w < warps; ++w) {
        Warp& warp = warps_[w];
        warp = {};
        warp.population = threads_ - w * 32 >= 32 ? ~0u : (1u << (threads_ - w * 32)) - 1;
        warp.alive = warp.ready = warp.population;
        ready_warps_ |= 1u << w;
    }
    for (uint32_t i = 0; i < threads_; ++i) {
        Fiber& fiber = fibers_[i];
        fiber.done = false;
        fiber.open.clear();
        fiber.groups.clear();
        fiber.position.thread[0] = i % launch_->block[0];
        fiber.position.thread[1] = i / launch_->block[0] % launch_->block[1];
        fiber.position.thread[2] = i / launch_->block[0] / launch_->block[1];
        fiber.position.lane = i % 32;
        fiber.position.warp = i / 32;
        fiber.position.block = block_index_;
        fiber.position.block_size = launch_->block;
        fiber.position.grid_size = launch_->grid;
        fiber.position.arch = launch_->arch;
        *reinterpret_cast<uint64_t*>(fiber.stack_low) = kStackMark;
        fiber.context = context::make_fcontext(reinterpret_cast<void*>(fiber.stack_low + kStackBytes), kStackBytes - 64,
                                               &Executor::enter);
    }
    fiber_ = &home_;
    switch_to(choose());
    if (outcome_.fault == Fault::kNone) {
        for (uint32_t w = 0; w < warps; ++w) counting_.flush(w, outcome_.counters);
    }
}

void Executor::enter(context::transfer_t from) {
    static_cast<Fiber*>(from.data)->context = from.fctx;
    Executor& self = *running;
    self.launch_->kernel->run(self.launch_->parameters);
    self.finish();
}

void Executor::switch_to(Fiber* next) {
    Fiber* const self = fiber_;
    fiber_ = next;
    stack_low_ = next->stack_low;
    const context::transfer_t from = context::jump_fcontext(next->context, self);
    static_cast<Fiber*>(from.data)->context = from.fctx;
}

// The next lane that can run: of the same warp the one after the running lane, else a random one of a random warp. Null
// if none can.
Fiber* Executor::choose() {
    if (ready_warps_ == 0) return nullptr;
    const bool goes_on = fiber_ != &home_ && warps_[fiber_->position.warp].ready != 0;
    uint32_t warp = 0, from = 0;
    if (goes_on) {
        warp = fiber_->position.warp;
        from = warps_[warp].first ? warps_[warp].first - 1 : fiber_->position.lane + 1;
    } else {
        const uint32_t drawn = options_.ordered ? 0 : random_();
        warp = nth_bit(ready_warps_, drawn % static_cast<uint32_t>(std::popcount(ready_warps_)));
        from = drawn >> 27;
    }
    warps_[warp].first = 0;
    const uint32_t ready = std::rotr(warps_[warp].ready, static_cast<int>(from % 32));
    return &fibers_[warp * 32 + (from + static_cast<uint32_t>(std::countr_zero(ready))) % 32];
}

// The running lane cannot go on.
void Executor::yield() {
    Fiber* const next = choose();
    if (!next) {
        fail(Fault::kLaunchFailed, "deadlock: " + who_waits());
        leave();
    }
    outcome_.counters.switches += 1;
    if (++steps_ > options_.patience) check_patience();
    if (next != fiber_) switch_to(next);
}

void Executor::check_patience() {
    fail(Fault::kTimeout, "the block has made " + std::to_string(steps_) +
                              " accesses and changes of threads without coming to its end: it waits for what no other "
                              "thread or block does; " +
                              who_waits());
    leave();
}

void Executor::make_ready(uint32_t w) {
    Warp& warp = warps_[w];
    warp.arrived = 0;
    warp.wait = Wait::kNothing;
    warp.blocked = false;
    warp.ready = warp.alive;
    warp.first = options_.ordered ? 1 : 1 + random_() % 32;
    if (warp.ready) ready_warps_ |= 1u << w;
}

// The lane has reached an operation of its warp; the last one to come completes it.
void Executor::arrive(Wait wait, WarpOperation operation, void* arguments, const Site& site) {
    Fiber& fiber = *fiber_;
    const uint32_t w = fiber.position.warp, bit = 1u << fiber.position.lane;
    Warp& warp = warps_[w];
    if (*reinterpret_cast<const uint64_t*>(fiber.stack_low) != kStackMark) {
        fail(Fault::kIllegalAddress,
             "the thread uses more than " + std::to_string(kStackBytes >> 10) + " KB of local memory");
        leave();
    }
    if (warp.arrived == 0) {
        warp.wait = wait;
        warp.operation = operation;
        warp.site = site;
    } else if (warp.wait != wait || warp.operation != operation || !same(warp.site, site)) {
        {
            fail(Fault::kLaunchFailed, "lanes of a warp have not converged: this one is in " + site_text(site) +
                                           ", lane " + std::to_string(std::countr_zero(warp.arrived)) + " waits in " +
                                           site_text(warp.site));
            leave();
        }
    }
    if (warp.alive != warp.population) {
        fail(Fault::kLaunchFailed, site_text(site) + " needs all lanes of the warp; lane " +
                                       std::to_string(std::countr_zero(warp.population & ~warp.alive)) +
                                       " has ended before");
        leave();
    }
    fiber.arguments = arguments;
    warp.arrived |= bit;
    warp.ready &= ~bit;
    if (warp.ready == 0) ready_warps_ &= ~(1u << w);
    if (warp.arrived == warp.alive) complete(w);
    yield();
}

// All lanes of the warp have arrived.
void Executor::complete(uint32_t w) {
    Warp& warp = warps_[w];
    counting_.flush(w, outcome_.counters);
    switch (warp.wait) {
        case Wait::kWarp:
            operate(w);
            clocks_.advance(w);
            return make_ready(w);
        case Wait::kBlock:
            warp.blocked = true;
            return check_block_barrier();
        case Wait::kNamed:
        case Wait::kArrive: {
            Barrier& barrier = barriers_[warp.barrier];
            if (barrier.arrived != 0 && barrier.expected != warp.barrier_threads) {
                fail(Fault::kLaunchFailed, site_text(warp.site) + " expects " + std::to_string(warp.barrier_threads) +
                                               " threads at barrier " + std::to_string(warp.barrier) +
                                               ", others there expect " + std::to_string(barrier.expected));
                leave();
            }
            if (barrier.arrivers >> w & 1) {
                fail(Fault::kLaunchFailed,
                     site_text(warp.site) + ": the warp comes to barrier " + std::to_string(warp.barrier) +
                         " again before the others have come once: " + std::to_string(barrier.arrived) + " of " +
                         std::to_string(barrier.expected) + " threads");
                leave();
            }
            barrier.arrivers |= 1u << w;
            barrier.expected = warp.barrier_threads;
            barrier.arrived += 32;
            clocks_.advance(w);
            for (uint32_t v = 0; v < clocks_.warps; ++v)
                barrier.joined[v] = std::max(barrier.joined[v], clocks_.known[w][v]);
            const bool waits = warp.wait == Wait::kNamed;
            if (waits) {
                barrier.waiting |= 1u << w;
                warp.blocked = true;
            } else {
                make_ready(w);
            }
            if (barrier.arrived > barrier.expected) {
                fail(Fault::kLaunchFailed, "more threads arrive at barrier " + std::to_string(warp.barrier) +
                                               " than the " + std::to_string(barrier.expected) + " that it expects");
                leave();
            }
            if (barrier.arrived == barrier.expected) release_barrier(barrier);
            return;
        }
        case Wait::kNothing:
            return;
    }
}

void Executor::release_barrier(Barrier& barrier) {
    for (uint32_t w = 0; w < clocks_.warps; ++w) {
        if (!(barrier.waiting >> w & 1)) continue;
        for (uint32_t v = 0; v < clocks_.warps; ++v)
            clocks_.known[w][v] = std::max(clocks_.known[w][v], barrier.joined[v]);
        make_ready(w);
    }
    barrier = {};
}

// Whether all threads that have not ended wait in sync_block; if so, they go on.
void Executor::check_block_barrier() {
    const uint32_t warps = clocks_.warps;
    const Warp* first = nullptr;
    for (uint32_t w = 0; w < warps; ++w) {
        const Warp& warp = warps_[w];
        if (warp.alive == 0) continue;
        if (warp.wait != Wait::kBlock || !warp.blocked) return;
        if (!first) first = &warp;
        if (!same(warp.site, first->site)) {
            fail(Fault::kLaunchFailed, "warps meet at different barriers of the block: " + who_waits());
            leave();
        }
    }
    std::array<uint32_t, kMaximumWarps> joined{};
    for (uint32_t w = 0; w < warps; ++w) {
        clocks_.advance(w);
        for (uint32_t v = 0; v < warps; ++v) joined[v] = std::max(joined[v], clocks_.known[w][v]);
    }
    for (uint32_t w = 0; w < warps; ++w) {
        std::copy_n(joined.begin(), warps, clocks_.known[w].begin());
        if (warps_[w].alive) make_ready(w);
    }
}

// The kernel has returned in the running lane.
void Executor::finish() {
    Fiber& fiber = *fiber_;
    const uint32_t w = fiber.position.warp, bit = 1u << fiber.position.lane;
    Warp& warp = warps_[w];
    if (*reinterpret_cast<const uint64_t*>(fiber.stack_low) != kStackMark) {
        fail(Fault::kIllegalAddress,
             "the thread uses more than " + std::to_string(kStackBytes >> 10) + " KB of local memory");
        leave();
    }
    fiber.done = true;
    --alive_;
    warp.alive &= ~bit;
    warp.ready &= ~bit;
    if (warp.ready == 0) ready_warps_ &= ~(1u << w);
    if (warp.arrived != 0) {
        fail(Fault::kLaunchFailed, "the thread ends while lane " + std::to_string(std::countr_zero(warp.arrived)) +
                                       " waits for it in " + site_text(warp.site));
        leave();
    }
    if (warp.alive == 0 && alive_ != 0) check_block_barrier();
    Fiber* const next = choose();
    if (!next && alive_ != 0) {
        fail(Fault::kLaunchFailed, "deadlock: " + who_waits());
        leave();
    }
    outcome_.counters.switches += 1;
    switch_to(next ? next : &home_);
    __builtin_unreachable();
}

void Executor::warp(WarpOperation operation, void* arguments, const Site& site) {
    if (operation == WarpOperation::kLdmatrix)
        check_matrix_row(static_cast<const simt::emulated::Ldmatrix*>(arguments)->row, site);
    arrive(Wait::kWarp, operation, arguments, site);
}

void Executor::sync_block(const Site& site) {
    arrive(Wait::kBlock, WarpOperation::kSync, nullptr, site);
}

void Executor::named_barrier(uint32_t id, uint32_t threads, bool waits, const Site& site) {
    if (id >= barriers_.size() || threads == 0 || threads % 32 != 0) {
        fail(Fault::kLaunchFailed, site_text(site) + ": barriers are 0 to 15 and of whole warps, not " +
                                       std::to_string(id) + " of " + std::to_string(threads) + " threads");
        leave();
    }
    Warp& warp = warps_[fiber_->position.warp];
    if (warp.arrived != 0 && (warp.barrier != id || warp.barrier_threads != threads)) {
        fail(Fault::kLaunchFailed, site_text(site) + ": lanes of a warp come to different barriers, " +
                                       std::to_string(warp.barrier) + " and " + std::to_string(id));
        leave();
    }
    warp.barrier = id;
    warp.barrier_threads = threads;
    arrive(waits ? Wait::kNamed : Wait::kArrive, WarpOperation::kSync, nullptr, site);
}

void* Executor::shared(const void* key, uint64_t bytes, uint64_t alignment) {
    for (const StaticArray& array : statics_) {
        if (array.key == key) return shared_memory_ + array.offset;
    }
    const uint64_t offset = (shared_span_ + alignment - 1) / alignment * alignment;
    static_bytes_ += bytes;
    if (bytes > kSharedBytes || static_bytes_ + launch_->dynamic_shared > launch_->shared_limit ||
        offset + bytes + kRedZone > kSharedBytes) {
        fail(Fault::kLaunchFailed,
             std::to_string(static_bytes_) + " bytes of static and " + std::to_string(launch_->dynamic_shared) +
                 " bytes of dynamic shared memory; the limit is " + std::to_string(launch_->shared_limit));
        leave();
    }
    std::memset(shared_memory_ + offset, 0xFF, bytes);
    statics_.push_back({key, offset, bytes});
    shared_span_ = offset + bytes + kRedZone;
    return shared_memory_ + offset;
}

std::string Executor::thread_name(uint32_t thread) const {
    const auto& t = fibers_[thread].position.thread;
    return "thread " + index_text(t[0], t[1], t[2]);
}

std::string Executor::block_name(uint64_t block) const {
    return "block " + index_text(static_cast<uint32_t>(block % launch_->grid[0]),
                                 static_cast<uint32_t>(block / launch_->grid[0] % launch_->grid[1]),
                                 static_cast<uint32_t>(block / launch_->grid[0] / launch_->grid[1]));
}

// "warp 0 (32 lanes) waits in sync_block (x.cu:12); warp 1 ..."
std::string Executor::who_waits() const {
    std::string text;
    for (uint32_t w = 0; w < clocks_.warps; ++w) {
        const Warp& warp = warps_[w];
        if (warp.alive == 0) continue;
        text += (text.empty() ? "warp " : "; warp ") + std::to_string(w);
        if (warp.arrived == 0) {
            text += " runs";
            continue;
        }
        text += " (" + std::to_string(std::popcount(warp.arrived)) + " of " +
                std::to_string(std::popcount(warp.alive)) + " lanes) waits in " + site_text(warp.site);
        if (warp.wait == Wait::kNamed) {
            const Barrier& barrier = barriers_[warp.barrier];
            text += ", barrier " + std::to_string(warp.barrier) + ": " + std::to_string(barrier.arrived) + " of " +
                    std::to_string(barrier.expected) + " threads";
        }
    }
    return text;
}

void Executor::fail(Fault fault, const std::string& text) {
    outcome_.fault = fault;
    outcome_.report = std::string("kernel ") + launch_->kernel->name;
    if (fiber_ != &home_)
        outcome_.report += ", " + block_name(block_numbers_.back()) + ", " +
                           thread_name(static_cast<uint32_t>(fiber_ - fibers_.data()));
    outcome_.report += ": " + text;
}

void Executor::leave() {
    switch_to(&home_);
    __builtin_unreachable();
}

}  // namespace tessera::cuda::emulator
