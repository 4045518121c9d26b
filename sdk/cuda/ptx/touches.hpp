// Which bytes of global memory a launch has read and written.
#pragma once

#include "../emulator/emulator.hpp"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tessera::cuda::ptx {

class Touches {
  public:
    enum Kind : uint8_t { kRead, kReadOnly, kWritten, kKinds };

    void clear();
    void note(uint64_t address, uint64_t bytes, Kind kind);
    // Whether any of the bytes was touched so.
    bool any(uint64_t address, uint64_t bytes, Kind kind);
    // Sorted, none overlap; what is written is not listed as read.
    std::vector<emulator::Touched> collect() const;

  private:
    static constexpr uint64_t kPageBytes = 4096;
    struct Page {
        uint64_t number = ~0ull;
        std::array<std::array<uint64_t, kPageBytes / 64>, kKinds> bits{};
    };
    Page& page(uint64_t number);
    // act(word of bits, mask) for each 64 bytes of which some are among them, until it returns true.
    template <class Act>
    bool for_words(uint64_t address, uint64_t bytes, Kind kind, const Act& act);

    std::unordered_map<uint64_t, Page> pages_;
    std::array<Page*, 256> recent_{};
};

}  // namespace tessera::cuda::ptx
