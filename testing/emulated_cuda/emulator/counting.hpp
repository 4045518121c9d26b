// Counts what the loads and stores of a warp cost: conflicts between banks of shared memory, and sectors of global
// memory.
#pragma once

#include "emulator.hpp"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tessera::cuda::emulator {

// Lanes run one after another between two warp-wide operations. The same instruction's n-th execution in each lane is
// one request of the warp.
class Counting {
  public:
    void begin(bool enabled) { enabled_ = enabled; }
    bool enabled() const noexcept { return enabled_; }
    // `address`: in shared memory an offset.
    void note(uint32_t warp, uint32_t lane, const void* pc, uint64_t address, uint32_t bytes, bool in_shared);
    // The lanes of the warp have met: what they did until now is counted.
    void flush(uint32_t warp, Counters& counters);

  private:
    struct Request {
        std::array<uint64_t, 32> address;
        uint32_t lanes = 0;
        uint32_t bytes = 0;
        bool in_shared = false;
    };
    struct Instruction {
        std::array<uint32_t, 32> executed{};
        std::vector<Request> requests;
    };
    std::array<std::unordered_map<const void*, Instruction>, 32> warps_;
    bool enabled_ = false;
};

// Wavefronts that one request of shared memory takes: banks of 4 bytes, 32 of them; accesses of 8 bytes are done by
// half warps, of 16 bytes by quarters. `ideal`: the same without conflicts.
uint32_t wavefronts(const uint64_t* offsets, uint32_t lanes, uint32_t bytes, uint32_t& ideal);

// Distinct sectors of 32 bytes; `ideal`: the minimum for as many bytes.
uint32_t sectors(const uint64_t* addresses, uint32_t lanes, uint32_t bytes, uint32_t& ideal);

}  // namespace tessera::cuda::emulator
