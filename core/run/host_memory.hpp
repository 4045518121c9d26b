// Host memory of the runtime: every large block is allocated here, so that planned and allocated bytes can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tessera {

// An anonymous mapping, zeroed by the system, page-aligned. Movable.
class HostBlock {
  public:
    HostBlock() = default;
    // `huge`: ask for transparent huge pages. Throws Error(TSR_DOES_NOT_FIT) naming `what` if the system refuses.
    HostBlock(uint64_t bytes, std::string_view what, bool huge = true);
    ~HostBlock();
    HostBlock(HostBlock&& other) noexcept;
    HostBlock& operator=(HostBlock&& other) noexcept;

    std::byte* data() const noexcept { return data_; }
    uint64_t size() const noexcept { return size_; }

    // Keeps the block from being swapped out. False if the system does not allow it.
    bool lock() const noexcept;

  private:
    std::byte* data_ = nullptr;
    uint64_t size_ = 0;
};

}  // namespace tessera
