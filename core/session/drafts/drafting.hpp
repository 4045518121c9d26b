// Drafts of a generator's requests: asked for before a step, verified by it, and learned from.
#pragma once

#include "core/session/drafts/draft_control.hpp"
#include "core/session/drafts/draft_options.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace tessera::session {

struct Task;

// What drafts are made beside.
struct DraftStep {
    uint32_t others;              // rows of generation in the step, those of the tasks among them
    uint32_t rows;                // those that may be added, each with logits
    bool busy;                    // the step has rows of prompts, too
    double prompt_token_seconds;  // what tokens of prompts took each
};

// One thread at a time.
class Drafting {
  public:
    Drafting(const Engine& engine, DraftOptions options);

    // Whether drafts are made for the request at all.
    bool drafts(const Task& task) const noexcept;

    // Sets Task::foreseen and Task::draft of tasks for which drafts are made and of which one token is to be computed.
    void make(std::span<Task* const> tasks, const DraftStep& step);

    // Whether computed() is to be called behind a step of these tasks.
    bool wants_states(std::span<Task* const> tasks) const noexcept;
    // Engine::step() has returned after so long for these entries, a task each, and nothing has come of its logits yet.
    void computed(std::span<Task* const> tasks, std::span<const BatchEntry> entries, double seconds);

    // The step has ended, and Task::chosen is what the model chose behind the tokens of before.
    void learn(Task& task) noexcept;
    void forget(const Task& task) noexcept;

    // Of a step of generation alone, as of DraftControl::finished.
    void finished(uint32_t sequences, uint32_t drafted, uint32_t accepted, double seconds) noexcept;

    // Seconds that sources took since the last call.
    double take_seconds() noexcept { return std::exchange(seconds_, 0); }

  private:
    bool needs_states(Task& task) const noexcept;
    bool ask(DraftSource& source, std::span<DraftWish> wishes);
    void ask_costly(DraftSource& source, std::span<Task* const> tasks, std::span<DraftWish> wishes, uint32_t others);
    template <typename Work>
    bool without_failure(const DraftSource& source, const Work& work);
    uint32_t most_for(const Task& task) const noexcept;
    static void cut(DraftWish& wish, Task& task);

    const Engine& engine_;
    DraftOptions options_;
    uint32_t most_;  // of a draft
    DraftControl control_;
    const double states_share_;  // of the time of a step of a prompt, what states of all rows take
    double seconds_ = 0;
};

}  // namespace tessera::session
