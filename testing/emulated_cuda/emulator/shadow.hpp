// Who last read and wrote each byte, and whether the next access is ordered after that.
//
// Every warp has a clock that advances when its lanes synchronise. A warp knows of every other warp the clock up to
// which its accesses are ordered before now: a vector clock, joined at barriers. Clocks begin at 1 in each launch and
// never go back in it, so that a clock also tells earlier blocks from this one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace tessera::cuda::emulator {

inline constexpr uint32_t kMaximumThreads = 1024;
inline constexpr uint32_t kMaximumWarps = kMaximumThreads / 32;

// State of four bytes, or of one of them.
struct Cell {
    uint32_t write_clock = 0;
    uint32_t read_clock = 0;  // kReadMany: an index of Readers; kSplit: an index of four cells
    uint16_t write_thread = 0;
    uint16_t read_thread = 0;  // kLanes: the number of a warp, several lanes of which read at this clock
    uint8_t flags = 0;
    uint8_t padding[3] = {};

    enum Flags : uint8_t {
        kSplit = 1,           // the four bytes have cells of their own
        kAtomicWrite = 2,     // the last write was atomic
        kReadMany = 4,        // several warps read that are not ordered
        kLanes = 8,           // several lanes of one warp read
        kReadElsewhere = 16,  // another block of this launch read
        kInFlight = 32,       // an asynchronous copy into it has not been waited for
        kRead = 64,           // read_clock and read_thread are valid
    };
};
static_assert(sizeof(Cell) == 16);

// The last reads of several warps.
struct Readers {
    std::array<uint32_t, kMaximumWarps> clock{};  // 0: none
    std::array<uint8_t, kMaximumWarps> lane{};    // 32: several
};

// Clocks of the block that is executed.
struct Clocks {
    uint32_t launch_first = 1, block_first = 1;
    uint32_t warps = 0;
    // known[w][v]: accesses of warp v before this clock are ordered before what warp w does now. known[w][w] is w's
    // own.
    std::array<std::array<uint32_t, kMaximumWarps>, kMaximumWarps> known{};

    uint32_t own(uint32_t warp) const noexcept { return known[warp][warp]; }
    bool ordered(uint32_t warp, uint32_t other, uint32_t clock) const noexcept { return clock < known[warp][other]; }
    void begin_launch() noexcept;
    void begin_block(uint32_t warps) noexcept;
    void advance(uint32_t warp) noexcept { ++known[warp][warp]; }
};

struct Conflict {
    enum Kind : uint8_t { kNone, kWithRead, kWithWrite, kWithReadOfBlock, kWithWriteOfBlock } kind = kNone;
    uint32_t thread = 0;  // of the other access; of a warp's lanes, the first
    uint32_t clock = 0;   // tells which block it was
    explicit operator bool() const noexcept { return kind != kNone; }
};

// Cells of split ones and readers, for as long as a launch.
class ShadowPool {
  public:
    void clear() noexcept {
        split_.clear();
        readers_.clear();
        free_readers_.clear();
    }
    // Index of four cells that are like `cell`.
    uint32_t split(const Cell& cell);
    std::array<Cell, 4>& cells(uint32_t index) noexcept { return split_[index]; }
    uint32_t add_readers();
    void release_readers(uint32_t index) { free_readers_.push_back(index); }
    Readers& readers(uint32_t index) noexcept { return readers_[index]; }

  private:
    std::deque<std::array<Cell, 4>> split_;
    std::deque<Readers> readers_;
    std::vector<uint32_t> free_readers_;
};

struct Accessor {
    uint32_t thread, warp;
    bool write, atomic;
    uint32_t first;  // what was done before this clock does not count: of the block for its memory, else of the launch
};

// Checks one access against the cell and notes it there. `acquired(clock)`: whether an earlier block's access at that
// clock is ordered before this one.
template <class Acquired>
Conflict note(Cell& cell, const Accessor& me, const Clocks& clocks, ShadowPool& pool, const Acquired& acquired);

// ---- implementation ----

inline void Clocks::begin_launch() noexcept {
    warps = 0;
    launch_first = block_first = 1;
}

inline void Clocks::begin_block(uint32_t count) noexcept {
    uint32_t last = block_first;
    for (uint32_t w = 0; w < warps; ++w) last = own(w) > last ? own(w) : last;
    warps = count;
    block_first = last + 1;
    for (uint32_t w = 0; w < warps; ++w) {
        for (uint32_t v = 0; v < warps; ++v) known[w][v] = block_first;
    }
}

inline uint32_t ShadowPool::add_readers() {
    if (free_readers_.empty()) {
        readers_.emplace_back();
        return static_cast<uint32_t>(readers_.size() - 1);
    }
    const uint32_t index = free_readers_.back();
    free_readers_.pop_back();
    readers_[index] = {};
    return index;
}

inline uint32_t ShadowPool::split(const Cell& cell) {
    split_.push_back({cell, cell, cell, cell});
    if (cell.flags & Cell::kReadMany) {
        for (size_t i = 1; i < 4; ++i) {
            const uint32_t index = add_readers();
            readers_[index] = readers_[cell.read_clock];
            split_.back()[i].read_clock = index;
        }
    }
    return static_cast<uint32_t>(split_.size() - 1);
}

// The write that the cell remembers, if it is in conflict with this access.
template <class Acquired>
Conflict conflict_with_write(const Cell& cell, const Accessor& me, const Clocks& clocks, const Acquired& acquired) {
    if (cell.write_clock < me.first || (me.atomic && (cell.flags & Cell::kAtomicWrite))) return {};
    if (cell.write_clock < clocks.block_first) {
        if (acquired(cell.write_clock)) return {};
        return {Conflict::kWithWriteOfBlock, cell.write_thread, cell.write_clock};
    }
    if (cell.write_thread == me.thread || clocks.ordered(me.warp, cell.write_thread / 32u, cell.write_clock)) return {};
    return {Conflict::kWithWrite, cell.write_thread, cell.write_clock};
}

template <class Acquired>
Conflict conflict_with_reads(const Cell& cell, const Accessor& me, const Clocks& clocks, ShadowPool& pool,
                             const Acquired& acquired) {
    if (!(cell.flags & Cell::kRead)) return {};
    // Which block that was is not remembered; of those that are acquired, the last is asked.
    if ((cell.flags & Cell::kReadElsewhere) && !acquired(clocks.block_first - 1))
        return {Conflict::kWithReadOfBlock, 0, clocks.block_first - 1};
    if (cell.flags & Cell::kReadMany) {
        const Readers& readers = pool.readers(cell.read_clock);
        for (uint32_t w = 0; w < clocks.warps; ++w) {
            const uint32_t clock = readers.clock[w];
            if (clock < me.first) continue;
            if (clock < clocks.block_first) {
                if (!acquired(clock)) return {Conflict::kWithReadOfBlock, w * 32, clock};
                continue;
            }
            if (clocks.ordered(me.warp, w, clock)) continue;
            if (w == me.warp && readers.lane[w] == me.thread % 32) continue;
            return {Conflict::kWithRead, w * 32 + readers.lane[w] % 32, clock};
        }
        return {};
    }
    if (cell.read_clock < me.first) return {};
    const uint32_t warp = cell.flags & Cell::kLanes ? cell.read_thread : cell.read_thread / 32u;
    const uint32_t thread = cell.flags & Cell::kLanes ? warp * 32 : cell.read_thread;
    if (cell.read_clock < clocks.block_first) {
        if (acquired(cell.read_clock)) return {};
        return {Conflict::kWithReadOfBlock, thread, cell.read_clock};
    }
    if (clocks.ordered(me.warp, warp, cell.read_clock)) return {};
    if (!(cell.flags & Cell::kLanes) && cell.read_thread == me.thread) return {};
    return {Conflict::kWithRead, thread, cell.read_clock};
}

inline void note_read(Cell& cell, const Accessor& me, const Clocks& clocks, ShadowPool& pool) {
    const uint32_t now = clocks.own(me.warp);
    const auto only_me = [&] {
        cell.read_clock = now;
        cell.read_thread = static_cast<uint16_t>(me.thread);
        cell.flags = static_cast<uint8_t>((cell.flags & ~(Cell::kReadMany | Cell::kLanes)) | Cell::kRead);
    };
    if (!(cell.flags & Cell::kRead)) return only_me();
    if (cell.flags & Cell::kReadMany) {
        Readers& readers = pool.readers(cell.read_clock);
        for (uint32_t w = 0; w < clocks.warps; ++w) {
            if (readers.clock[w] == 0 || readers.clock[w] >= clocks.block_first) continue;
            if (readers.clock[w] >= me.first) cell.flags |= Cell::kReadElsewhere;
            readers.clock[w] = 0;
        }
        const bool same = readers.clock[me.warp] == now && readers.lane[me.warp] != me.thread % 32;
        readers.lane[me.warp] = static_cast<uint8_t>(same ? 32 : me.thread % 32);
        readers.clock[me.warp] = now;
        return;
    }
    if (cell.read_clock < clocks.block_first) {
        if (cell.read_clock >= me.first) cell.flags |= Cell::kReadElsewhere;
        return only_me();
    }
    const uint32_t warp = cell.flags & Cell::kLanes ? cell.read_thread : cell.read_thread / 32u;
    if (clocks.ordered(me.warp, warp, cell.read_clock)) return only_me();
    if (warp == me.warp) {
        if (!(cell.flags & Cell::kLanes) && cell.read_thread != me.thread) {
            cell.flags |= Cell::kLanes;
            cell.read_thread = static_cast<uint16_t>(warp);
        }
        return;
    }
    const uint32_t index = pool.add_readers();
    Readers& readers = pool.readers(index);
    readers.clock[warp] = cell.read_clock;
    readers.lane[warp] = static_cast<uint8_t>(cell.flags & Cell::kLanes ? 32 : cell.read_thread % 32);
    readers.clock[me.warp] = now;
    readers.lane[me.warp] = static_cast<uint8_t>(me.thread % 32);
    cell.read_clock = index;
    cell.flags = static_cast<uint8_t>((cell.flags & ~Cell::kLanes) | Cell::kReadMany);
}

template <class Acquired>
Conflict note(Cell& cell, const Accessor& me, const Clocks& clocks, ShadowPool& pool, const Acquired& acquired) {
    Conflict found = conflict_with_write(cell, me, clocks, acquired);
    if (!me.write) {
        if (!found) note_read(cell, me, clocks, pool);
        return found;
    }
    if (!found) found = conflict_with_reads(cell, me, clocks, pool, acquired);
    if (found) return found;
    if (cell.flags & Cell::kReadMany) pool.release_readers(cell.read_clock);
    cell.write_clock = clocks.own(me.warp);
    cell.write_thread = static_cast<uint16_t>(me.thread);
    cell.flags = static_cast<uint8_t>((cell.flags & Cell::kInFlight) | (me.atomic ? Cell::kAtomicWrite : 0));
    return found;
}

}  // namespace tessera::cuda::emulator
