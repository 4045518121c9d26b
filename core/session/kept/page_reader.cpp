#include "core/session/kept/page_reader.hpp"

#include "core/base/log.hpp"
#include "core/base/seconds.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <span>
#include <system_error>
#include <utility>

namespace tessera::session {
namespace {

// Disks answer several questions at once, and checksums take longer than copies.
constexpr unsigned kReadThreads = 4;
// At the end, for what is being read.
constexpr std::chrono::seconds kReadEnd(1);

}  // namespace

// All with State::mutex held, but the pages: each is the thread's that reads it, and all the caller's when done.
struct PageReader::Batch {
    std::vector<Page> pages;
    uint64_t bytes = 0;
    size_t begun = 0, ended = 0;  // pages
    bool wanted = true, given_up = false;
    std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now(), first{},
                                          last{};  // when it was given, begun, and answered last

    size_t being_read() const { return begun - ended; }
    bool done() const { return ended == pages.size(); }
};

struct PageReader::State {
    State(std::shared_ptr<PageStore> kept, uint64_t bytes) : store(std::move(kept)), held_bytes(bytes) {}

    bool can_begin() const {
        if (batches.empty()) return false;
        const Batch& next = *batches.front();
        return next.begun > 0 || held == 0 || held + next.bytes <= held_bytes;
    }
    std::pair<std::shared_ptr<Batch>, Page*> begin();
    void end(Batch& batch, bool good, Page& page);
    // Of one that nobody wants, when no thread reads any of it.
    void free(Batch& batch);

    const std::shared_ptr<PageStore> store;
    const uint64_t held_bytes;
    mutable std::mutex mutex;
    std::condition_variable given, read;
    std::list<std::shared_ptr<Batch>> batches;  // of which pages are to be begun
    uint64_t held = 0;                          // bytes of those that were begun and are there
    size_t stuck = 0;                           // pages being read of batches that were given up
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();  // answer of the disk
    bool news = false;                                                              // a batch is done
    size_t threads = 0;
    bool stopping = false;
};

PageReader::Reading::Reading(std::shared_ptr<State> state, std::shared_ptr<Batch> batch)
    : state_(std::move(state)), batch_(std::move(batch)) {}

PageReader::Reading::~Reading() {
    if (batch_) drop(false);
}

bool PageReader::Reading::done() const {
    const std::scoped_lock lock(state_->mutex);
    return batch_->done();
}

std::vector<PageReader::Page>& PageReader::Reading::pages() {
    return batch_->pages;
}

uint64_t PageReader::Reading::bytes() const {
    return batch_->bytes;
}

double PageReader::Reading::seconds() const {
    const std::scoped_lock lock(state_->mutex);
    if (batch_->begun == 0) return 0;
    const std::chrono::steady_clock::time_point end = batch_->done() ? batch_->last : std::chrono::steady_clock::now();
    return std::chrono::duration<double>(end - batch_->first).count();
}

// One that waits behind others hears what the disk answers to them.
double PageReader::Reading::silence() const {
    const std::scoped_lock lock(state_->mutex);
    return seconds_since(batch_->begun > 0 ? std::max(batch_->first, batch_->last)
                                           : std::max(batch_->asked, state_->last));
}

void PageReader::Reading::give_up() {
    drop(true);
}

void PageReader::Reading::drop(bool gives_up) {
    const auto state = std::exchange(state_, nullptr);
    const auto batch = std::exchange(batch_, nullptr);
    const std::scoped_lock lock(state->mutex);
    batch->wanted = false;
    batch->given_up = gives_up;
    if (gives_up) state->stuck += batch->being_read();
    state->batches.remove(batch);
    if (batch->begun > 0 && batch->being_read() == 0) state->free(*batch);
    state->given.notify_all();
}

PageReader::PageReader(std::shared_ptr<PageStore> store, uint64_t held_bytes)
    : state_(std::make_shared<State>(std::move(store), held_bytes)) {
    const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u, kReadThreads);
    threads_.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
        try {
            threads_.emplace_back([state = state_] { run(*state); });
        } catch (const std::system_error&) {
            if (i == 0) throw;
            break;  // as many as the system gives
        }
        const std::scoped_lock lock(state_->mutex);
        ++state_->threads;
    }
}

PageReader::~PageReader() {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->given.notify_all();
    const bool ended = state_->read.wait_for(lock, kReadEnd, [&] { return state_->threads == 0; });
    lock.unlock();
    if (!ended) log().warn("pages of the cache are still being read: the disk does not answer");
    for (std::thread& thread : threads_) ended ? thread.join() : thread.detach();
}

PageReader::Reading PageReader::read(std::vector<Page> pages) {
    auto batch = std::make_shared<Batch>();
    for (const Page& page : pages) batch->bytes += state_->store->page_bytes(page.group);
    batch->pages = std::move(pages);
    const std::scoped_lock lock(state_->mutex);
    state_->batches.push_back(batch);
    state_->given.notify_all();
    return {state_, std::move(batch)};
}

bool PageReader::stuck() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->stuck > 0;
}

void PageReader::wait(std::chrono::milliseconds time) {
    std::unique_lock lock(state_->mutex);
    state_->read.wait_for(lock, time, [&] { return state_->news; });
    state_->news = false;
}

std::pair<std::shared_ptr<PageReader::Batch>, PageReader::Page*> PageReader::State::begin() {
    std::shared_ptr<Batch> batch = batches.front();
    if (batch->begun == 0) {
        held += batch->bytes;
        batch->first = std::chrono::steady_clock::now();
    }
    Page& page = batch->pages[batch->begun++];
    if (batch->begun == batch->pages.size()) batches.pop_front();
    return {std::move(batch), &page};
}

void PageReader::State::end(Batch& batch, bool good, Page& page) {
    page.good = good;
    ++batch.ended;
    last = batch.last = std::chrono::steady_clock::now();
    if (batch.given_up) --stuck;
    if (!batch.wanted) {
        page.bytes = nullptr;
        if (batch.being_read() == 0) free(batch);
    } else if (batch.done()) {
        news = true;
        read.notify_all();
    }
}

void PageReader::State::free(Batch& batch) {
    for (Page& page : batch.pages) page.bytes = nullptr;
    held -= batch.bytes;
    given.notify_all();
}

void PageReader::run(State& state) {
    std::unique_lock lock(state.mutex);
    for (;;) {
        state.given.wait(lock, [&] { return state.stopping || state.can_begin(); });
        if (state.stopping) break;
        const auto [batch, page] = state.begin();
        lock.unlock();
        bool good = false;
        try {
            const uint64_t bytes = state.store->page_bytes(page->group);
            page->bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
            good = state.store->read(page->parent, page->tokens, page->group, std::span(page->bytes.get(), bytes));
        } catch (const std::exception& error) {
            log().warn("a page of the cache is not read: {}", error.what());
        }
        lock.lock();
        state.end(*batch, good, *page);
    }
    --state.threads;
    state.read.notify_all();
}

}  // namespace tessera::session
