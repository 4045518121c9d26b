// Writes pages to a store by a thread of its own, so that nobody else waits for a disk.
#pragma once

#include "core/session/kept/page_store.hpp"

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace tessera::session {

// One thread calls it.
class PageWriter {
  public:
    struct Page {
        PathId parent{}, path{};
        std::vector<int32_t> tokens;
        uint32_t group = 0;
        std::vector<std::byte> bytes;
    };

    // Pages that wait take at most `held_bytes`, but one always has room.
    PageWriter(std::shared_ptr<PageStore> store, uint64_t held_bytes);
    // Ends with what is being done and what is to be forgotten; a disk that does not answer is waited for no longer
    // than a moment, and keeps the thread and the store.
    ~PageWriter();
    PageWriter(const PageWriter&) = delete;
    PageWriter& operator=(const PageWriter&) = delete;

    bool has_room(uint64_t bytes) const;
    // Memory of pages that have been written, of any size.
    std::vector<std::byte> buffer();
    void push(Page page);

    // Forgets pages of one text, the last first, up to one that others follow: no longer writes them, and removes their
    // files before it writes anything else. Ready when that is done; an exception: some are left.
    std::shared_future<void> forget(std::vector<PathId> paths);
    // PageStore::keep_times, when all that was given before is written.
    void keep_times();

    // False: it was not so in that time.
    bool wait_for_room(uint64_t bytes, std::chrono::milliseconds time);
    // With all else that it was given.
    bool wait_until_written(std::chrono::milliseconds time);
    // Pages that were given to it and are not written.
    uint64_t waiting() const;

  private:
    struct State;
    static void run(State& state);

    const std::shared_ptr<State> state_;  // of the thread, too
    std::thread thread_;
};

}  // namespace tessera::session
