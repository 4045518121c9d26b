// Who accessed which four bytes of global memory, for as long as a launch.
#pragma once

#include "../emulator/shadow.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace tessera::cuda::ptx {

class WordCells {
  public:
    // `word`: an address, a multiple of 4.
    emulator::Cell& at(uint64_t word) {
        const uint64_t number = word / kPageBytes;
        if (!recent_ || number != recent_number_) {
            std::unique_ptr<Page>& page = pages_[number];
            if (!page) page = std::make_unique<Page>();
            recent_ = page.get();
            recent_number_ = number;
        }
        return (*recent_)[word % kPageBytes / 4];
    }
    emulator::ShadowPool& pool() noexcept { return pool_; }
    void clear() {
        if (pages_.empty()) return;
        pages_.clear();
        pool_.clear();
        recent_ = nullptr;
    }

  private:
    static constexpr uint64_t kPageBytes = 4096;
    using Page = std::array<emulator::Cell, kPageBytes / 4>;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    Page* recent_ = nullptr;
    uint64_t recent_number_ = 0;
    emulator::ShadowPool pool_;
};

}  // namespace tessera::cuda::ptx
