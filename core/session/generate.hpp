// Many requests over one engine at once.
#pragma once

#include "core/base/error.hpp"
#include "core/session/admission.hpp"
#include "core/session/chunk_cuts.hpp"
#include "core/session/drafts/drafting.hpp"
#include "core/session/generator_options.hpp"
#include "core/session/kept/slots.hpp"
#include "core/text/tokenizer.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tessera::session {

struct ChosenToken;

// Combines prompts and generations into steps, and shares cached prefixes.
//
// A step carries one token of each request that generates, and chunks of prompts of at most chunk_rows together. A
// prompt is cut by ChunkCuts, whatever else the step carries, so that its results do not depend on company. Requests
// wait in a queue that is fair by client. One is admitted when the pages of its prompt and one more can be had; it
// grows by pages. When none is free, cached prefixes that no request uses are forgotten first, those used longest ago;
// then the youngest requests give up theirs and are computed again later, of which the client notices only the delay.
// So the oldest request always progresses. A client that has nothing in steps gets a place, and pages, of the youngest
// requests of clients that have several; only what holds more than these could give makes it wait.
//
// A request whose hidden states are pooled has a prompt alone; its chunks are in steps of such requests, which take
// turns with those of others.
//
// Where devices alone compute, steps with chunks of prompts alone, of which no output is wanted, are not waited for: as
// many as the plan allows are under way at once, and before each of them others come in. Their tokens count as computed
// (progress, prefixes that others find) when they have ended.
//
// Where sources of drafts are given, a step carries tokens that a request may go on with besides, as rows whose logits
// are wanted. What the request's sampler draws from them in order is its answer as it is without: rows behind a token
// that was not drawn are taken out of the cache.
//
// One thread at a time. `engine` and `tokenizer` outlive the generator; its destructor removes its sequences and
// prefixes from the cache.
class Generator {
  public:
    Generator(Engine& engine, const text::Tokenizer& tokenizer, GeneratorOptions options = {});
    ~Generator();
    Generator(const Generator&) = delete;
    Generator& operator=(const Generator&) = delete;

    // Throws Error, taking nothing: TSR_INVALID_ARGUMENT for an empty prompt, one with tokens outside the vocabulary,
    // or sampling parameters that are not valid; TSR_DOES_NOT_FIT for a prompt that is longer than its context.
    RequestId add(Request request);
    // What add() checks. Any thread.
    void check(const Request& request) const;
    // Fills in Request::breakers where they are needed. Any thread.
    void find_breakers(std::span<Request> requests) const;
    // With an id that the caller has chosen, after check().
    void add(Request request, RequestId id);

    // Takes one step, or submits it. False: there is nothing to do. Throws what Engine::step throws unless the options
    // contain errors; requests of the failed step, and of others under way, stay as they were then and can be
    // cancelled. TSR_CANCELLED is always thrown.
    bool step();

    // Ends a request at once, with kCancelled, or when the steps under way have ended. Unknown ids are ignored: it may
    // just have ended. Not from inside a callback. Throws what step() throws if such a step fails.
    void cancel(RequestId id);
    void cancel_all();
    // Ends all requests as cancel_all() does, with kFailed and this error.
    void fail_all(const Error& error);

    // Steps until there is nothing left to do; when `cancelled` becomes true, between two steps, everything is
    // cancelled.
    void run(const std::atomic<bool>* cancelled = nullptr);

    // Copies pages that are to be kept, for about so long; for callers that have nothing else to do. Else a small share
    // of the time of steps goes to it.
    PageKeeper::Left keep(double seconds);
    // When all requests have ended: writes the rest, as long as `go_on` says so. Returns how many pages are left.
    uint64_t keep_rest(const std::function<bool()>& go_on);
    std::optional<KeptStatus> kept() const;  // nothing: no pages are kept
    // Where pages were to come later, after wait_for_steps(): what is cached and what will be is kept there. Null: they
    // do not come.
    void keep_in(std::shared_ptr<PageStore> pages);

    // Waits for all steps under way; if one fails its requests do.
    void wait_for_steps();
    // After wait_for_steps().
    Slots& slots() noexcept { return slots_; }
    PageKeeper* keeper() noexcept { return admission_.keeper(); }
    // As of Slots::erase, with the files of pages.
    Slots::Erased erase_slot(const std::string& space, uint32_t slot);

    size_t waiting() const noexcept { return admission_.waiting(); }
    size_t active() const noexcept { return admission_.active().size(); }
    uint32_t chunk_rows() const noexcept { return chunk_rows_; }
    const PrefixTree& prefixes() const noexcept { return admission_.prefixes(); }
    std::vector<RequestState> states() const;
    // Of the last step that failed and was contained.
    const std::optional<Error>& last_error() const noexcept { return last_error_; }

    const GeneratorCounters& counters() const noexcept { return counters_; }
    const GenerationTimings& timings() const noexcept { return timings_; }
    void reset_timings() noexcept { timings_ = {}; }

  private:
    // Tokens of one request in a step.
    struct Slice {
        Task* task;
        uint32_t rows;
        bool output;
        uint32_t drafted = 0;  // of the rows, those of a draft
    };
    // Tokens of drafts that the current step has verified, and those of them that were chosen.
    struct Drafted {
        uint32_t rows = 0, accepted = 0;
    };
    // A step that has begun, and that nobody has waited for.
    struct Begun {
        std::vector<Slice> slices;
        uint64_t prompt_tokens = 0;
    };

    uint32_t largest_chunk() const;
    bool computes_prompt(const Task& task) const;
    uint32_t cached(const Task& task) const;

    void gather();
    bool takes_hidden_step();
    std::vector<Slice> choose_slices();
    void make_drafts(std::span<const Slice> slices);
    void fit_draft(Task& task, std::span<const uint64_t> reserved) const;
    std::vector<Task*> prompts_in_turn() const;

    void do_step();
    void keep_beside(double seconds);
    double count_busy(std::chrono::steady_clock::time_point start, bool prompt);
    void compute();
    void begin();
    void take_ended();
    void settle();
    void lose_steps();
    template <typename Work>
    void contained(const Work& work);
    void progress(Task& task);
    void take_outputs(std::span<const std::span<const float>> outputs);
    void pool(Task& task, std::span<const std::span<const float>> states);
    void sample(Task& task, std::span<const std::span<const float>> logits) const;
    bool choose_tokens(Task& task, std::span<const float> logits) const;
    void make_constraint(Task& task) const;
    bool take_held();
    void wait_for_held() const;
    void score(Task& task, std::span<const float> logits) const;
    void take(Task& task);
    void take_token(Task& task, const ChosenToken& chosen);
    void verify(Task& task);
    void drop_rows(const Task& task, uint32_t length);
    void waited(const Task& task) const;
    // Without an error: with kCancelled.
    void give_up(Task& task, const Error* error);
    void end(RequestId id, const Error* error);
    void end_all(const Error* error);
    void finish(Task& task, FinishReason reason);
    void fail_step(const Error& error);
    void adapt_chunk(double seconds, bool mixed);

    Engine& engine_;
    const text::Tokenizer& tokenizer_;
    const GeneratorOptions options_;
    uint32_t chunk_rows_;
    ChunkCuts cuts_;
    GeneratorCounters counters_;
    GenerationTimings timings_;
    Admission admission_;
    Slots slots_;
    Drafting drafting_;
    Drafted drafted_;
    std::vector<BatchEntry> entries_;                  // of the current step
    std::vector<Task*> tasks_;                         // an entry each
    std::deque<Begun> under_way_;                      // steps, the oldest first
    std::chrono::steady_clock::time_point accounted_;  // up to when steps under way have been counted as busy
    double kept_seconds_ = 0;                          // that copies of pages may take now
    bool pages_later_;                                 // keep_in() is to come
    bool was_hidden_ = false;                          // the last step gave hidden states
    RequestId next_id_ = 1;
    std::optional<Error> last_error_;
};

}  // namespace tessera::session
