// Generation for callers on many threads.
#pragma once

#include "core/session/generate.hpp"
#include "core/session/waiting_counts.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::session {

struct ServiceOptions {
    GeneratorOptions generator;  // on_step, on_waited and contain_errors are the service's
    // Of all clients, until the queue is full; as much again is for those who have little of it, see Service::submit().
    size_t waiting_requests = 256;
    uint64_t waiting_tokens = 1 << 22;  // of prompts
};

// The queue is full; nothing is wrong with the request.
class QueueFull : public std::runtime_error {
  public:
    QueueFull(const std::string& message, double seconds) : std::runtime_error(message), seconds_(seconds) {}
    // After which there may be room: an estimate.
    double seconds() const noexcept { return seconds_; }

  private:
    double seconds_;
};

// What metrics show; of the end of the last step, but what waits: of now.
struct ServiceStatus {
    GeneratorCounters counters;
    std::vector<RequestState> running;
    Waiting waiting;
    uint32_t pages = 0, free_pages = 0;
    uint64_t prefix_pages = 0, evictable_pages = 0, evictions = 0;
    std::optional<KeptStatus> kept;  // nothing: no pages are kept
    uint32_t chunk_rows = 0;
    StepComparisons compared;
    std::string last_error;  // of a step; once a device is lost, what told of that
    bool lost = false;       // a device is: every later step fails
};

// A Generator with an inbox. All methods but run() may be called from any thread and never wait for a step; the
// callbacks of requests are called by the thread of run().
class Service {
  public:
    // `engine` and `tokenizer` outlive the service.
    Service(Engine& engine, const text::Tokenizer& tokenizer, ServiceOptions options);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // Works until close() has been called and all requests have ended. Once, on the thread that made the engine.
    void run();

    // Throws QueueFull, or what Generator::add throws; Error(TSR_CANCELLED) after close(), Error(TSR_DEVICE_LOST) once
    // a device is lost.
    RequestId submit(Request request);
    // All of them or, if it throws, none; at least one, all of one client. Their ids follow each other; the first is
    // returned. Where nothing waits, there is room for any number. In a full queue there is room for one request of
    // each client that has none in it, and for half of what is left of the second half of the queue: so nobody's many
    // requests take the last place of another.
    RequestId submit(std::vector<Request> requests);

    // Ends a request with kCancelled: at the next node of the step if that works for requests alone that have been
    // cancelled, else after the step. Unknown ids are ignored.
    void cancel(RequestId id);

    // Calls work(generator) on the thread of run(), between two steps when none is under way, and waits for its end.
    // Throws what it throws; Error(TSR_CANCELLED) after close().
    void between_steps(const std::function<void(Generator&)>& work);

    // Accepts no more requests.
    void close();
    // The same, and cancels all.
    void stop();

    // After run(), on its thread: as of Generator.
    uint64_t keep_rest(const std::function<bool()>& go_on) { return generator_.keep_rest(go_on); }

    ServiceStatus status() const;
    Waiting waiting_of(std::string_view client) const;

  private:
    bool has_room(const std::string& client, const Waiting& more) const;
    void take_inbox();
    void do_jobs();
    void end_jobs();
    void publish();
    // With mutex_ held: ends the step early if nobody waits for it any more.
    void cancel_step();

    Engine& engine_;
    const ServiceOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::pair<RequestId, Request>> inbox_;
    // Work that its caller waits for.
    struct Job {
        const std::function<void(Generator&)>* work;
        std::exception_ptr error = nullptr;
        bool done = false;
    };
    std::deque<Job*> jobs_;
    std::condition_variable job_done_;
    WaitingCounts waiting_;  // the inbox, and what the status does not show as running or ended
    std::set<RequestId> cancelled_;
    std::vector<RequestId> stepping_;  // requests of the step that runs
    bool closed_ = false, stopped_ = false;
    RequestId next_id_ = 1;
    ServiceStatus status_;
    std::vector<std::pair<std::string, Waiting>> waited_;  // since the last status; of the thread of run()
    Generator generator_;
};

}  // namespace tessera::session
