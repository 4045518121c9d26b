// Writes pages to a store by a thread of its own, so that nobody else waits for a disk.
#pragma once

#include "core/session/kept/page_store.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::session {

// One thread calls it.
class PageWriter {
  public:
    struct Page {
        PathId parent{};
        std::vector<int32_t> tokens;
        uint32_t group = 0;
        std::vector<std::byte> bytes;
    };

    // `store` outlives this. Pages that wait take at most `held_bytes`, but one always has room.
    PageWriter(PageStore& store, uint64_t held_bytes);
    // Ends with the page that is being written.
    ~PageWriter();
    PageWriter(const PageWriter&) = delete;
    PageWriter& operator=(const PageWriter&) = delete;

    bool has_room(uint64_t bytes) const;
    // Memory of pages that have been written, of any size.
    std::vector<std::byte> buffer();
    void push(Page page);

    // False: it was not so in that time.
    bool wait_for_room(uint64_t bytes, std::chrono::milliseconds time);
    bool wait_until_written(std::chrono::milliseconds time);
    // Given to it and not written.
    uint64_t waiting() const;

  private:
    void run();
    bool room(uint64_t bytes) const { return waiting_bytes_ == 0 || waiting_bytes_ + bytes <= held_bytes_; }

    PageStore& store_;
    const uint64_t held_bytes_;
    mutable std::mutex mutex_;
    std::condition_variable given_, written_;
    std::deque<Page> pages_;  // the first is being written
    uint64_t waiting_bytes_ = 0;
    std::vector<std::vector<std::byte>> buffers_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace tessera::session
