// How much memory the processes have that hold answers to grammars.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tessera::structure {

// Of all of them together. Any thread.
class ProcessMemory {
  public:
    static constexpr uint64_t kMost = 2ull << 30;
    // Of a process, whatever it does: its stacks and the system's tables.
    static constexpr uint64_t kLeast = 1 << 20;

    explicit ProcessMemory(uint64_t most) : most_(most) {}

    bool full() const noexcept { return bytes_ > most_; }
    // One more is to begin, and there is none for it.
    bool has_no_place() const noexcept { return bytes_ + kLeast > most_; }

    // What one process has, until this is gone. One thread at a time.
    class Share {
      public:
        explicit Share(std::shared_ptr<ProcessMemory> of) : of_(std::move(of)) { of_->bytes_ += kLeast; }
        ~Share() {
            if (of_) of_->bytes_ -= kLeast + bytes_;
        }
        Share(Share&& other) noexcept : of_(std::move(other.of_)), bytes_(std::exchange(other.bytes_, 0)) {}
        Share& operator=(Share&&) = delete;

        void set(uint64_t bytes) noexcept {
            of_->bytes_ += bytes - bytes_;  // modulo 2^64, as both are
            bytes_ = bytes;
        }
        uint64_t bytes() const noexcept { return bytes_; }
        const std::shared_ptr<ProcessMemory>& of() const noexcept { return of_; }

      private:
        std::shared_ptr<ProcessMemory> of_;
        uint64_t bytes_ = 0;
    };

  private:
    const uint64_t most_;
    std::atomic<uint64_t> bytes_{0};
};

}  // namespace tessera::structure
