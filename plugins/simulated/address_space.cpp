#include "address_space.hpp"

#include <tessera/cpp/status.hpp>

#include <sys/mman.h>

#include <cstring>
#include <string>

namespace tessera::simulated {
namespace {

uint64_t number(const void* address) noexcept {
    return reinterpret_cast<uint64_t>(address);
}

void* reserve(uint64_t bytes) noexcept {
    void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

AddressSpace::AddressSpace(uint64_t limit_bytes) : limit_(limit_bytes) {
    // Addresses are not used twice, so the range is larger than the memory. Reserved addresses cost nothing; where they
    // are scarce (a limit on address space), less will do.
    constexpr uint64_t kMost = uint64_t{1} << 44;
    const uint64_t room = (limit_bytes < kMost ? limit_bytes : kMost) / kPage * kPage + (uint64_t{1} << 26);
    for (const uint64_t times : {8, 2}) {
        reserved_ = room * times;
        base_ = number(reserve(reserved_));
        if (base_ != 0) break;
    }
    if (base_ == 0) {
        throw sdk::Failure(TSR_DOES_NOT_FIT,
                           "no " + std::to_string(reserved_) + " bytes of address space for a simulated device");
    }
    next_ = base_;
}

AddressSpace::~AddressSpace() {
    for (const auto& [address, allocation] : allocations_) munmap(allocation.memory, allocation.mapped);
    munmap(reinterpret_cast<void*>(base_), reserved_);
}

uint64_t AddressSpace::used() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

void* AddressSpace::allocate(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes == 0) throw sdk::Failure(TSR_INVALID_ARGUMENT, "an allocation of 0 bytes");
    if (bytes > limit_ || counted(bytes) > limit_ - used_) {
        throw sdk::Failure(TSR_DOES_NOT_FIT, "an allocation of " + std::to_string(bytes) +
                                                 " bytes: " + std::to_string(limit_ - used_) + " of " +
                                                 std::to_string(limit_) + " bytes are free");
    }
    const uint64_t mapped = (bytes + kPage - 1) / kPage * kPage;
    // A page without access parts neighbours, so that addresses past an allocation belong to none.
    if (mapped + kPage > base_ + reserved_ - next_)
        throw sdk::Failure(TSR_DOES_NOT_FIT, "all device addresses have been used");
    void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw sdk::Failure(TSR_DOES_NOT_FIT,
                           "the host has no " + std::to_string(bytes) + " bytes for a simulated device");
    }
    std::memset(memory, 0xFF, bytes);
    const uint64_t address = next_;
    allocations_.emplace(address, Allocation{bytes, mapped, static_cast<char*>(memory)});
    next_ += mapped + kPage;
    used_ += counted(bytes);
    return reinterpret_cast<void*>(address);
}

uint64_t AddressSpace::release(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto at = allocations_.find(number(address));
    if (at == allocations_.end()) return 0;
    const uint64_t bytes = counted(at->second.bytes);
    munmap(at->second.memory, at->second.mapped);
    allocations_.erase(at);
    used_ -= bytes;
    return bytes;
}

bool AddressSpace::owns(const void* address) const noexcept {
    return number(address) >= base_ && number(address) < base_ + reserved_;
}

// The allocation that holds `address`; end if none does.
AddressSpace::Allocations::const_iterator AddressSpace::find(const void* address) const {
    auto at = allocations_.upper_bound(number(address));
    if (at == allocations_.begin()) return allocations_.end();
    --at;
    return number(address) - at->first < at->second.bytes ? at : allocations_.end();
}

uint64_t AddressSpace::left(const void* address) const {
    const std::lock_guard lock(mutex_);
    const auto at = find(address);
    return at == allocations_.end() ? 0 : at->second.bytes - (number(address) - at->first);
}

char* AddressSpace::resolve(const void* address, uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto at = find(address);
    if (at == allocations_.end()) return nullptr;
    const uint64_t offset = number(address) - at->first;
    return bytes <= at->second.bytes - offset ? at->second.memory + offset : nullptr;
}

}  // namespace tessera::simulated
