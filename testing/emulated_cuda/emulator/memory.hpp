// The memory that emulated kernels may reach: allocations of cards and page-locked memory of the host.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tessera::cuda::emulator {

inline constexpr int kHost = -1;

// Which bytes of an allocation have been written: one bit a byte, made on demand by the system. Threads may mark
// different bytes at the same time.
class Written {
  public:
    explicit Written(uint64_t bytes);
    ~Written();
    Written(const Written&) = delete;
    Written& operator=(const Written&) = delete;

    void mark(uint64_t offset, uint64_t bytes) noexcept;
    bool all(uint64_t offset, uint64_t bytes) const noexcept {
        const uint64_t shift = offset % 8;
        if (bytes <= 8 - shift) {
            const uint32_t mask = ((1u << bytes) - 1u) << shift;
            return (__atomic_load_n(&bits_[offset / 8], __ATOMIC_RELAXED) & mask) == mask;
        }
        return all_of_many(offset, bytes);
    }
    // Makes [to, to + bytes) as written as `source` is from `from` on.
    void copy(uint64_t to, const Written& source, uint64_t from, uint64_t bytes) noexcept;

  private:
    bool all_of_many(uint64_t offset, uint64_t bytes) const noexcept;

    uint8_t* bits_ = nullptr;
    uint64_t size_ = 0;
};

struct Range {
    uintptr_t begin = 0;
    uint64_t bytes = 0;
    int device = kHost;                // who owns it
    uint64_t number = 0;               // counts allocations of the process, for reports
    std::shared_ptr<Written> written;  // null for memory of the host, which is taken for written

    bool holds(uintptr_t address, uint64_t size) const noexcept {
        return address >= begin && size <= bytes && address - begin <= bytes - size;
    }
};

// "byte 64 of allocation 3 (1024 bytes on card 0)"
std::string describe(const Range& range, uintptr_t address);

// Ranges sorted by address, none of which overlap.
using Ranges = std::vector<Range>;

// The last range that begins at or before `address`; null if there is none.
const Range* range_before(const Ranges& ranges, uintptr_t address) noexcept;

// All ranges of the process. Any thread.
class Memory {
  public:
    // False if it overlaps a range that is known.
    bool add(uintptr_t begin, uint64_t bytes, int device);
    // The range that was removed; bytes 0 if no range begins there.
    Range remove(uintptr_t begin);
    // As it is now; later changes do not show in it.
    std::shared_ptr<const Ranges> ranges() const;

  private:
    mutable std::mutex mutex_;
    std::shared_ptr<const Ranges> ranges_ = std::make_shared<Ranges>();
    uint64_t count_ = 0;
};

}  // namespace tessera::cuda::emulator
