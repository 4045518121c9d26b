#include "address_space.hpp"

#include <tessera/cpp/status.hpp>

#include <sys/mman.h>

#include <algorithm>
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

Allocation::~Allocation() {
    munmap(memory_, mapped_);
}

std::string Allocation::describe() const {
    return "an allocation of " + std::to_string(bytes_) + " bytes";
}

AddressSpace::AddressSpace(uint64_t limit_bytes, uint64_t alignment, uint64_t largest)
    : limit_(limit_bytes), alignment_(alignment), largest_(largest) {
    // Addresses are not used twice, so the range is larger than the memory. Reserved addresses cost nothing; where they
    // are scarce (a limit on address space), less will do.
    constexpr uint64_t kMaximum = uint64_t{1} << 44;
    const uint64_t room = std::min(limit_bytes, kMaximum) / kPage * kPage + (uint64_t{1} << 26) + 4 * alignment;
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
    // What recordings of other devices refer to outlives this one.
    static std::mutex mutex;
    static auto& orphans = *new std::vector<std::unique_ptr<Allocation>>;
    const std::lock_guard lock(mutex);
    for (auto& [address, allocation] : allocations_) {
        allocation->mark_released();
        released_.push_back(std::move(allocation));
    }
    for (auto& allocation : released_) {
        if (!allocation->free()) orphans.push_back(std::move(allocation));
    }
    munmap(reinterpret_cast<void*>(base_), reserved_);
}

uint64_t AddressSpace::used() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

void* AddressSpace::allocate(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    std::erase_if(released_, [](const auto& one) { return one->free(); });
    if (bytes == 0) throw sdk::Failure(TSR_INVALID_ARGUMENT, "an allocation of 0 bytes");
    if (largest_ != 0 && bytes > largest_) {
        throw sdk::Failure(TSR_DOES_NOT_FIT, "an allocation of " + std::to_string(bytes) +
                                                 " bytes: the device allows " + std::to_string(largest_) + " at once");
    }
    if (bytes > limit_ || counted(bytes) > limit_ - used_) {
        throw sdk::Failure(TSR_DOES_NOT_FIT, "an allocation of " + std::to_string(bytes) +
                                                 " bytes: " + std::to_string(limit_ - used_) + " of " +
                                                 std::to_string(limit_) + " bytes are free");
    }
    const uint64_t mapped = (bytes + kPage - 1) / kPage * kPage;
    const uint64_t unit = std::max(alignment_, kPage);
    const uint64_t address = (next_ + unit - 1) / unit * unit;
    // A page without access parts neighbours, so that addresses past an allocation belong to none.
    if (address + mapped + kPage > base_ + reserved_)
        throw sdk::Failure(TSR_DOES_NOT_FIT, "all device addresses have been used");
    void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw sdk::Failure(TSR_DOES_NOT_FIT,
                           "the host has no " + std::to_string(bytes) + " bytes for a simulated device");
    }
    std::memset(memory, 0xFF, bytes);
    allocations_.emplace(address, std::make_unique<Allocation>(address, bytes, mapped, static_cast<char*>(memory)));
    next_ = address + mapped + kPage;
    used_ += counted(bytes);
    return reinterpret_cast<void*>(address);
}

const Allocation* AddressSpace::release(const void* address) {
    const std::lock_guard lock(mutex_);
    std::erase_if(released_, [](const auto& one) { return one->free(); });
    const auto found = allocations_.find(number(address));
    if (found == allocations_.end()) return nullptr;
    used_ -= counted(found->second->bytes());
    found->second->mark_released();
    released_.push_back(std::move(found->second));
    allocations_.erase(found);
    return released_.back().get();
}

bool AddressSpace::owns(const void* address) const noexcept {
    return number(address) >= base_ && number(address) < base_ + reserved_;
}

// The allocation that holds `address`; end if none does.
AddressSpace::Allocations::const_iterator AddressSpace::at(const void* address) const {
    auto found = allocations_.upper_bound(number(address));
    if (found == allocations_.begin()) return allocations_.end();
    --found;
    return number(address) - found->first < found->second->bytes() ? found : allocations_.end();
}

uint64_t AddressSpace::left(const void* address) const {
    const std::lock_guard lock(mutex_);
    const auto found = at(address);
    return found == allocations_.end() ? 0 : found->second->bytes() - (number(address) - found->first);
}

Place AddressSpace::find(const void* address, uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto found = at(address);
    if (found == allocations_.end()) return {};
    const uint64_t offset = number(address) - found->first;
    if (bytes > found->second->bytes() - offset) return {};
    return {found->second.get(), found->second->memory() + offset};
}

}  // namespace tessera::simulated
