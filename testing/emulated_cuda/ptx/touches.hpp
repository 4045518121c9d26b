// Which bytes of global memory a launch has read and written, and the block that runs.
#pragma once

#include "../emulator/emulator.hpp"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tessera::cuda::ptx {

class Touches {
  public:
    enum Kind : uint8_t { kRead, kReadOnly, kWritten, kAtomic, kKinds };

    void clear();
    // What was touched until now was so by other blocks.
    void begin_block() noexcept { ++block_; }
    // Whether another block of the launch touched any of the bytes so.
    bool any_elsewhere(uint64_t address, uint64_t bytes, Kind kind);
    void note(uint64_t address, uint64_t bytes, Kind kind);
    // Whether any of the bytes was touched so.
    bool any(uint64_t address, uint64_t bytes, Kind kind);
    // Sorted, none overlap; what is written is not listed as read.
    std::vector<emulator::Touched> collect() const;

  private:
    static constexpr uint64_t kPageBytes = 4096;
    struct Page {
        uint64_t number = ~0ull;
        uint64_t block = 0;  // that `own` is of
        std::array<std::array<uint64_t, kPageBytes / 64>, kKinds> bits{}, own{};
    };
    Page& page(uint64_t number);
    // act(word of bits, the same of the block's own, mask) for each 64 bytes of which some are among them, until it
    // returns true.
    template <class Act>
    bool for_words(uint64_t address, uint64_t bytes, Kind kind, const Act& act);

    std::unordered_map<uint64_t, Page> pages_;
    std::array<Page*, 256> recent_{};
    uint64_t block_ = 0;
};

}  // namespace tessera::cuda::ptx
