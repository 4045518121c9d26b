// Memory of a device that the host cannot reach by accident. The addresses that are given out lie in a reserved range
// without any access, so that reading one on the host faults. Each allocation has its bytes elsewhere, known to this
// class alone.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace tessera::simulated {

class AddressSpace {
  public:
    // Throws sdk::Failure if that much cannot be reserved.
    explicit AddressSpace(uint64_t limit_bytes);
    ~AddressSpace();
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;

    // What an allocation counts as against the limit.
    static uint64_t counted(uint64_t bytes) noexcept { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

    uint64_t limit() const noexcept { return limit_; }
    uint64_t used() const;

    // Poisoned with bytes of 0xFF, which are no number in any float type. Throws sdk::Failure(TSR_DOES_NOT_FIT) past
    // the limit. An address is never given out twice. Any thread.
    void* allocate(uint64_t bytes);

    // The bytes that it counted as; 0 if nothing is allocated at that address. What is released is gone: no later
    // access finds it.
    uint64_t release(const void* address);

    // Whether the address is one of this device's, allocated or not.
    bool owns(const void* address) const noexcept;

    // Where `bytes` from `address` on really are, nullptr if they are not all of one allocation.
    char* resolve(const void* address, uint64_t bytes) const;

    // Bytes from `address` to the end of its allocation, 0 if it is in none.
    uint64_t left(const void* address) const;

  private:
    static constexpr uint64_t kAlignment = 256;
    static constexpr uint64_t kPage = 4096;

    struct Allocation {
        uint64_t bytes;   // asked for
        uint64_t mapped;  // whole pages
        char* memory;
    };
    using Allocations = std::map<uint64_t, Allocation>;  // by address

    Allocations::const_iterator find(const void* address) const;

    uint64_t limit_;
    uint64_t reserved_ = 0;
    uint64_t base_ = 0;
    mutable std::mutex mutex_;
    uint64_t next_ = 0;  // address of the next allocation
    uint64_t used_ = 0;
    Allocations allocations_;
};

}  // namespace tessera::simulated
