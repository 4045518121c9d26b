#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace tessera::cuda::emulator {

Written::Written(uint64_t bytes) : size_(bytes / 8 + 1) {
    void* const memory =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    bits_ = static_cast<uint8_t*>(memory);
}

Written::~Written() {
    munmap(bits_, size_);
}

void Written::mark(uint64_t offset, uint64_t bytes) noexcept {
    while (bytes > 0) {
        const uint64_t shift = offset % 8, part = std::min<uint64_t>(8 - shift, bytes);
        const auto mask = static_cast<uint8_t>(((1u << part) - 1u) << shift);
        uint8_t& cell = bits_[offset / 8];
        if ((__atomic_load_n(&cell, __ATOMIC_RELAXED) & mask) != mask) __atomic_fetch_or(&cell, mask, __ATOMIC_RELAXED);
        offset += part;
        bytes -= part;
    }
}

bool Written::all_of_many(uint64_t offset, uint64_t bytes) const noexcept {
    if (offset % 8 == 0 && bytes % 8 == 0 && bytes <= 16)  // the usual ones
        return __atomic_load_n(&bits_[offset / 8], __ATOMIC_RELAXED) == 0xFF &&
               (bytes <= 8 || __atomic_load_n(&bits_[offset / 8 + 1], __ATOMIC_RELAXED) == 0xFF);
    while (bytes > 0) {
        const uint64_t shift = offset % 8, part = std::min<uint64_t>(8 - shift, bytes);
        const auto mask = static_cast<uint8_t>(((1u << part) - 1u) << shift);
        if ((__atomic_load_n(&bits_[offset / 8], __ATOMIC_RELAXED) & mask) != mask) return false;
        offset += part;
        bytes -= part;
    }
    return true;
}

void Written::copy(uint64_t to, const Written& source, uint64_t from, uint64_t bytes) noexcept {
    for (uint64_t i = 0; i < bytes;) {
        if ((to + i) % 8 == 0 && (from + i) % 8 == 0 && bytes - i >= 8) {
            __atomic_store_n(&bits_[(to + i) / 8], __atomic_load_n(&source.bits_[(from + i) / 8], __ATOMIC_RELAXED),
                             __ATOMIC_RELAXED);
            i += 8;
            continue;
        }
        const auto mask = static_cast<uint8_t>(1u << (to + i) % 8);
        if (source.all(from + i, 1))
            __atomic_fetch_or(&bits_[(to + i) / 8], mask, __ATOMIC_RELAXED);
        else
            __atomic_fetch_and(&bits_[(to + i) / 8], static_cast<uint8_t>(~mask), __ATOMIC_RELAXED);
        ++i;
    }
}

std::string describe(const Range& range, uintptr_t address) {
    const std::string owner = range.device == kHost ? "page-locked memory" : "card " + std::to_string(range.device);
    const std::string what =
        "allocation " + std::to_string(range.number) + " (" + std::to_string(range.bytes) + " bytes on " + owner + ")";
    if (address >= range.begin + range.bytes)
        return std::to_string(address - range.begin - range.bytes) + " bytes after the end of " + what;
    if (address < range.begin) return std::to_string(range.begin - address) + " bytes before " + what;
    return "byte " + std::to_string(address - range.begin) + " of " + what;
}

const Range* range_before(const Ranges& ranges, uintptr_t address) noexcept {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                        [](uintptr_t a, const Range& range) { return a < range.begin; });
    return after == ranges.begin() ? nullptr : &*(after - 1);
}

bool Memory::add(uintptr_t begin, uint64_t bytes, int device) {
    Range range{begin, bytes, device, 0, device == kHost ? nullptr : std::make_shared<Written>(bytes)};
    const std::lock_guard lock(mutex_);
    auto ranges = std::make_shared<Ranges>(*ranges_);
    range.number = ++count_;
    const auto at = std::upper_bound(ranges->begin(), ranges->end(), begin,
                                     [](uintptr_t a, const Range& r) { return a < r.begin; });
    if (at != ranges->end() && at->begin - begin < bytes) return false;
    if (at != ranges->begin() && begin - (at - 1)->begin < (at - 1)->bytes) return false;
    ranges->insert(at, std::move(range));
    ranges_ = std::move(ranges);
    return true;
}

Range Memory::remove(uintptr_t begin) {
    const std::lock_guard lock(mutex_);
    auto ranges = std::make_shared<Ranges>(*ranges_);
    const auto at = std::find_if(ranges->begin(), ranges->end(), [&](const Range& r) { return r.begin == begin; });
    if (at == ranges->end()) return {};
    Range removed = *at;
    ranges->erase(at);
    ranges_ = std::move(ranges);
    return removed;
}

std::shared_ptr<const Ranges> Memory::ranges() const {
    const std::lock_guard lock(mutex_);
    return ranges_;
}

}  // namespace tessera::cuda::emulator
