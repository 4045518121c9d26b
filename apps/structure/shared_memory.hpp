// Memory of a fixed size that two processes map.
#pragma once

#include "apps/structure/channel.hpp"

#include <cstddef>
#include <span>

namespace tessera::structure {

// Movable. Its file cannot be made smaller or larger, by nobody, so that no access to it faults.
class SharedMemory {
  public:
    SharedMemory() = default;
    // New, all zero. `name`: as tools show it. Throws Error(TSR_DOES_NOT_FIT) where the system gives none.
    SharedMemory(const char* name, size_t bytes);
    // What another process made. Throws Error(TSR_CORRUPT_DATA) if it is not of a fixed size of so many bytes, or of
    // any number of at most `bytes` where `exactly` is false.
    static SharedMemory opened(OpenFile file, size_t bytes, bool exactly = true);
    ~SharedMemory();
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;

    std::span<std::byte> bytes() const noexcept { return bytes_; }
    const OpenFile& file() const noexcept { return file_; }

  private:
    void map(size_t bytes);

    OpenFile file_;
    std::span<std::byte> bytes_;
};

}  // namespace tessera::structure
