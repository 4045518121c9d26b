#include "core/session/kept/page_writer.hpp"

#include "core/base/log.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <utility>

namespace tessera::session {
namespace {

// At the end, for what is being done: a page takes far less.
constexpr std::chrono::seconds kEnd(2);

}  // namespace

struct PageWriter::State {
    enum class Work { kWrite, kRemove, kKeepTimes };
    struct Job {
        Work work;
        Page page{};                       // to be written
        std::vector<PathId> paths{};       // to be forgotten, should one have been written meanwhile
        std::vector<std::string> files{};  // to be removed
        std::promise<void> done{};
    };

    State(std::shared_ptr<PageStore> kept, uint64_t bytes) : store(std::move(kept)), held_bytes(bytes) {}

    bool room(uint64_t bytes) const { return waiting_bytes == 0 || waiting_bytes + bytes <= held_bytes; }
    // Of one that waits no longer.
    void give_back(std::vector<std::byte>& bytes) noexcept {
        waiting_bytes -= bytes.size();
        --waiting_pages;
        // As many as are in use at once; idle ones go.
        if (waiting_pages > 0 || buffers.size() < 2) {
            try {
                buffers.push_back(std::move(bytes));
            } catch (const std::bad_alloc&) {
                // The next page has memory of its own.
            }
        }
        if (waiting_pages == 0 && buffers.size() > 2) buffers.resize(2);
    }
    void work(Job& job);

    const std::shared_ptr<PageStore> store;
    const uint64_t held_bytes;
    std::mutex mutex;
    std::condition_variable given, written;
    std::list<Job> jobs;  // the first is being done
    uint64_t waiting_bytes = 0, waiting_pages = 0;
    std::vector<std::vector<std::byte>> buffers;
    std::atomic<bool> stopping{false};
    bool ended = false;
};

PageWriter::PageWriter(std::shared_ptr<PageStore> store, uint64_t held_bytes)
    : state_(std::make_shared<State>(std::move(store), held_bytes)), thread_([state = state_] { run(*state); }) {}

PageWriter::~PageWriter() {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->given.notify_one();
    const bool ended = state_->written.wait_for(lock, kEnd, [&] { return state_->ended; });
    lock.unlock();
    if (ended) {
        thread_.join();
        return;
    }
    log().warn("a page of the cache is still being written: the disk does not answer");
    thread_.detach();
}

bool PageWriter::has_room(uint64_t bytes) const {
    const std::scoped_lock lock(state_->mutex);
    return state_->room(bytes);
}

std::vector<std::byte> PageWriter::buffer() {
    const std::scoped_lock lock(state_->mutex);
    if (state_->buffers.empty()) return {};
    std::vector<std::byte> buffer = std::move(state_->buffers.back());
    state_->buffers.pop_back();
    return buffer;
}

void PageWriter::push(Page page) {
    const std::scoped_lock lock(state_->mutex);
    const uint64_t bytes = page.bytes.size();
    state_->jobs.push_back({State::Work::kWrite, std::move(page)});
    state_->waiting_bytes += bytes;
    ++state_->waiting_pages;
    state_->given.notify_one();
}

std::shared_future<void> PageWriter::forget(std::vector<PathId> paths) {
    const std::scoped_lock lock(state_->mutex);
    std::list<State::Job>& jobs = state_->jobs;
    const auto behind_first = [&] { return jobs.empty() ? jobs.end() : std::next(jobs.begin()); };
    State::Job job{State::Work::kRemove};
    for (const PathId& path : paths) {
        // The pages of the text that follow this one are no longer there, but for one that is being written.
        const bool followed = std::ranges::any_of(jobs, [&](const State::Job& other) {
            return other.work == State::Work::kWrite && other.page.parent == path &&
                   std::ranges::find(job.paths, other.page.path) == job.paths.end();
        });
        if (followed || !state_->store->forget(path, job.files)) break;
        job.paths.push_back(path);
        for (auto at = behind_first(); at != jobs.end();) {
            const bool is_it = at->work == State::Work::kWrite && at->page.path == path;
            if (is_it) state_->give_back(at->page.bytes);
            at = is_it ? jobs.erase(at) : std::next(at);
        }
    }
    std::shared_future<void> done = job.done.get_future();
    // Before pages that wait: of those that were given after them some may be the same again.
    jobs.insert(behind_first(), std::move(job));
    state_->given.notify_one();
    return done;
}

void PageWriter::keep_times() {
    const std::scoped_lock lock(state_->mutex);
    state_->jobs.push_back({State::Work::kKeepTimes});
    state_->given.notify_one();
}

bool PageWriter::wait_for_room(uint64_t bytes, std::chrono::milliseconds time) {
    std::unique_lock lock(state_->mutex);
    return state_->written.wait_for(lock, time, [&] { return state_->room(bytes); });
}

bool PageWriter::wait_until_written(std::chrono::milliseconds time) {
    std::unique_lock lock(state_->mutex);
    return state_->written.wait_for(lock, time, [&] { return state_->jobs.empty(); });
}

uint64_t PageWriter::waiting() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->waiting_pages;
}

void PageWriter::State::work(Job& job) {
    if (job.work == Work::kWrite) {
        // What has been refused once takes no time again; the store says when it is worth a try.
        const Page& page = job.page;
        if (!store->waits()) store->write(page.parent, page.tokens, page.group, page.bytes);
    } else if (job.work == Work::kKeepTimes) {
        store->keep_times([&] { return !stopping; });
    } else {
        try {
            for (const PathId& path : job.paths) {
                if (!store->forget(path, job.files)) break;
            }
            store->remove(job.files);
            job.done.set_value();
        } catch (...) {
            job.done.set_exception(std::current_exception());
            throw;
        }
    }
}

void PageWriter::run(State& state) {
    std::unique_lock lock(state.mutex);
    for (;;) {
        state.given.wait(lock, [&] { return state.stopping || !state.jobs.empty(); });
        if (state.jobs.empty()) break;
        State::Job& job = state.jobs.front();  // stays where it is while others are added
        // What was to be forgotten must not be there at the next start.
        const bool removes = job.work == State::Work::kRemove;
        if (!state.stopping || removes) {
            lock.unlock();
            try {
                state.work(job);
            } catch (const std::exception& error) {
                log().warn("a page of the cache is not {}: {}", removes ? "removed" : "kept", error.what());
            }
            lock.lock();
        }
        if (job.work == State::Work::kWrite) state.give_back(job.page.bytes);
        state.jobs.pop_front();
        state.written.notify_all();
    }
    state.ended = true;
    state.written.notify_all();
}

}  // namespace tessera::session
