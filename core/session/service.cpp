#include "core/session/service.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"

#include <algorithm>
#include <utility>

namespace tessera::session {
namespace {

// Pages are copied for so long while nothing else is to be done, and so often it is seen whether they can be.
constexpr double kKeepSeconds = 0.01;
constexpr std::chrono::milliseconds kKeepPause(20);

}  // namespace

Service::Service(Engine& engine, const text::Tokenizer& tokenizer, ServiceOptions options)
    : engine_(engine), options_(std::move(options)), generator_(engine, tokenizer, [&] {
          GeneratorOptions made = options_.generator;
          made.contain_errors = true;
          made.on_step = [this](std::span<const RequestId> requests) {
              const std::scoped_lock lock(mutex_);
              stepping_.assign(requests.begin(), requests.end());
              cancel_step();
          };
          made.on_waited = [this](const std::string& client, uint32_t prompt_tokens) {
              waited_.push_back({client, {1, prompt_tokens}});
          };
          return made;
      }()) {
    publish();
}

Service::~Service() = default;

RequestId Service::submit(Request request) {
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    return submit(std::move(requests));
}

RequestId Service::submit(std::vector<Request> requests) {
    uint64_t tokens = 0;
    for (const Request& request : requests) {
        generator_.check(request);
        tokens += request.prompt.size();
    }
    generator_.find_breakers(requests);
    const std::scoped_lock lock(mutex_);
    if (closed_) fail(TSR_CANCELLED, "no more requests are accepted");
    if (status_.lost) fail(TSR_DEVICE_LOST, "nothing can be computed any more: {}", status_.last_error);
    const std::string& client = requests.front().client;
    if (!has_room(client, {requests.size(), tokens})) {
        const GeneratorCounters& c = status_.counters;
        const double each = c.finished ? c.busy_seconds / static_cast<double>(c.finished) : 1;
        throw QueueFull(
            fmt::format("{} requests with {} tokens wait already", waiting_.all().requests, waiting_.all().tokens),
            std::clamp(each, 1.0, 60.0));
    }
    waiting_.add(client, {requests.size(), tokens});
    const RequestId first = next_id_;
    for (Request& request : requests) inbox_.emplace_back(next_id_++, std::move(request));
    changed_.notify_one();
    return first;
}

// With mutex_ held.
bool Service::has_room(const std::string& client, const Waiting& more) const {
    const Waiting& all = waiting_.all();
    if (all.requests == 0) return true;
    const Waiting limit{options_.waiting_requests, options_.waiting_tokens};
    if (all.requests + more.requests <= limit.requests && all.tokens + more.tokens <= limit.tokens) return true;
    Waiting own = waiting_.of(client);
    own.requests += more.requests;
    own.tokens += more.tokens;
    const size_t left = 2 * limit.requests - std::min(all.requests, 2 * limit.requests);
    const uint64_t tokens_left = 2 * limit.tokens - std::min(all.tokens, 2 * limit.tokens);
    return left > 0 && own.requests <= std::max<size_t>(left / 2, 1) && own.tokens <= tokens_left;
}

void Service::cancel(RequestId id) {
    const std::scoped_lock lock(mutex_);
    if (id == 0 || id >= next_id_) return;
    cancelled_.insert(id);
    cancel_step();
    changed_.notify_one();
}

void Service::cancel_step() {
    const auto given_up = [&](RequestId id) { return stopped_ || cancelled_.contains(id); };
    if (!stepping_.empty() && std::ranges::all_of(stepping_, given_up)) engine_.cancel();
}

void Service::close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    changed_.notify_one();
}

void Service::stop() {
    const std::scoped_lock lock(mutex_);
    closed_ = stopped_ = true;
    cancel_step();
    changed_.notify_one();
}

ServiceStatus Service::status() const {
    const std::scoped_lock lock(mutex_);
    ServiceStatus status = status_;
    status.waiting = waiting_.all();
    return status;
}

Waiting Service::waiting_of(std::string_view client) const {
    const std::scoped_lock lock(mutex_);
    return waiting_.of(client);
}

void Service::take_inbox() {
    std::vector<std::pair<RequestId, Request>> inbox;
    std::set<RequestId> cancelled;
    bool stopped;
    {
        const std::scoped_lock lock(mutex_);
        inbox.swap(inbox_);
        cancelled.swap(cancelled_);
        stopped = stopped_;
    }
    for (auto& [id, request] : inbox) generator_.add(std::move(request), id);
    for (const RequestId id : cancelled) generator_.cancel(id);
    if (stopped) generator_.cancel_all();
}

void Service::between_steps(const std::function<void(Generator&)>& work) {
    Job job{&work};
    std::unique_lock lock(mutex_);
    if (closed_) fail(TSR_CANCELLED, "the server is being stopped");
    jobs_.push_back(&job);
    changed_.notify_one();
    job_done_.wait(lock, [&] { return job.done; });
    if (job.error) std::rethrow_exception(job.error);
}

void Service::do_jobs() {
    std::deque<Job*> jobs;
    {
        const std::scoped_lock lock(mutex_);
        jobs.swap(jobs_);
    }
    for (Job* const job : jobs) {
        try {
            generator_.wait_for_steps();
            (*job->work)(generator_);
        } catch (...) {
            job->error = std::current_exception();
        }
        const std::scoped_lock lock(mutex_);
        job->done = true;
        job_done_.notify_all();
    }
}

// Nobody waits for what will not be done.
void Service::end_jobs() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    for (Job* const job : std::exchange(jobs_, {})) {
        job->error = std::make_exception_ptr(Error(TSR_CANCELLED, "the server is being stopped"));
        job->done = true;
    }
    job_done_.notify_all();
}

void Service::publish() {
    ServiceStatus status;
    status.counters = generator_.counters();
    status.running = generator_.states();
    const PagedCache& cache = engine_.cache();
    status.pages = cache.page_count();
    status.free_pages = cache.free_pages();
    const PrefixTree& prefixes = generator_.prefixes();
    status.prefix_pages = prefixes.size();
    status.evictable_pages = prefixes.evictable();
    status.evictions = prefixes.evictions();
    status.kept = generator_.kept();
    status.chunk_rows = generator_.chunk_rows();
    status.compared = engine_.compared();
    if (const auto& error = generator_.last_error()) {
        status.last_error = error->what();
        status.lost = error->code() == TSR_DEVICE_LOST;
    }
    const std::scoped_lock lock(mutex_);
    if (status_.lost) {
        // Whatever fails afterwards.
        status.lost = true;
        status.last_error = std::move(status_.last_error);
    }
    status_ = std::move(status);
    for (const auto& [client, waited] : waited_) waiting_.remove(client, waited);
    waited_.clear();
}

void Service::run() {
    const std::shared_ptr<void> at_end(nullptr, [this](void*) { end_jobs(); });
    for (;;) {
        const uint64_t failed = generator_.counters().failed_steps;
        take_inbox();
        do_jobs();
        publish();
        bool more = false;
        try {
            more = generator_.step();
            if (generator_.counters().failed_steps > failed)
                log().error("a step failed, and its requests with it: {}", generator_.last_error()->what());
        } catch (const Error& error) {
            if (error.code() != TSR_CANCELLED) log().error("a step failed: {}", error.what());
            more = true;
        } catch (const std::bad_alloc&) {
            log().error("the system gave no more memory; all requests are ended");
            generator_.fail_all(Error(TSR_DOES_NOT_FIT, "the system gave no more memory"));
        }
        publish();
        if (more) continue;
        const PackingProgress packing = engine_.packing();
        std::unique_lock lock(mutex_);
        const auto news = [&] { return closed_ || !inbox_.empty() || !cancelled_.empty() || !jobs_.empty(); };
        if (closed_ && inbox_.empty() && jobs_.empty()) return;
        if (news()) continue;
        if (packing.done_bytes < packing.total_bytes) {
            lock.unlock();
            engine_.pack_one();
            continue;
        }
        lock.unlock();
        const PageKeeper::Left left = generator_.keep(kKeepSeconds);
        lock.lock();
        if (left == PageKeeper::Left::kSome || news()) continue;
        // What is being written is shown when it has been.
        if (status_.kept && status_.kept->waiting_pages > 0) {
            changed_.wait_for(lock, kKeepPause, news);
        } else {
            changed_.wait(lock, news);
        }
    }
}

}  // namespace tessera::session
