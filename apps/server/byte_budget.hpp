// Memory that all connections may hold together.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tessera::server {

// Any thread.
class ByteBudget {
  public:
    explicit ByteBudget(uint64_t limit) : limit_(limit) {}

    uint64_t limit() const noexcept { return limit_; }
    uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

    // False: that would be more than the limit, and nothing was taken.
    bool take(uint64_t bytes) noexcept {
        uint64_t used = used_.load(std::memory_order_relaxed);
        do {
            if (bytes > limit_ || used > limit_ - bytes) return false;
        } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
        return true;
    }
    // Whatever the limit is.
    void take_always(uint64_t bytes) noexcept { used_.fetch_add(bytes, std::memory_order_relaxed); }
    void give_back(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  private:
    const uint64_t limit_;
    std::atomic<uint64_t> used_{0};
};

// What one connection holds of a budget, which outlives it. One thread at a time.
class HeldBytes {
  public:
    explicit HeldBytes(ByteBudget& budget) : budget_(&budget) {}
    ~HeldBytes() { reset(); }
    HeldBytes(HeldBytes&& other) noexcept : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
    HeldBytes& operator=(HeldBytes&& other) noexcept {
        reset();
        budget_ = other.budget_;
        bytes_ = std::exchange(other.bytes_, 0);
        return *this;
    }

    uint64_t bytes() const noexcept { return bytes_; }
    uint64_t limit() const noexcept { return budget_->limit(); }  // of the budget
    bool add(uint64_t bytes) noexcept {
        if (!budget_->take(bytes)) return false;
        bytes_ += bytes;
        return true;
    }
    void add_always(uint64_t bytes) noexcept {
        budget_->take_always(bytes);
        bytes_ += bytes;
    }
    void remove(uint64_t bytes) noexcept {
        bytes = bytes < bytes_ ? bytes : bytes_;
        budget_->give_back(bytes);
        bytes_ -= bytes;
    }
    void reset() noexcept { remove(bytes_); }

  private:
    ByteBudget* budget_;
    uint64_t bytes_ = 0;
};

}  // namespace tessera::server
