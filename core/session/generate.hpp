// Many requests over one engine at once.
#pragma once

#include "core/session/generation.hpp"
#include "core/text/tokenizer.hpp"

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <vector>

namespace tessera::session {

// Combines prompts and generations into steps, and shares cached prefixes: a prompt that begins like another sequence
// uses the whole pages of that sequence (or all of it, if the sequence has ended) instead of computing them again.
//
// A prompt is always cut at multiples of Engine::max_rows, so that its results do not depend on other requests. A
// request is admitted when the maximum of pages that it may need is free, in the order of add(); so none is ever
// interrupted for lack of pages. Generations wait for at most one step between two tokens.
//
// One thread at a time. `engine` and `tokenizer` outlive the generator; its destructor removes its sequences from the
// cache.
class Generator {
  public:
    Generator(Engine& engine, const text::Tokenizer& tokenizer);
    ~Generator();
    Generator(const Generator&) = delete;
    Generator& operator=(const Generator&) = delete;

    // Throws Error, taking nothing: TSR_INVALID_ARGUMENT for an empty prompt or one with tokens outside the vocabulary,
    // TSR_DOES_NOT_FIT for one that is longer than its context.
    RequestId add(Request request);

    // Takes one step. False: there is nothing to do. Throws what Engine::step throws; requests of the failed step stay
    // as they were and can be cancelled.
    bool step();

    // Ends a request at once, with kCancelled. Unknown ids are ignored: it may just have ended. Not from inside a
    // callback.
    void cancel(RequestId id);
    void cancel_all();

    // Steps until there is nothing left to do; when `cancelled` becomes true, between two steps, everything is
    // cancelled.
    void run(const std::atomic<bool>* cancelled = nullptr);

    size_t waiting() const noexcept { return waiting_.size(); }
    size_t active() const noexcept { return active_.size(); }
    const GenerationTimings& timings() const noexcept { return timings_; }
    void reset_timings() noexcept { timings_ = {}; }

  private:
    struct Task;
    // The sequence of an ended request; all of its tokens are cached.
    struct Kept {
        SequenceId sequence;
        uint32_t shared;  // tokens from the start whose pages another sequence may have, too
        std::vector<Token> tokens;
    };
    struct Prefix;

    void admit();
    bool admit(Task& task);
    Prefix find_prefix(const Task& task);
    bool make_room(uint64_t pages, const Kept* needed);
    uint64_t promised_pages() const;
    void gather();
    void gather_prompts(size_t& rows);
    void gather_generations(size_t& rows);
    void take(Task& task, std::span<const float> logits);
    void show(Task& task, std::string_view text);
    void finish(Task& task, FinishReason reason);

    Engine& engine_;
    const text::Tokenizer& tokenizer_;
    std::deque<std::unique_ptr<Task>> waiting_;
    std::vector<std::unique_ptr<Task>> active_;  // in order of admission
    std::list<Kept> kept_;                       // the one used last at the end
    std::vector<BatchEntry> entries_;            // of the current step
    std::vector<Task*> tasks_;                   // an entry each
    bool prompts_went_last_ = false;             // generations have waited for a step
    RequestId next_id_ = 1;
    GenerationTimings timings_;
};

}  // namespace tessera::session
