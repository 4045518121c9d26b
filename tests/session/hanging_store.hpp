// A store on a disk that answers when the test says so.
#pragma once

#include "core/session/kept/page_store.hpp"

#include <atomic>
#include <span>
#include <thread>

namespace tessera::session {

class HangingStore final : public PageStore {
  public:
    using PageStore::PageStore;
    bool read(const PathId& parent, std::span<const int32_t> tokens, uint32_t group,
              std::span<std::byte> out) override {
        ++begun;
        hangs.wait(true);
        return PageStore::read(parent, tokens, group, out);
    }
    void hang() { hangs = true; }
    void answer() {
        hangs = false;
        hangs.notify_all();
    }
    void wait_until_begun(int reads) const {
        while (begun < reads) std::this_thread::yield();
    }

    std::atomic<bool> hangs{false};
    std::atomic<int> begun{0};
};

}  // namespace tessera::session
