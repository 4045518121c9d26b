// Reads pages from a store by threads of its own, so that nobody else waits for a disk.
#pragma once

#include "core/session/kept/page_store.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace tessera::session {

// One thread calls it and what it gives.
class PageReader {
  public:
    struct Page {
        PathId parent{};
        std::vector<int32_t> tokens;
        uint32_t group = 0;
        uint32_t index = 0;  // the caller's
        std::unique_ptr<std::byte[]> bytes{};
        bool good = false;  // they are what was kept, PageStore::page_bytes() of it
    };

  private:
    struct State;
    struct Job;

  public:
    // Pages that are being read. Whoever lets go of it wants them no longer; their memory goes when the disk has
    // answered.
    class Reading {
      public:
        Reading(std::shared_ptr<State> state, std::shared_ptr<Job> job);
        ~Reading();
        Reading(Reading&& other) noexcept = default;
        Reading& operator=(Reading&&) = delete;

        bool done() const;
        // When done: all of them, in the order in which they were asked for.
        std::vector<Page>& pages();
        uint64_t bytes() const;  // of all
        // Since the first of them was begun, or from then to the last; 0: none has been.
        double seconds() const;
        // Since they were asked for.
        double waited() const;
        // Whether the disk has answered for none of them for too long; where none has been begun, for nobody's.
        bool silent() const;
        // Whether it has answered for any of them.
        bool answered() const;
        // As letting go of it, since that takes too long: where the disk is silent the reader is stuck() until it
        // answers.
        void give_up();

      private:
        void drop(bool gives_up);

        std::shared_ptr<State> state_;
        std::shared_ptr<Job> job_;
    };

    // Seconds without an answer after which a disk is silent, besides those that a slow one takes for what it reads.
    static constexpr double kSilence = 3;

    // What is read, or has been and is still there, has at most `held_bytes`, but one reading always has room.
    PageReader(std::shared_ptr<PageStore> store, uint64_t held_bytes, double silence = kSilence);
    // Ends with the pages that are being read; a disk that does not answer is waited for no longer than a moment, and
    // keeps the threads and the store.
    ~PageReader();
    PageReader(const PageReader&) = delete;
    PageReader& operator=(const PageReader&) = delete;

    // At least one page. After those that were asked for before.
    Reading read(std::vector<Page> pages);
    // Whether the disk was silent when something was given up, and has not answered since.
    bool stuck() const;
    // Until pages have been read of which the caller does not know, at most so long.
    void wait(std::chrono::milliseconds time);

  private:
    static void run(State& state);

    const std::shared_ptr<State> state_;  // of the threads, too
    std::vector<std::thread> threads_;
};

}  // namespace tessera::session
