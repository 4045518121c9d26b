#include "core/session/drafts/drafting.hpp"

#include "core/base/log.hpp"
#include "core/plan/predict.hpp"
#include "core/session/task.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace tessera::session {
namespace {

// Rows of steps whose times are known apart.
constexpr uint32_t kMostRows = 256;

std::vector<double> predicted_steps(const Engine& engine) {
    const Plan& plan = engine.plan();
    std::vector<double> seconds;
    for (uint32_t rows = 1; rows <= std::min(kMostRows, engine.max_rows()); ++rows)
        seconds.push_back(step_time(plan, rows, plan.options.max_tokens / 4, plan.prompt_rows_from <= 1).seconds);
    return seconds;
}

// By the plan, as it takes no step with states and without.
double share_of_states(const Engine& engine) {
    const Plan& plan = engine.plan();
    const bool prompt = engine.max_rows() >= plan.prompt_rows_from;
    const double with = step_time(plan, engine.max_rows(), 0, prompt, true).seconds;
    return with > 0 ? 1 - step_time(plan, engine.max_rows(), 0, prompt).seconds / with : 0;
}

}  // namespace

Drafting::Drafting(const Engine& engine, DraftOptions options)
    : engine_(engine),
      options_(std::move(options)),
      most_(std::min(options_.most, engine.rows_as_single() - 1)),
      control_(options_.sources.empty() ? std::vector<double>{1} : predicted_steps(engine)),
      states_share_(share_of_states(engine)) {}

uint32_t Drafting::most_for(const Task& task) const noexcept {
    const uint64_t tokens = task.tokens.size();
    uint64_t most = std::min(most_, task.request.drafts.most.value_or(most_));
    // The last token that is wanted is not foreseen but sampled, and so is the first that finds no room.
    most = std::min<uint64_t>(most, task.request.max_new_tokens - task.answer.new_tokens - 1);
    most = std::min<uint64_t>(most, task.limit - std::min<uint64_t>(task.limit, tokens));
    return static_cast<uint32_t>(most);
}

bool Drafting::drafts(const Task& task) const noexcept {
    return !options_.sources.empty() && most_ > 0 && task.request.drafts.most != 0u;
}

// What of the draft is known not to be chosen is cut: where a form forbids its first token, or forces others. What it
// allows behind that is known only when the model has chosen.
void Drafting::cut(DraftWish& wish, Task& task) {
    if (!task.constraint || wish.draft.empty()) return;
    try {
        if (!task.constraint->wait(Clock::now())) return;
        const auto forced = task.constraint->forced();
        const TokenMask allowed = task.constraint->allowed();
        const auto token = static_cast<size_t>(wish.draft.front().token);
        const bool fits = allowed.empty() || (token / 32 < allowed.size() && (allowed[token / 32] >> token % 32 & 1u));
        if (!forced.empty() || !fits) wish.draft.clear();
    } catch (const std::exception&) {
        wish.draft.clear();  // it is thrown again where the token is chosen
    }
}

// A source that fails is asked no more: answers are the same without it.
template <typename Work>
bool Drafting::without_failure(const DraftSource& source, const Work& work) {
    try {
        work();
        return true;
    } catch (const std::exception& error) {
        log().error("drafts of {} are no longer made, answers stay the same: {}", source.name(), error.what());
    }
    std::erase_if(options_.sources, [&](const auto& one) { return one.get() == &source; });
    return false;
}

bool Drafting::ask(DraftSource& source, std::span<DraftWish> wishes) {
    if (without_failure(source, [&] { source.propose(wishes); })) return true;
    for (DraftWish& wish : wishes) wish.draft.clear();
    return false;
}

bool Drafting::needs_states(Task& task) const noexcept {
    if (!drafts(task) || task.request.max_new_tokens <= 1) return false;
    // Of its whole text, or not at all.
    if (!task.gives_states) task.gives_states = options_.always || control_.may_compute();
    return *task.gives_states;
}

bool Drafting::wants_states(std::span<Task* const> tasks) const noexcept {
    return std::ranges::any_of(options_.sources, [](const auto& source) { return source->wants_states(); }) &&
           std::ranges::any_of(tasks, [&](Task* task) { return needs_states(*task); });
}

void Drafting::computed(std::span<Task* const> tasks, std::span<const BatchEntry> entries, double seconds) {
    for (const auto& source : std::vector(options_.sources)) {
        if (!source->wants_states()) continue;
        std::vector<DraftStates> given;
        bool prompts = false;
        for (size_t i = 0; i < entries.size(); ++i) {
            Task& task = *tasks[i];
            if (!needs_states(task)) continue;
            const auto states = engine_.states(i);
            if (states.empty()) continue;
            const auto rows = static_cast<uint32_t>(entries[i].tokens.size());
            prompts = prompts || rows > most_ + 1;
            given.push_back({task.answer.id, engine_.cache().length(*task.sequence) - rows, entries[i].tokens, states,
                             task.tokens});
        }
        if (given.empty()) continue;
        const auto start = Clock::now();
        without_failure(*source, [&] { source->computed(given); });
        if (prompts) control_.computed(states_share_ * seconds + seconds_since(start));
    }
}

// Asks for what the control finds worth it. Texts are read in a call of its own, so that it is known what that takes.
void Drafting::ask_costly(DraftSource& source, std::span<Task* const> tasks, std::span<DraftWish> wishes,
                          uint32_t others) {
    struct Call {
        std::vector<DraftWish> wishes;
        std::vector<size_t> of;
    };
    Call asks, reads;
    for (size_t i = 0; i < wishes.size(); ++i) {
        if (!wishes[i].draft.empty()) continue;
        DraftAcceptance& own = tasks[i]->acceptance;
        const uint32_t most = options_.always ? wishes[i].most : control_.worth_asking(own, others, wishes[i].most);
        if (most == 0) continue;
        DraftWish wish{wishes[i].id, wishes[i].tokens, most, {}};
        if (!options_.always) wish.may_read = control_.may_read(own, source.unread(wish));
        if (wish.may_read == 0) continue;
        const bool reading = !options_.always && wish.may_read > DraftControl::kReadAtOnce;
        if (reading) wish.most = 1;  // which costs nothing more
        Call& call = reading ? reads : asks;
        call.wishes.push_back(std::move(wish));
        call.of.push_back(i);
    }
    for (Call* const call : {&asks, &reads}) {
        if (call->wishes.empty()) continue;
        const auto start = Clock::now();
        if (!ask(source, call->wishes)) return;
        const double seconds = seconds_since(start);
        seconds_ += seconds;
        uint32_t drafted = 0, read = 0;
        for (const DraftWish& wish : call->wishes) {
            drafted += static_cast<uint32_t>(wish.draft.size());
            read += wish.read;
        }
        // What the first call tells all requests have of it.
        const bool first = !control_.knows_asking();
        if (call == &asks) control_.asked(drafted, seconds);
        const double each = seconds / static_cast<double>(call->of.size());
        for (size_t i = 0; i < call->of.size(); ++i) {
            DraftWish& wish = call->wishes[i];
            DraftAcceptance& own = tasks[call->of[i]]->acceptance;
            if (call == &reads) {
                control_.read(own, wish.may_read, wish.read, read > 0 ? seconds * wish.read / read : each);
            } else if (!first) {
                // Whoever got nothing does not pay for what others got.
                const auto of_it = static_cast<double>(wish.draft.size() + wish.read);
                own.earn(drafted + read > 0 ? -seconds * of_it / (drafted + read) : -each);
            }
            wishes[call->of[i]].draft = std::move(wish.draft);
        }
    }
}

void Drafting::make(std::span<Task* const> tasks, const DraftStep& step) {
    const auto [others, rows, busy, prompt_token_seconds] = step;
    std::vector<DraftWish> wishes;
    for (Task* const task : tasks) {
        wishes.push_back({task->answer.id, task->tokens, most_for(*task), {}});
        if (std::exchange(task->drafts_begun, true)) continue;
        const double prompt = prompt_token_seconds * (task->prompt_size - task->answer.reused_tokens);
        control_.prompt(task->acceptance, prompt);
        control_.passed(prompt);
    }
    for (const auto& source : std::vector(options_.sources)) {
        if (source->is_costly()) {
            // Beside a prompt what is drafted at no cost is enough.
            if (!busy) ask_costly(*source, tasks, wishes, others);
            continue;
        }
        const auto start = Clock::now();
        ask(*source, wishes);
        seconds_ += seconds_since(start);
    }
    for (size_t i = 0; i < tasks.size(); ++i) cut(wishes[i], *tasks[i]);
    std::vector<DraftChoice> choices;
    for (size_t i = 0; i < tasks.size(); ++i) {
        tasks[i]->foreseen = std::move(wishes[i].draft);
        const uint32_t least = std::max(tasks[i]->request.drafts.least.value_or(options_.least), 1u);
        choices.push_back({&tasks[i]->acceptance, tasks[i]->foreseen, wishes[i].most, least});
    }
    if (options_.always) {
        uint32_t left = rows;
        for (DraftChoice& choice : choices) {
            choice.chosen = std::min({static_cast<uint32_t>(choice.tokens.size()), choice.most, left});
            left -= choice.chosen;
        }
    } else {
        control_.choose(choices, others, rows, busy);
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
        tasks[i]->draft.clear();
        for (const DraftToken& one : choices[i].tokens.first(choices[i].chosen)) tasks[i]->draft.push_back(one.token);
    }
}

void Drafting::learn(Task& task) noexcept {
    if (!task.draft.empty()) control_.accepted(task.acceptance, task.verified);
    const size_t known = std::min(task.foreseen.size(), task.chosen.size());
    for (size_t i = 0; i < known; ++i) {
        const bool accepted = task.foreseen[i].token == task.chosen[i].token;
        control_.observe(task.acceptance, task.foreseen[i].kind, accepted);
        if (!accepted) break;
    }
    task.foreseen.clear();
}

void Drafting::forget(const Task& task) noexcept {
    for (const auto& source : options_.sources) source->forget(task.answer.id);
}

void Drafting::finished(uint32_t sequences, uint32_t drafted, uint32_t accepted, double seconds) noexcept {
    if (!options_.sources.empty()) control_.finished(sequences, drafted, accepted, seconds);
}

}  // namespace tessera::session
