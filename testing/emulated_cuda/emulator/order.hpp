// In which order blocks and warps of a launch run: drawn from a seed, so that every one can be repeated.
#pragma once

#include <bit>
#include <cstdint>
#include <numeric>

namespace tessera::cuda::emulator {

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
class Random {
  public:
    explicit Random(uint64_t seed = 0) noexcept : state_(seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) {
        if (state_ == 0) state_ = 1;
    }

    uint32_t operator()() noexcept {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<uint32_t>(state_ * 0x2545F4914F6CDD1D >> 32);
    }

  private:
    uint64_t state_;
};

// A random order of any number of blocks, at least 1, without a list of them: steps that share no factor with their
// number.
class BlockOrder {
  public:
    BlockOrder(uint64_t blocks, bool ordered, Random& random) : blocks_(blocks) {
        if (ordered || blocks == 1) return;
        at_ = random() % blocks;
        do step_ = 1 + random() % blocks;
        while (std::gcd(step_, blocks) != 1);
    }

    uint64_t next() noexcept {
        const uint64_t block = at_;
        at_ = (at_ + step_) % blocks_;
        return block;
    }

  private:
    uint64_t blocks_, at_ = 0, step_ = 1;
};

// The number of the n-th bit that is set, from 0 on; n is less than how many are.
inline uint32_t nth_bit(uint32_t bits, uint32_t n) noexcept {
    for (; n > 0; --n) bits &= bits - 1;
    return static_cast<uint32_t>(std::countr_zero(bits));
}

}  // namespace tessera::cuda::emulator
