// What is checked at loads and stores.
#include "executor.hpp"

#include <algorithm>
#include <cstring>

namespace tessera::cuda::ptx {
namespace {

std::string what(Access access, uint64_t bytes) {
    const char* const name = access == Access::kAtomic  ? "atomic access to "
                             : access >= Access::kWrite ? "write of "
                                                        : "read of ";
    return name + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

bool writes(Access access) {
    return access >= Access::kWrite;
}
bool reads(Access access) {
    return access != Access::kWrite && access != Access::kStrongWrite;
}
bool is_strong(Access access) {
    return access == Access::kAtomic || access == Access::kStrongRead || access == Access::kStrongWrite;
}

// Whether each of `Bytes` bytes has the value.
template <uint32_t Bytes>
bool all_are(const uint8_t* bytes, uint8_t value) {
    if constexpr (Bytes <= 8) {
        uint64_t word = 0;
        std::memcpy(&word, bytes, Bytes);
        return word == (0x0101010101010101ull * value & (Bytes == 8 ? ~0ull : (1ull << 8 * Bytes % 64) - 1));
    } else {
        return all_are<8>(bytes, value) && all_are<Bytes - 8>(bytes + 8, value);
    }
}

[[noreturn]] void misaligned(Access access, uint64_t bytes, const std::string& where, uint32_t lane) {
    throw Trap{Fault::kMisaligned, what(access, bytes) + " at an address that is no multiple of it, at " + where, lane};
}

}  // namespace

std::string Executor::place_text(uint64_t address, Space space) const {
    if (space == Space::kShared) {
        const uint64_t dynamic = address - kDynamicShared;
        if (address >= kDynamicShared && dynamic < launch_->dynamic_shared)
            return "byte " + std::to_string(dynamic) + " of dynamic shared memory";
        if (address >= kDynamicShared)
            return std::to_string(dynamic - launch_->dynamic_shared) + " bytes after the end of the " +
                   std::to_string(launch_->dynamic_shared) + " bytes of dynamic shared memory";
        const Extent* before = nullptr;
        for (const Extent& array : program_->shared) {
            if (array.offset <= address) before = &array;
        }
        if (!before) return "address " + std::to_string(address) + " of shared memory, before all arrays";
        const uint64_t offset = address - before->offset;
        return (offset < before->bytes ? "byte " + std::to_string(offset)
                                       : std::to_string(offset - before->bytes) + " bytes after the end") +
               " of the shared array " + before->name + " (" + std::to_string(before->bytes) + " bytes)";
    }
    if (space == Space::kLocal) return "address " + std::to_string(address) + " of local memory";
    if (space == Space::kParam) return "byte " + std::to_string(address) + " of the parameters";
    for (const DataRange& range : *program_->data) {
        if (address + 128 >= range.begin && address < range.begin + range.bytes + 128)
            return "byte " + std::to_string(static_cast<int64_t>(address - range.begin)) + " of the variable " +
                   range.name + " (" + std::to_string(range.bytes) + " bytes)";
    }
    const emulator::Range* const range = emulator::range_before(*launch_->memory, address);
    if (!range) return "an address in no allocation";
    if (address - range->begin >= range->bytes + (1 << 20)) return "an address far from any allocation";
    return emulator::describe(*range, address);
}

const emulator::Range* Executor::find_range(uint64_t address, uint64_t bytes, Access access, uint32_t lane) {
    if (recent_ && recent_->holds(address, bytes)) return recent_;
    const emulator::Range* const range = emulator::range_before(*launch_->memory, address);
    if (!range || !range->holds(address, bytes)) {
        const std::vector<DataRange>& data = *program_->data;
        const auto after = std::upper_bound(data.begin(), data.end(), address,
                                            [](uint64_t a, const DataRange& variable) { return a < variable.begin; });
        if (after != data.begin()) {
            const DataRange& variable = *(after - 1);
            const bool inside =
                address - variable.begin < variable.bytes && bytes <= variable.bytes - (address - variable.begin);
            if (inside && !(variable.constant && writes(access))) return nullptr;
        }
        throw Trap{Fault::kIllegalAddress,
                   what(access, bytes) + " out of bounds, at " + place_text(address, Space::kGlobal), lane};
    }
    if (range->device != emulator::kHost && !(launch_->devices >> range->device & 1))
        throw Trap{Fault::kIllegalAddress,
                   what(access, bytes) + " at " + emulator::describe(*range, address) +
                       ", access to which has not been enabled",
                   lane};
    return recent_ = range;
}

// Blocks run one after another here, in no order that a kernel may rely on. With fences they may order what they do.
void Executor::check_blocks(const emulator::Range& range, uint64_t address, uint64_t bytes, Access access,
                            uint32_t lane) {
    const bool atomic = access == Access::kAtomic;
    const char* other = nullptr;
    if (touches_.any_elsewhere(address, bytes, Touches::kWritten))
        other = "write";
    else if (!atomic && touches_.any_elsewhere(address, bytes, Touches::kAtomic))
        other = "atomic access";
    else if (writes(access) && touches_.any_elsewhere(address, bytes, Touches::kRead))
        other = "read";
    if (other)
        throw Trap{Fault::kLaunchFailed,
                   "race: " + what(access, bytes) + " at " + emulator::describe(range, address) +
                       " is not ordered after a " + other + " by another block",
                   lane};
}

void Executor::note_global(const Warp& warp, const emulator::Range* range, uint64_t address, uint64_t bytes,
                           uint32_t each, Access access, uint32_t lane) {
    if (!range) return;  // a variable of the module
    const uint64_t offset = address - range->begin;
    if (range->written) {
        if (reads(access) && options_.check_unwritten && !range->written->all(offset, bytes)) {
            uint64_t first = 0;
            while (range->written->all(offset + first, 1)) ++first;
            throw Trap{Fault::kLaunchFailed,
                       what(access, bytes) + " of memory that nobody has written, at " +
                           emulator::describe(*range, address) +
                           (first ? ", byte " + std::to_string(first) + " of it" : ""),
                       lane};
        }
        if (writes(access)) range->written->mark(offset, bytes);
    }
    if (access == Access::kReadOnly) {
        if (touches_.any(address, bytes, Touches::kWritten) || touches_.any(address, bytes, Touches::kAtomic))
            throw Trap{Fault::kLaunchFailed,
                       "read-only load (.nc) of " + std::to_string(bytes) + " bytes at " +
                           emulator::describe(*range, address) + ", which the kernel has written",
                       lane};
        return touches_.note(address, bytes, Touches::kReadOnly);
    }
    if (options_.check_races && outcome_.counters.blocks > 1 && !program_->has_device_fence)
        check_blocks(*range, address, bytes, access, lane);
    // Threads of a block may order what they do by fences and flags.
    if (options_.check_races && !program_->has_fence) {
        for (uint32_t i = 0; i < bytes / each; ++i)
            check_race(warp, Space::kGlobal, address + uint64_t{i} * each, each, access, lane + i);
    }
    if (!writes(access)) return touches_.note(address, bytes, Touches::kRead);
    if (touches_.any(address, bytes, Touches::kReadOnly))
        throw Trap{Fault::kLaunchFailed,
                   what(access, bytes) + " at " + emulator::describe(*range, address) +
                       ", which the kernel has loaded through the read-only cache (.nc)",
                   lane};
    touches_.note(address, bytes, access == Access::kAtomic ? Touches::kAtomic : Touches::kWritten);
}

uint8_t* Executor::global(const Warp& warp, uint64_t address, uint32_t bytes, Access access, uint32_t lane) {
    if (address % bytes != 0) misaligned(access, bytes, place_text(address, Space::kGlobal), lane);
    note_global(warp, find_range(address, bytes, access, lane), address, bytes, bytes, access, lane);
    return reinterpret_cast<uint8_t*>(address);
}

void Executor::check_race(emulator::Cell& cell, Space space, uint64_t address, uint32_t bytes,
                          const emulator::Accessor& me, uint32_t lane) {
    emulator::ShadowPool& pool = space == Space::kShared ? pool_ : global_cells_.pool();
    const emulator::Conflict conflict = emulator::note(cell, me, clocks_, pool, [](uint32_t) { return true; });
    if (!conflict) return;
    const uint32_t* const block = launch_->block;
    const uint32_t other = conflict.thread;
    throw Trap{Fault::kLaunchFailed,
               "race: " +
                   what(me.atomic  ? Access::kAtomic
                        : me.write ? Access::kWrite
                                   : Access::kRead,
                        bytes) +
                   " at " + place_text(address, space) + " is not ordered after a " +
                   (conflict.kind == emulator::Conflict::kWithWrite ? "write" : "read") + " by thread (" +
                   std::to_string(other % block[0]) + "," + std::to_string(other / block[0] % block[1]) + "," +
                   std::to_string(other / block[0] / block[1]) + ") of the same block",
               lane};
}

// Strong accesses are in no race with each other, and order nothing here.
void Executor::check_race(const Warp& warp, Space space, uint64_t address, uint32_t bytes, Access access,
                          uint32_t lane) {
    const bool strong = is_strong(access);
    const emulator::Accessor me{warp.number * kLanes + lane, warp.number, writes(access) || strong, strong,
                                clocks_.block_first};
    emulator::ShadowPool& pool = space == Space::kShared ? pool_ : global_cells_.pool();
    for (uint64_t word = address & ~uint64_t{3}; word < address + bytes; word += 4) {
        emulator::Cell& cell = space == Space::kShared ? cells_[word / 4] : global_cells_.at(word);
        if (!(cell.flags & emulator::Cell::kSplit)) {
            if (word >= address && word + 4 <= address + bytes) {
                check_race(cell, space, word, 4, me, lane);
                continue;
            }
            const uint32_t index = pool.split(cell);
            cell = {};
            cell.flags = emulator::Cell::kSplit;
            cell.write_clock = index;
        }
        for (uint64_t byte = std::max(word, address); byte < std::min(word + 4, address + bytes); ++byte)
            check_race(pool.cells(cell.write_clock)[byte & 3], space, byte, 1, me, lane);
    }
}

uint8_t* Executor::shared(const Warp& warp, uint64_t address, uint32_t bytes, Access access, uint32_t lane,
                          bool landing) {
    const auto where = [&](uint64_t at) { return place_text(at, Space::kShared); };
    if (address > kSharedBytes - bytes)
        throw Trap{Fault::kIllegalAddress,
                   what(access, bytes) + " out of bounds of shared memory, at address " + std::to_string(address),
                   lane};
    if (address % bytes != 0) misaligned(access, bytes, where(address), lane);
    for (uint32_t i = 0; i < bytes; ++i) {
        uint8_t& byte = bytes_[address + i];
        if (byte == kNone)
            throw Trap{Fault::kIllegalAddress,
                       what(access, bytes) + " out of bounds of shared memory, at " + where(address + i), lane};
        if (byte == kInFlight && !landing)
            throw Trap{Fault::kLaunchFailed,
                       what(access, bytes) + " at " + where(address + i) +
                           ", where the data of an asynchronous copy has not been waited for",
                       lane};
        if (byte == kUnwritten && reads(access) && options_.check_unwritten)
            throw Trap{Fault::kLaunchFailed,
                       what(access, bytes) + " of unwritten shared memory, at " + where(address + i), lane};
        if (writes(access)) byte = kWritten;
    }
    if (options_.check_races) check_race(warp, Space::kShared, address, bytes, access, lane);
    return shared_memory_ + address;
}

uint8_t* Executor::local(const Warp& warp, uint64_t address, uint32_t bytes, Access access, uint32_t lane) {
    if (address >= program_->local_bytes || bytes > program_->local_bytes - address)
        throw Trap{Fault::kIllegalAddress,
                   what(access, bytes) + " out of bounds of local memory, at address " + std::to_string(address), lane};
    if (address % bytes != 0) misaligned(access, bytes, place_text(address, Space::kLocal), lane);
    return local_.data() + (warp.number * kLanes + lane) * program_->local_bytes + address;
}

uint8_t* Executor::parameter(uint64_t address, uint32_t bytes, Access access, uint32_t lane) {
    if (writes(access) || address >= program_->parameter_bytes || bytes > program_->parameter_bytes - address)
        throw Trap{Fault::kIllegalAddress,
                   what(access, bytes) + " out of bounds of the parameters, at byte " + std::to_string(address), lane};
    if (address % bytes != 0) misaligned(access, bytes, place_text(address, Space::kParam), lane);
    return parameters_.data() + address;
}

uint8_t* Executor::place(Warp& warp, Space space, uint64_t address, uint32_t bytes, Access access, uint32_t lane) {
    if (space == Space::kGeneric) {
        if (address - kSharedWindow < kWindowBytes) {
            space = Space::kShared;
            address -= kSharedWindow;
        } else if (address - kLocalWindow < kWindowBytes) {
            space = Space::kLocal;
            address -= kLocalWindow;
        }
    }
    switch (space) {
        case Space::kShared:
            return shared(warp, address, bytes, access, lane, false);
        case Space::kLocal:
            return local(warp, address, bytes, access, lane);
        case Space::kParam:
            return parameter(address, bytes, access, lane);
        default:
            return global(warp, address, bytes, access, lane);
    }
}

// All lanes read neighbours in order: one access.
template <uint32_t Bytes>
bool Executor::load_run(const Warp& warp, const uint64_t* addresses, Access access, void* values) {
    const uint64_t first = addresses[0];
    uint64_t differ = first % Bytes;
    for (uint32_t l = 0; l < kLanes; ++l) differ |= addresses[l] ^ (first + uint64_t{l} * Bytes);
    if (differ != 0 || !recent_ || !recent_->holds(first, uint64_t{Bytes} * kLanes)) return false;
    if (recent_->written && options_.check_unwritten &&
        !recent_->written->all(first - recent_->begin, uint64_t{Bytes} * kLanes))
        return false;
    note_global(warp, recent_, first, uint64_t{Bytes} * kLanes, Bytes, access, 0);
    std::memcpy(values, reinterpret_cast<const void*>(first), Bytes * kLanes);
    return true;
}

template <uint32_t Bytes>
bool Executor::store_run(const Warp& warp, const uint64_t* addresses, Access access, const void* values) {
    const uint64_t first = addresses[0];
    uint64_t differ = first % Bytes;
    for (uint32_t l = 0; l < kLanes; ++l) differ |= addresses[l] ^ (first + uint64_t{l} * Bytes);
    if (differ != 0 || !recent_ || !recent_->holds(first, uint64_t{Bytes} * kLanes)) return false;
    note_global(warp, recent_, first, uint64_t{Bytes} * kLanes, Bytes, access, 0);
    std::memcpy(reinterpret_cast<void*>(first), values, Bytes * kLanes);
    return true;
}

template <uint32_t Bytes>
void Executor::load(Warp& warp, Space space, const uint64_t* addresses, uint32_t lanes, Access access, void* values) {
    auto* const to = static_cast<uint8_t*>(values);
    if (space == Space::kShared) {
        for (uint32_t l = 0; l < kLanes; ++l) {
            if (!(lanes >> l & 1)) continue;
            const uint64_t address = addresses[l];
            const bool usual =
                address <= kSharedBytes - Bytes && address % Bytes == 0 && all_are<Bytes>(&bytes_[address], kWritten);
            if (!usual) {
                std::memcpy(to + l * Bytes, shared(warp, address, Bytes, access, l, false), Bytes);
                continue;
            }
            if (options_.check_races) check_race(warp, Space::kShared, address, Bytes, access, l);
            std::memcpy(to + l * Bytes, shared_memory_ + address, Bytes);
        }
        return;
    }
    if (space != Space::kLocal && lanes == kAllLanes) {
        if (space != Space::kParam && load_run<Bytes>(warp, addresses, access, values)) return;
        uint64_t differ = 0;
        for (uint32_t l = 1; l < kLanes; ++l) differ |= addresses[l] ^ addresses[0];
        if (differ == 0) {
            const uint8_t* const from = place(warp, space, addresses[0], Bytes, access, 0);
            // Several lanes have read it.
            if (space != Space::kParam) place(warp, space, addresses[0], Bytes, access, kLanes - 1);
            for (uint32_t l = 0; l < kLanes; ++l) std::memcpy(to + l * Bytes, from, Bytes);
            return;
        }
    }
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (lanes >> l & 1) std::memcpy(to + l * Bytes, place(warp, space, addresses[l], Bytes, access, l), Bytes);
    }
}

template <uint32_t Bytes>
void Executor::store(Warp& warp, Space space, const uint64_t* addresses, uint32_t lanes, Access access,
                     const void* values) {
    const auto* const from = static_cast<const uint8_t*>(values);
    if (space != Space::kShared && space != Space::kLocal && lanes == kAllLanes &&
        store_run<Bytes>(warp, addresses, access, values))
        return;
    for (uint32_t l = 0; l < kLanes; ++l) {
        if (lanes >> l & 1) std::memcpy(place(warp, space, addresses[l], Bytes, access, l), from + l * Bytes, Bytes);
    }
}

#define TSR_ACCESSES(bytes)                                                                      \
    template void Executor::load<bytes>(Warp&, Space, const uint64_t*, uint32_t, Access, void*); \
    template void Executor::store<bytes>(Warp&, Space, const uint64_t*, uint32_t, Access, const void*);
TSR_ACCESSES(1)
TSR_ACCESSES(2)
TSR_ACCESSES(4)
TSR_ACCESSES(8)
TSR_ACCESSES(16)
#undef TSR_ACCESSES

void Executor::copy_later(Warp& warp, uint32_t lane, uint64_t to, uint64_t from, uint32_t bytes, uint32_t size) {
    if (to > kSharedBytes - size || to % size != 0 || (bytes > 0 && from % size != 0)) {
        if (to <= kSharedBytes - size)
            misaligned(Access::kWrite, size,
                       place_text(to % size ? to : from, to % size ? Space::kShared : Space::kGlobal), lane);
    }
    shared(warp, to, size, Access::kWrite, lane, false);
    if (bytes > 0)
        note_global(warp, find_range(from, bytes, Access::kRead, lane), from, bytes, bytes, Access::kRead, lane);
    std::fill_n(&bytes_[to], size, kInFlight);
    std::memset(shared_memory_ + to, 0xFE, size);
    warp.copies.push_back({to, from, warp.committed[lane], static_cast<uint16_t>(lane), static_cast<uint8_t>(bytes),
                           static_cast<uint8_t>(size)});
}

// What is copied is read as late as this.
void Executor::land(Warp& warp, const PendingCopy& copy) {
    if (copy.bytes > 0)
        note_global(warp, find_range(copy.from, copy.bytes, Access::kRead, copy.lane), copy.from, copy.bytes,
                    copy.bytes, Access::kRead, copy.lane);
    uint8_t* const to = shared(warp, copy.to, copy.size, Access::kWrite, copy.lane, true);
    std::memset(to, 0, copy.size);
    std::memcpy(to, reinterpret_cast<const void*>(copy.from), copy.bytes);
}

}  // namespace tessera::cuda::ptx
