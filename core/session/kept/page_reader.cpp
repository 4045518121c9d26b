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
// What a slow disk takes for what is being read, within a bound.
constexpr double kLeastSpeed = 5e6;  // bytes a second
constexpr double kMostSeconds = 30;

}  // namespace

// All with State::mutex held, but the pages: each is the thread's that reads it, and all the caller's when done.
struct PageReader::Job {
    std::vector<Page> pages;
    uint64_t bytes = 0;
    size_t begun = 0, ended = 0;  // pages
    bool wanted = true;
    std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now(), first{},
                                          last{};  // when it was given, begun, and answered last

    size_t being_read() const { return begun - ended; }
    bool done() const { return ended == pages.size(); }
};

struct PageReader::State {
    State(std::shared_ptr<PageStore> kept, uint64_t bytes, double seconds)
        : store(std::move(kept)), held_bytes(bytes), silence(seconds) {}

    bool can_begin() const {
        if (jobs.empty()) return false;
        const Job& next = *jobs.front();
        return next.begun > 0 || held == 0 || held + next.bytes <= held_bytes;
    }
    std::pair<std::shared_ptr<Job>, Page*> begin();
    void end(Job& job, bool good, Page& page);
    bool silent(const Job& job) const;
    // Of one that nobody wants, when no thread reads any of it.
    void free(Job& job);

    const std::shared_ptr<PageStore> store;
    const uint64_t held_bytes;
    const double silence;
    mutable std::mutex mutex;
    std::condition_variable given, read;
    std::list<std::shared_ptr<Job>> jobs;  // of which pages are to be begun
    uint64_t held = 0;                     // bytes of those that were begun and are there
    size_t reading = 0;                    // pages
    uint64_t reading_bytes = 0;
    std::chrono::steady_clock::time_point last{};  // when the disk answered, or was asked and owed nothing else
    bool stuck = false;
    bool news = false;  // a job is done
    size_t threads = 0;
    bool stopping = false;
};

PageReader::Reading::Reading(std::shared_ptr<State> state, std::shared_ptr<Job> job)
    : state_(std::move(state)), job_(std::move(job)) {}

PageReader::Reading::~Reading() {
    if (job_) drop(false);
}

bool PageReader::Reading::done() const {
    const std::scoped_lock lock(state_->mutex);
    return job_->done();
}

std::vector<PageReader::Page>& PageReader::Reading::pages() {
    return job_->pages;
}

uint64_t PageReader::Reading::bytes() const {
    return job_->bytes;
}

double PageReader::Reading::seconds() const {
    const std::scoped_lock lock(state_->mutex);
    if (job_->begun == 0) return 0;
    const std::chrono::steady_clock::time_point end = job_->done() ? job_->last : std::chrono::steady_clock::now();
    return std::chrono::duration<double>(end - job_->first).count();
}

double PageReader::Reading::waited() const {
    return seconds_since(job_->asked);
}

bool PageReader::Reading::silent() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->silent(*job_);
}

bool PageReader::Reading::answered() const {
    const std::scoped_lock lock(state_->mutex);
    return job_->ended > 0;
}

void PageReader::Reading::give_up() {
    drop(true);
}

void PageReader::Reading::drop(bool gives_up) {
    const auto state = std::exchange(state_, nullptr);
    const auto job = std::exchange(job_, nullptr);
    const std::scoped_lock lock(state->mutex);
    job->wanted = false;
    if (gives_up && state->silent(*job)) state->stuck = true;
    state->jobs.remove(job);
    if (job->begun > 0 && job->being_read() == 0) state->free(*job);
    state->given.notify_all();
}

PageReader::PageReader(std::shared_ptr<PageStore> store, uint64_t held_bytes, double silence)
    : state_(std::make_shared<State>(std::move(store), held_bytes, silence)) {
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
    auto job = std::make_shared<Job>();
    for (const Page& page : pages) job->bytes += state_->store->page_bytes(page.group);
    job->pages = std::move(pages);
    const std::scoped_lock lock(state_->mutex);
    state_->jobs.push_back(job);
    state_->given.notify_all();
    return {state_, std::move(job)};
}

bool PageReader::stuck() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->stuck;
}

void PageReader::wait(std::chrono::milliseconds time) {
    std::unique_lock lock(state_->mutex);
    state_->read.wait_for(lock, time, [&] { return state_->news; });
    state_->news = false;
}

std::pair<std::shared_ptr<PageReader::Job>, PageReader::Page*> PageReader::State::begin() {
    std::shared_ptr<Job> job = jobs.front();
    if (job->begun == 0) {
        held += job->bytes;
        job->first = std::chrono::steady_clock::now();
    }
    Page& page = job->pages[job->begun++];
    if (reading++ == 0) last = std::chrono::steady_clock::now();
    reading_bytes += store->page_bytes(page.group);
    if (job->begun == job->pages.size()) jobs.pop_front();
    return {std::move(job), &page};
}

void PageReader::State::end(Job& job, bool good, Page& page) {
    page.good = good;
    ++job.ended;
    last = job.last = std::chrono::steady_clock::now();
    --reading;
    reading_bytes -= store->page_bytes(page.group);
    stuck = false;
    if (!job.wanted) {
        page.bytes = nullptr;
        if (job.being_read() == 0) free(job);
    } else if (job.done()) {
        news = true;
        read.notify_all();
    }
}

// A disk that is asked for nothing owes no answer. One that waits behind others hears what it answers to them.
bool PageReader::State::silent(const Job& job) const {
    if (reading == 0 || job.done()) return false;
    const double slow = std::min(static_cast<double>(reading_bytes) / kLeastSpeed, kMostSeconds);
    return seconds_since(job.begun > 0 ? std::max(job.first, job.last) : std::max(job.asked, last)) > silence + slow;
}

void PageReader::State::free(Job& job) {
    for (Page& page : job.pages) page.bytes = nullptr;
    held -= job.bytes;
    given.notify_all();
}

void PageReader::run(State& state) {
    std::unique_lock lock(state.mutex);
    for (;;) {
        state.given.wait(lock, [&] { return state.stopping || state.can_begin(); });
        if (state.stopping) break;
        const auto [job, page] = state.begin();
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
        state.end(*job, good, *page);
    }
    --state.threads;
    state.read.notify_all();
}

}  // namespace tessera::session
