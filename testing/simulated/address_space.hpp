// Memory of a device that the host cannot reach by accident. The addresses that are given out lie in a reserved range
// without any access, so that reading one on the host faults. Each allocation has its bytes elsewhere, known to this
// class and to commands alone.
#pragma once

#include "held.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera::simulated {

class Allocation : public Held {
  public:
    Allocation(uint64_t address, uint64_t bytes, uint64_t mapped, char* memory) noexcept
        : address_(address), bytes_(bytes), mapped_(mapped), memory_(memory) {}
    ~Allocation() override;
    std::string describe() const override;

    uint64_t address() const noexcept { return address_; }
    uint64_t bytes() const noexcept { return bytes_; }
    char* memory() const noexcept { return memory_; }

  private:
    uint64_t address_, bytes_;  // as asked for
    uint64_t mapped_;           // whole pages
    char* memory_;
};

// Bytes of an allocation, or of the host where `allocation` is nullptr.
struct Place {
    Allocation* allocation = nullptr;
    char* memory = nullptr;
};

// Any thread but those of queues, which get places.
class AddressSpace {
  public:
    // `alignment` of addresses is a power of two; `largest` of one allocation, 0: the limit. Throws sdk::Failure if
    // that much cannot be reserved.
    AddressSpace(uint64_t limit_bytes, uint64_t alignment, uint64_t largest);
    ~AddressSpace();
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;

    uint64_t limit() const noexcept { return limit_; }
    uint64_t used() const;
    // What an allocation counts as against the limit.
    uint64_t counted(uint64_t bytes) const noexcept { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

    // Poisoned with bytes of 0xFF, which are no number in any float type. Throws sdk::Failure(TSR_DOES_NOT_FIT) past
    // the limit. An address is never given out twice.
    void* allocate(uint64_t bytes);

    // nullptr if nothing is allocated at that address, else the allocation, which is no longer found and counts no
    // more. Its bytes stay until no command and no recording refers to them; it is valid until the next call.
    const Allocation* release(const void* address);

    // Whether the address is one of this device's, allocated or not.
    bool owns(const void* address) const noexcept;

    // Where `bytes` from `address` on really are; no allocation if they are not all of one.
    Place find(const void* address, uint64_t bytes) const;

    // Bytes from `address` to the end of its allocation, 0 if it is in none.
    uint64_t left(const void* address) const;

  private:
    static constexpr uint64_t kPage = 4096;
    using Allocations = std::map<uint64_t, std::unique_ptr<Allocation>>;  // by address

    Allocations::const_iterator at(const void* address) const;

    uint64_t limit_, alignment_, largest_;
    uint64_t reserved_ = 0;
    uint64_t base_ = 0;
    mutable std::mutex mutex_;
    uint64_t next_ = 0;  // address of the next allocation
    uint64_t used_ = 0;
    Allocations allocations_;
    std::vector<std::unique_ptr<Allocation>> released_;  // that commands may still refer to
};

}  // namespace tessera::simulated
