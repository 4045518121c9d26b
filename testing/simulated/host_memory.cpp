#include "host_memory.hpp"

#include <tessera/cpp/status.hpp>

#include <sys/mman.h>

#include <cstring>
#include <string>

namespace tessera::simulated {
namespace {

using sdk::Failure;

uint64_t number(const void* address) noexcept {
    return reinterpret_cast<uint64_t>(address);
}

uint64_t whole_pages(uint64_t bytes) noexcept {
    return (bytes + HostMemory::kPage - 1) / HostMemory::kPage * HostMemory::kPage;
}

}  // namespace

HostMemory& HostMemory::instance() {
    static auto& one = *new HostMemory;
    return one;
}

void* HostMemory::allocate(const void* owner, uint64_t bytes) {
    if (bytes == 0) throw Failure(TSR_INVALID_ARGUMENT, "an allocation of 0 bytes");
    constexpr uint64_t kMaximum = uint64_t{1} << 46;
    void* memory = bytes > kMaximum ? MAP_FAILED
                                    : mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw Failure(TSR_DOES_NOT_FIT, "the host has no " + std::to_string(bytes) + " bytes for page-locked memory");
    }
    std::memset(memory, 0xFF, bytes);
    const std::lock_guard lock(mutex_);
    all_locked_.emplace(number(memory), Locked{bytes, owner, true});
    return memory;
}

void HostMemory::lock(const void* owner, const void* address, uint64_t bytes) {
    if (!address || number(address) % kPage != 0 || bytes % kPage != 0 || bytes == 0 ||
        bytes > UINT64_MAX - number(address)) {
        throw Failure(TSR_INVALID_ARGUMENT, "expected an address and a size that are multiples of 4096; found " +
                                                std::to_string(bytes) + " bytes at an address that is " +
                                                std::to_string(number(address) % kPage) + " past one");
    }
    const std::lock_guard lock(mutex_);
    const auto after = all_locked_.lower_bound(number(address) + bytes);
    if (after != all_locked_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second.bytes > number(address))
            throw Failure(TSR_INVALID_ARGUMENT, "expected memory that is not page-locked; part of it is");
    }
    all_locked_.emplace(number(address), Locked{bytes, owner, false});
}

void HostMemory::release(const void* owner, const void* address, bool allocated) {
    const std::lock_guard lock(mutex_);
    const auto found = all_locked_.find(number(address));
    if (found == all_locked_.end() || found->second.owner != owner || found->second.allocated != allocated) {
        throw Failure(TSR_INVALID_ARGUMENT, allocated ? "release_pinned of an address at which nothing is allocated"
                                                      : "unregister_host of an address at which nothing is registered");
    }
    const uint64_t bytes = found->second.bytes;
    all_locked_.erase(found);
    if (busy_locked(number(address), number(address) + bytes)) {
        // The bytes stay where they are: work under way would write to memory of somebody else.
        throw Failure(TSR_INVALID_ARGUMENT, std::string(allocated ? "release_pinned" : "unregister_host") +
                                                " of memory that a copy under way uses");
    }
    if (allocated) munmap(const_cast<void*>(address), whole_pages(bytes));
}

void HostMemory::release_all(const void* owner) noexcept {
    const std::lock_guard lock(mutex_);
    for (auto at = all_locked_.begin(); at != all_locked_.end();) {
        if (at->second.owner != owner) {
            ++at;
            continue;
        }
        if (at->second.allocated) munmap(reinterpret_cast<void*>(at->first), whole_pages(at->second.bytes));
        at = all_locked_.erase(at);
    }
}

bool HostMemory::locked(const void* address, uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    auto found = all_locked_.upper_bound(number(address));
    if (found == all_locked_.begin()) return false;
    --found;
    const uint64_t offset = number(address) - found->first;
    return offset < found->second.bytes && bytes <= found->second.bytes - offset;
}

void HostMemory::transfer(const void* address, uint64_t bytes, const Queue& queue, uint32_t index) {
    const std::lock_guard lock(mutex_);
    transfers_.remove_if([](const Transfer& t) { return t.queue->seems_ended(t.index); });
    transfers_.push_back({number(address), number(address) + bytes, &queue, index});
}

bool HostMemory::busy(const void* address, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return busy_locked(number(address), number(address) + bytes);
}

bool HostMemory::busy_locked(uint64_t begin, uint64_t end) {
    transfers_.remove_if([](const Transfer& t) { return t.queue->seems_ended(t.index); });
    for (const Transfer& t : transfers_) {
        if (t.begin < end && begin < t.end) return true;
    }
    return false;
}

void HostMemory::forget(const Queue& queue) {
    const std::lock_guard lock(mutex_);
    transfers_.remove_if([&](const Transfer& t) { return t.queue == &queue; });
}

}  // namespace tessera::simulated
