// One launch being executed: fibers, barriers, memory of the block. One of each thread that launches.
#pragma once

#include "counting.hpp"
#include "emulator.hpp"
#include "order.hpp"
#include "shadow.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tessera::cuda::emulator {

using simt::emulated::Site;
using simt::emulated::WarpOperation;

// What a lane can wait in.
enum class Wait : uint8_t { kNothing, kWarp, kBlock, kNamed, kArrive };

struct AsyncCopy {
    uint8_t* to;
    const uint8_t* from;
    uint32_t bytes;
    Site site;
    bool landed;
};

struct Fiber {
    boost::context::detail::fcontext_t context = nullptr;
    simt::emulated::Position position{};
    uintptr_t stack_low = 0;
    void* arguments = nullptr;  // of the warp-wide operation that it waits in
    bool done = false;
    std::vector<AsyncCopy> open;                 // not committed
    std::vector<std::vector<AsyncCopy>> groups;  // committed, not waited for; oldest first
};

struct Warp {
    uint32_t population = 0;  // lanes that there are
    uint32_t alive = 0;       // that have not ended
    uint32_t ready = 0;       // that can run
    uint32_t arrived = 0;     // that wait in `wait`
    uint32_t first = 0;       // 1 + the lane to go on with; 0: the next one
    Wait wait = Wait::kNothing;
    bool blocked = false;  // all arrived; waits for other warps
    WarpOperation operation{};
    uint32_t barrier = 0, barrier_threads = 0;
    Site site{};
};

struct Barrier {
    uint32_t arrived = 0;   // threads
    uint32_t expected = 0;  // threads
    uint32_t waiting = 0;   // bit w: warp w waits in it
    uint32_t arrivers = 0;  // bit w: warp w has come to it
    std::array<uint32_t, kMaximumWarps> joined{};
};

// Of a thread's local memory. The distance between stacks is no multiple of a page, so that their upper ends, which are
// in use, do not compete for the same lines of the processor's caches.
inline constexpr uint64_t kStackBytes = 128 << 10;
inline constexpr uint64_t kStackStride = kStackBytes + 17 * 64;
// The largest card has 228 KB; arrays have red zones around them.
inline constexpr uint64_t kSharedBytes = 512 << 10;
inline constexpr uint64_t kRedZone = 256;

// "sync_block (x.cu:12)"
std::string site_text(const Site& site);

class Executor {
  public:
    Executor();
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    Outcome run(const Launch& launch, const Options& options);

    // That of the calling thread while it executes a kernel; else null.
    static Executor* current() noexcept;  // inline: called at every load and store

    // What kernels call; each may end the launch, in which case it does not return.
    void access(uintptr_t address, uint64_t bytes, uint32_t kind, const void* pc) {
        if (address - stack_low_ >= kStackBytes) check(address, bytes, kind, pc, true);
    }
    void copy(void* to, const void* from, uint64_t bytes, const void* pc);
    void fill(void* to, int value, uint64_t bytes, const void* pc);
    void atomic(uintptr_t address, uint64_t bytes, int order, const void* pc);
    void fence(bool device);
    void* shared(const void* key, uint64_t bytes, uint64_t alignment);
    void* dynamic_shared() const noexcept { return dynamic_; }
    void warp(WarpOperation operation, void* arguments, const Site& site);
    void sync_block(const Site& site);
    void named_barrier(uint32_t id, uint32_t threads, bool waits, const Site& site);
    void copy_async(void* to, const void* from, uint32_t bytes, const Site& site);
    void copy_async_commit();
    void copy_async_wait(uint32_t groups);
    const simt::emulated::Position* position() const noexcept { return &fiber_->position; }

  private:
    struct StaticArray {
        const void* key;
        uint64_t offset, bytes;
    };
    // 4096 bytes of global memory.
    struct Page {
        uintptr_t number = 0;
        Cell* cells = nullptr;              // null until something else than read-only loads needs them
        const Range* range = nullptr;       // that it lies in as a whole, if the card reaches that
        std::array<uint64_t, 64> loaded{};  // a bit for each byte: loaded through the read-only cache

        bool is_loaded(uint64_t offset, uint64_t bytes) const noexcept {  // any of at most 4 bytes, of one word
            return (loaded[offset / 64] >> offset % 64 & ((1u << bytes) - 1u)) != 0;
        }
    };
    static constexpr uint64_t kPageBytes = 4096;
    using Released = std::vector<bool>;  // by ordinals of blocks

    // executor.cpp: blocks and fibers
    void run_block(uint64_t block);
    static void enter(boost::context::detail::transfer_t from);
    void finish();
    Fiber* choose();
    void switch_to(Fiber* next);
    void yield();
    void arrive(Wait wait, WarpOperation operation, void* arguments, const Site& site);
    void complete(uint32_t warp);
    void release_barrier(Barrier& barrier);
    void check_block_barrier();
    void make_ready(uint32_t warp);
    std::string who_waits() const;

    // warp_operations.cpp
    void operate(uint32_t warp);
    void load_matrix(const Fiber* lanes);

    // checks.cpp
    void check(uintptr_t address, uint64_t bytes, uint32_t kind, const void* pc, bool counted);
    void check_shared(uintptr_t address, uint64_t bytes, uint32_t kind, bool landing);
    void check_global(uintptr_t address, uint64_t bytes, uint32_t kind);
    const Range* find_range(uintptr_t address, uint64_t bytes, uint32_t kind);
    void check_read_only(uintptr_t address, uint64_t bytes);
    void check_race(Cell& cell, uintptr_t address, uint64_t bytes, const Accessor& me);
    template <class Do>
    void for_cells(uintptr_t address, uint64_t bytes, bool is_shared, const Do& act);
    Page& page(uintptr_t number);
    Cell* cells(Page& of);
    uint64_t ordinal(uint32_t clock) const noexcept;
    bool acquired(uint32_t clock) const noexcept;
    void check_matrix_row(const void* row, const Site& site);
    void land(AsyncCopy& copy);
    void collect();
    void check_patience();
    std::string place(uintptr_t address) const;
    bool in_shared(uintptr_t address) const noexcept { return address - shared_begin_ < kSharedBytes; }

    // Notes the fault; leave() is to follow, as a statement of its own, so that nothing is left undestroyed.
    void fail(Fault fault, const std::string& text);
    [[noreturn]] void leave();
    std::string thread_name(uint32_t thread) const;
    std::string block_name(uint64_t block) const;

    // ---- memory that lasts ----
    uint8_t* stacks_ = nullptr;  // below the first one as much again, for what it overflows by
    uint8_t* shared_memory_ = nullptr;
    std::vector<Cell> shared_cells_;
    std::vector<std::unique_ptr<Cell[]>> free_pages_;
    std::vector<Fiber> fibers_;
    Fiber home_;

    // ---- the launch ----
    const Launch* launch_ = nullptr;
    Options options_;
    Outcome outcome_;
    Random random_;
    Clocks clocks_;
    ShadowPool pool_;
    std::vector<std::unique_ptr<Cell[]>> used_pages_;
    std::unordered_map<uintptr_t, Page> pages_;
    std::array<Page*, 256> recent_pages_{};
    std::unordered_map<uintptr_t, Released> released_;
    std::vector<uint32_t> block_clocks_;   // first clock of each block, in the order of execution
    std::vector<uint64_t> block_numbers_;  // its number in the grid
    Counting counting_;

    // ---- the block ----
    uint32_t block_index_[3] = {};
    uint32_t threads_ = 0;
    uint32_t alive_ = 0;
    uint64_t steps_ = 0;  // accesses and changes of fibers
    uint8_t* dynamic_ = nullptr;
    uintptr_t shared_begin_ = 0;
    uint64_t shared_span_ = 0;  // up to where arrays of the block lie
    uint64_t static_bytes_ = 0;
    std::vector<StaticArray> statics_;
    std::array<Warp, kMaximumWarps> warps_{};
    uint32_t ready_warps_ = 0;
    std::array<Barrier, 16> barriers_{};
    Fiber* fiber_ = nullptr;
    uintptr_t stack_low_ = 0;  // of the fiber that runs
    bool fenced_ = false;
    std::vector<const Released*> acquiring_, acquired_;
};

extern constinit thread_local Executor* running __attribute__((tls_model("initial-exec")));
inline Executor* Executor::current() noexcept {
    return running;
}

}  // namespace tessera::cuda::emulator
