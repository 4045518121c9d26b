// What is checked at each load and store, and what asynchronous copies and atomics do.
#include "executor.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace tessera::cuda::emulator {

using simt::emulated::kAtomic;
using simt::emulated::kRead;
using simt::emulated::kReadOnly;
using simt::emulated::kUnaligned;
using simt::emulated::kWrite;

namespace {

std::string what(uint32_t kind, uint64_t bytes) {
    const char* const name = (kind & kAtomic) == kAtomic ? "atomic access to "
                             : kind & kWrite             ? "write of "
                                                         : "read of ";
    return name + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

}  // namespace

std::string Executor::place(uintptr_t address) const {
    if (in_shared(address)) {
        const uint64_t dynamic = address - reinterpret_cast<uintptr_t>(dynamic_);
        if (dynamic < launch_->dynamic_shared) return "byte " + std::to_string(dynamic) + " of dynamic shared memory";
        const uint64_t offset = address - shared_begin_;
        const StaticArray* before = nullptr;
        for (const StaticArray& array : statics_) {
            if (array.offset <= offset) before = &array;
        }
        if (!before)
            return std::to_string(dynamic - launch_->dynamic_shared) + " bytes after the end of the " +
                   std::to_string(launch_->dynamic_shared) + " bytes of dynamic shared memory";
        const std::string array = "static shared array " + std::to_string(before - statics_.data()) + " (" +
                                  std::to_string(before->bytes) + " bytes)";
        if (offset >= before->offset + before->bytes)
            return std::to_string(offset - before->offset - before->bytes) + " bytes after the end of " + array;
        return "byte " + std::to_string(offset - before->offset) + " of " + array;
    }
    const Range* const range = range_before(*launch_->memory, address);
    if (!range) return "an address in no allocation";
    if (address - range->begin >= range->bytes + (1 << 20)) return "an address far from any allocation";
    return describe(*range, address);
}

Executor::Page& Executor::page(uintptr_t number) {
    Page*& recent = recent_pages_[number % recent_pages_.size()];
    if (recent && recent->number == number) return *recent;
    Page& found = pages_[number];
    found.number = number;
    recent = &found;
    return found;
}

Cell* Executor::cells(Page& of) {
    if (of.cells) return of.cells;
    constexpr size_t kCells = kPageBytes / 4;
    if (free_pages_.empty()) {
        used_pages_.push_back(std::make_unique<Cell[]>(kCells));
    } else {
        used_pages_.push_back(std::move(free_pages_.back()));
        free_pages_.pop_back();
        std::fill_n(used_pages_.back().get(), kCells, Cell{});
    }
    return of.cells = used_pages_.back().get();
}

// act(cell, address, bytes) for each cell of the bytes, which are one allocation's.
template <class Do>
void Executor::for_cells(uintptr_t address, uint64_t bytes, bool is_shared, const Do& act) {
    const uintptr_t end = address + bytes;
    Cell* next = nullptr;
    for (uintptr_t word = address & ~uintptr_t{3}; word < end; word += 4) {
        if (!next || (!is_shared && word % kPageBytes == 0))
            next = is_shared ? &shared_cells_[(word - shared_begin_) / 4]
                             : &cells(page(word / kPageBytes))[word % kPageBytes / 4];
        Cell& cell = *next++;
        if (!(cell.flags & Cell::kSplit)) {
            if (word >= address && word + 4 <= end) {
                act(cell, word, 4);
                continue;
            }
            const uint32_t index = pool_.split(cell);
            cell = {};
            cell.flags = Cell::kSplit;
            cell.write_clock = index;
        }
        auto& parts = pool_.cells(cell.write_clock);
        for (uintptr_t byte = std::max(word, address); byte < std::min(word + 4, end); ++byte)
            act(parts[byte & 3], byte, 1);
    }
}

uint64_t Executor::ordinal(uint32_t clock) const noexcept {
    return static_cast<uint64_t>(std::upper_bound(block_clocks_.begin(), block_clocks_.end(), clock) -
                                 block_clocks_.begin()) -
           1;
}

// Whether what an earlier block did at that clock is ordered before what this one does now.
bool Executor::acquired(uint32_t clock) const noexcept {
    const uint64_t block = ordinal(clock);
    return std::any_of(acquired_.begin(), acquired_.end(),
                       [&](const Released* released) { return block < released->size() && (*released)[block]; });
}

void Executor::check_race(Cell& cell, uintptr_t address, uint64_t bytes, const Accessor& me) {
    if (!options_.check_races) {
        if (me.write) cell.write_clock = clocks_.own(me.warp);
        return;
    }
    const Conflict conflict = note(cell, me, clocks_, pool_, [this](uint32_t clock) { return acquired(clock); });
    if (!conflict) return;
    const bool with_write = conflict.kind == Conflict::kWithWrite || conflict.kind == Conflict::kWithWriteOfBlock;
    const bool other_block =
        conflict.kind == Conflict::kWithReadOfBlock || conflict.kind == Conflict::kWithWriteOfBlock;
    fail(Fault::kLaunchFailed, "race: " +
                                   what(me.atomic  ? kAtomic
                                        : me.write ? kWrite
                                                   : kRead,
                                        bytes) +
                                   " at " + place(address) + " is not ordered after a " +
                                   (with_write ? "write" : "read") + " by " +
                                   (other_block ? block_name(block_numbers_[ordinal(conflict.clock)])
                                                : thread_name(conflict.thread) + " of the same block"));
    leave();
}

void Executor::check_shared(uintptr_t address, uint64_t bytes, uint32_t kind, bool landing) {
    const uint64_t dynamic = address - reinterpret_cast<uintptr_t>(dynamic_), offset = address - shared_begin_;
    bool inside = dynamic < launch_->dynamic_shared && bytes <= launch_->dynamic_shared - dynamic;
    for (size_t i = 0; i < statics_.size() && !inside; ++i)
        inside = offset >= statics_[i].offset && bytes <= statics_[i].bytes &&
                 offset - statics_[i].offset <= statics_[i].bytes - bytes;
    if (!inside) {
        fail(Fault::kIllegalAddress, what(kind, bytes) + " out of bounds of shared memory, at " + place(address));
        leave();
    }
    const simt::emulated::Position& at = fiber_->position;
    const Accessor me{at.warp * 32 + at.lane, at.warp, (kind & kWrite) != 0, (kind & kAtomic) == kAtomic,
                      clocks_.block_first};
    for_cells(address, bytes, true, [&](Cell& cell, uintptr_t where, uint64_t size) {
        const bool current = cell.write_clock >= clocks_.block_first;
        if (current && (cell.flags & Cell::kInFlight) && !landing) {
            fail(Fault::kLaunchFailed, what(kind, bytes) + " at " + place(where) +
                                           ", where the data of an asynchronous copy by " +
                                           thread_name(cell.write_thread) + " has not been waited for");
            leave();
        }
        if (!current && options_.check_unwritten && (!me.write || me.atomic)) {
            fail(Fault::kLaunchFailed, what(kind, bytes) + " of unwritten shared memory, at " + place(where));
            leave();
        }
        if (!current) cell.flags &= static_cast<uint8_t>(~Cell::kInFlight);
        check_race(cell, where, size, me);
    });
}

// What was loaded through the read-only cache must not be written by the same launch, in any order.
void Executor::check_read_only(uintptr_t address, uint64_t bytes) {
    for (uintptr_t word = address & ~uintptr_t{3}; word < address + bytes; word += 4) {
        Page& of = page(word / kPageBytes);
        const uintptr_t first = std::max(word, address), end = std::min(word + 4, address + bytes);
        if (of.cells && options_.check_races) {
            Cell& cell = of.cells[word % kPageBytes / 4];
            const auto written = [&](const Cell& c) { return c.write_clock >= clocks_.launch_first; };
            bool found = !(cell.flags & Cell::kSplit) && written(cell);
            if (cell.flags & Cell::kSplit) {
                const auto& parts = pool_.cells(cell.write_clock);
                for (uintptr_t byte = first; byte < end; ++byte) found |= written(parts[byte & 3]);
            }
            if (found) {
                fail(Fault::kLaunchFailed, "read-only load of " + std::to_string(bytes) + " bytes at " +
                                               place(address) + ", which the kernel has written");
                leave();
            }
        }
        const uint64_t offset = first % kPageBytes;
        of.loaded[offset / 64] |= ((uint64_t{1} << (end - first)) - 1) << offset % 64;
    }
}

// The range that holds the bytes, if this kernel may touch it.
const Range* Executor::find_range(uintptr_t address, uint64_t bytes, uint32_t kind) {
    const Range* const range = range_before(*launch_->memory, address);
    if (!range || !range->holds(address, bytes)) {
        if (address >= launch_->library_begin && address + bytes <= launch_->library_end) return nullptr;
        const auto parameters =
            launch_->parameter_bytes_total ? reinterpret_cast<uintptr_t>(launch_->parameters[0]) : uintptr_t{0};
        if (!(kind & kWrite) && parameters && address >= parameters &&
            address + bytes <= parameters + launch_->parameter_bytes_total)
            return nullptr;
        const bool local = address - reinterpret_cast<uintptr_t>(stacks_) < kStackStride * (kMaximumThreads + 1);
        fail(Fault::kIllegalAddress, what(kind, bytes) + (local ? " beyond the " + std::to_string(kStackBytes >> 10) +
                                                                      " KB of local memory of the thread"
                                                                : " out of bounds, at " + place(address)));
        leave();
    }
    if (range->device != kHost && !(launch_->devices >> range->device & 1)) {
        fail(Fault::kIllegalAddress,
             what(kind, bytes) + " at " + describe(*range, address) + ", access to which has not been enabled");
        leave();
    }
    const uintptr_t first = address / kPageBytes * kPageBytes;
    if (range->holds(first, kPageBytes)) page(first / kPageBytes).range = range;
    return range;
}

void Executor::check_global(uintptr_t address, uint64_t bytes, uint32_t kind) {
    const Page* const recent = recent_pages_[address / kPageBytes % recent_pages_.size()];
    const Range* range = nullptr;
    if (recent && recent->number == address / kPageBytes && address % kPageBytes + bytes <= kPageBytes)
        range = recent->range;
    if (!range) {
        range = find_range(address, bytes, kind);
        if (!range) return;
    }
    const uint64_t offset = address - range->begin;
    if (range->written) {
        if ((!(kind & kWrite) || (kind & kAtomic) == kAtomic) && options_.check_unwritten &&
            !range->written->all(offset, bytes)) {
            uint64_t first = 0;
            while (range->written->all(offset + first, 1)) ++first;
            fail(Fault::kLaunchFailed, what(kind, bytes) + " of memory that nobody has written, at " +
                                           describe(*range, address) +
                                           (first ? ", byte " + std::to_string(first) + " of it" : ""));
            leave();
        }
        if (kind & kWrite) range->written->mark(offset, bytes);
    }
    if (kind & kReadOnly) return check_read_only(address, bytes);
    const simt::emulated::Position& at = fiber_->position;
    const Accessor me{at.warp * 32 + at.lane, at.warp, (kind & kWrite) != 0, (kind & kAtomic) == kAtomic,
                      clocks_.launch_first};
    for_cells(address, bytes, false, [&](Cell& cell, uintptr_t where, uint64_t size) {
        if (me.write && options_.check_races && page(where / kPageBytes).is_loaded(where % kPageBytes, size)) {
            fail(Fault::kLaunchFailed, what(kind, bytes) + " at " + describe(*range, address) +
                                           ", which the kernel has loaded through the read-only cache");
            leave();
        }
        check_race(cell, where, size, me);
    });
}

void Executor::check(uintptr_t address, uint64_t bytes, uint32_t kind, const void* pc, bool counted) {
    if (address - stack_low_ < kStackBytes || bytes == 0) return;
    outcome_.counters.accesses += 1;
    if (++steps_ > options_.patience) check_patience();
    if (!(kind & kUnaligned) && bytes <= 16 && (address & (bytes - 1)) != 0) {
        fail(Fault::kMisaligned, what(kind, bytes) + " at an address that is no multiple of it, at " + place(address));
        leave();
    }
    if (in_shared(address)) {
        check_shared(address, bytes, kind, false);
    } else {
        check_global(address, bytes, kind);
    }
    if (counted && counting_.enabled() && bytes <= 16) {
        const bool is_shared = in_shared(address);
        counting_.note(fiber_->position.warp, fiber_->position.lane, pc,
                       is_shared ? address - reinterpret_cast<uintptr_t>(dynamic_) : address,
                       static_cast<uint32_t>(bytes), is_shared);
    }
}

void Executor::copy(void* to, const void* from, uint64_t bytes, const void* pc) {
    check(reinterpret_cast<uintptr_t>(from), bytes, kRead | kUnaligned, pc, true);
    check(reinterpret_cast<uintptr_t>(to), bytes, kWrite | kUnaligned, pc, true);
    std::memmove(to, from, bytes);
}

void Executor::fill(void* to, int value, uint64_t bytes, const void* pc) {
    check(reinterpret_cast<uintptr_t>(to), bytes, kWrite | kUnaligned, pc, true);
    std::memset(to, value, bytes);
}

void Executor::atomic(uintptr_t address, uint64_t bytes, int order, const void* pc) {
    check(address, bytes, kAtomic, pc, false);
    if (in_shared(address)) return;
    constexpr int kConsume = 1, kAcquire = 2, kRelease = 3, kAcquireRelease = 4, kSequential = 5;
    Released& released = released_[address];
    if (fenced_ || order == kRelease || order == kAcquireRelease || order == kSequential) {
        if (released.size() < block_clocks_.size()) released.resize(block_clocks_.size());
        released[block_clocks_.size() - 1] = true;
    }
    const bool acquires = order == kConsume || order == kAcquire || order == kAcquireRelease || order == kSequential;
    auto& list = acquires ? acquired_ : acquiring_;
    if (std::find(list.begin(), list.end(), &released) == list.end()) list.push_back(&released);
    (void)pc;
}

void Executor::fence(bool device) {
    if (!device) return;
    fenced_ = true;
    for (const Released* released : acquiring_) {
        if (std::find(acquired_.begin(), acquired_.end(), released) == acquired_.end()) acquired_.push_back(released);
    }
    acquiring_.clear();
}

void Executor::check_matrix_row(const void* row, const Site& site) {
    const auto address = reinterpret_cast<uintptr_t>(row);
    if (!in_shared(address)) {
        fail(Fault::kIllegalAddress, site_text(site) + " reads shared memory only, not " + place(address));
        leave();
    }
    check(address, 16, kRead, nullptr, false);
}

void Executor::copy_async(void* to, const void* from, uint32_t bytes, const Site& site) {
    const auto target = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
    if (bytes > 16 || !in_shared(target)) {
        fail(Fault::kIllegalAddress, site_text(site) + " copies at most 16 bytes to shared memory, not " +
                                         std::to_string(bytes) + " to " + place(target));
        leave();
    }
    if (target % 16 != 0 || (bytes > 0 && source % 16 != 0)) {
        fail(Fault::kMisaligned,
             site_text(site) + ": " + place(target % 16 ? target : source) + " is not aligned to 16 bytes");
        leave();
    }
    check(target, 16, kWrite, nullptr, false);
    if (bytes > 0) check(source, bytes, kRead | kUnaligned, nullptr, false);
    for_cells(target, 16, true, [](Cell& cell, uintptr_t, uint64_t) { cell.flags |= Cell::kInFlight; });
    AsyncCopy copy{static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), bytes, site, false};
    if (options_.arrival == CopyArrival::kEarly || (options_.arrival == CopyArrival::kRandom && random_() % 2 == 0)) {
        std::memset(to, 0, 16);
        std::memcpy(to, from, bytes);
        copy.landed = true;
    }
    fiber_->open.push_back(copy);
}

void Executor::copy_async_commit() {
    fiber_->groups.push_back(std::move(fiber_->open));
    fiber_->open.clear();
}

void Executor::copy_async_wait(uint32_t groups) {
    auto& pending = fiber_->groups;
    while (pending.size() > groups) {
        for (AsyncCopy& copy : pending.front()) land(copy);
        pending.erase(pending.begin());
    }
}

void Executor::land(AsyncCopy& copy) {
    // Read until now: whoever wrote there in the meantime is in a race with it.
    if (copy.bytes > 0) check(reinterpret_cast<uintptr_t>(copy.from), copy.bytes, kRead | kUnaligned, nullptr, false);
    if (!copy.landed) {
        std::memset(copy.to, 0, 16);
        std::memcpy(copy.to, copy.from, copy.bytes);
    }
    const auto target = reinterpret_cast<uintptr_t>(copy.to);
    check_shared(target, 16, kWrite, true);
    for_cells(target, 16, true,
              [](Cell& cell, uintptr_t, uint64_t) { cell.flags &= static_cast<uint8_t>(~Cell::kInFlight); });
}

// What the launch has read and written, from the cells of its pages.
void Executor::collect() {
    std::vector<const Page*> pages;
    for (const auto& [number, page] : pages_) pages.push_back(&page);
    std::sort(pages.begin(), pages.end(), [](const Page* a, const Page* b) { return a->number < b->number; });
    auto& touched = outcome_.touched;
    const auto add = [&](uintptr_t begin, uintptr_t end, bool written) {
        if (!touched.empty() && touched.back().end == begin && touched.back().written == written)
            touched.back().end = end;
        else
            touched.push_back({begin, end, written});
    };
    const auto add_cell = [&](const Cell& cell, bool loaded, uintptr_t begin, uint64_t bytes) {
        const bool written = cell.write_clock >= clocks_.launch_first;
        if (written || loaded || (cell.flags & Cell::kRead)) add(begin, begin + bytes, written);
    };
    constexpr Cell kUntouched{};
    for (const Page* const page : pages) {
        const uintptr_t first = page->number * kPageBytes;
        for (uint64_t offset = 0; offset < kPageBytes; offset += 4) {
            const Cell& cell = page->cells ? page->cells[offset / 4] : kUntouched;
            const uint64_t loaded = page->loaded[offset / 64] >> offset % 64 & 15;
            if ((cell.flags & Cell::kSplit) || (loaded != 0 && loaded != 15)) {
                for (uint64_t i = 0; i < 4; ++i) {
                    const bool split = (cell.flags & Cell::kSplit) != 0;
                    add_cell(split ? pool_.cells(cell.write_clock)[i] : cell, (loaded >> i & 1) != 0,
                             first + offset + i, 1);
                }
            } else {
                add_cell(cell, loaded != 0, first + offset, 4);
            }
        }
    }
}

// ---- the table that libraries get ----

namespace {

using simt::emulated::Interface;
using simt::emulated::kVersion;
using simt::emulated::Position;

constexpr Position kNowhere{};

const Interface kInterface{
    kVersion,
    [](const void* address, uint64_t bytes, uint32_t kind, const void* pc) {
        if (Executor* const e = Executor::current()) e->access(reinterpret_cast<uintptr_t>(address), bytes, kind, pc);
    },
    [](void* to, const void* from, uint64_t bytes, const void* pc) {
        Executor* const e = Executor::current();
        if (!e) return static_cast<void>(std::memmove(to, from, bytes));
        e->copy(to, from, bytes, pc);
    },
    [](void* to, int value, uint64_t bytes, const void* pc) {
        Executor* const e = Executor::current();
        if (!e) return static_cast<void>(std::memset(to, value, bytes));
        e->fill(to, value, bytes, pc);
    },
    []() -> const Position* {
        Executor* const e = Executor::current();
        return e ? e->position() : &kNowhere;
    },
    [](const void* key, uint64_t bytes, uint64_t alignment) {
        return Executor::current()->shared(key, bytes, alignment);
    },
    []() -> void* { return Executor::current()->dynamic_shared(); },
    [](WarpOperation operation, void* arguments, const Site& site) {
        Executor::current()->warp(operation, arguments, site);
    },
    [](const Site& site) { Executor::current()->sync_block(site); },
    [](uint32_t id, uint32_t threads, bool waits, const Site& site) {
        Executor::current()->named_barrier(id, threads, waits, site);
    },
    [](void* to, const void* from, uint32_t bytes, const Site& site) {
        Executor::current()->copy_async(to, from, bytes, site);
    },
    [] { Executor::current()->copy_async_commit(); },
    [](uint32_t groups) { Executor::current()->copy_async_wait(groups); },
    [](bool device) { Executor::current()->fence(device); },
    [](const void* address, uint64_t bytes, int order, const void* pc) {
        if (Executor* const e = Executor::current()) e->atomic(reinterpret_cast<uintptr_t>(address), bytes, order, pc);
    },
};

}  // namespace

const simt::emulated::Module* attach(void* library, std::string& reason) {
    const auto function =
        reinterpret_cast<simt::emulated::ModuleFunction>(dlsym(library, simt::emulated::kModuleFunction));
    if (!function) {
        reason = std::string("no function ") + simt::emulated::kModuleFunction + ": not a library of emulated kernels";
        return nullptr;
    }
    const simt::emulated::Module* const module = function(&kInterface);
    if (module->version != kVersion) {
        reason = "made for version " + std::to_string(module->version) + " of the emulator, which is at " +
                 std::to_string(kVersion);
        return nullptr;
    }
    return module;
}

}  // namespace tessera::cuda::emulator
