#include "core/session/generate.hpp"

#include "core/session/cache_range.hpp"
#include "core/session/make_sampler.hpp"
#include "core/session/probabilities.hpp"
#include "core/session/task.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <utility>

namespace tessera::session {
namespace {

// What a step waits for constraints that are late, all together: less than an answer would lose without the step.
constexpr std::chrono::milliseconds kLateness(2);
// The same where nothing else is to be done; then somebody may have cancelled it. One after the other each has a share.
constexpr std::chrono::milliseconds kIdle(20), kShare(1);

// Returns false where the constraint is late. Throws what it throws.
bool wait_for_constraint(Task& task, Clock::time_point until) {
    try {
        return task.constraint->wait(until);
    } catch (const Error&) {
        task.constraint_failed = true;
        throw;
    }
}

}  // namespace

Generator::Generator(Engine& engine, const text::Tokenizer& tokenizer, GeneratorOptions options)
    : engine_(engine),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      chunk_rows_(std::min(options_.chunk_rows ? options_.chunk_rows : engine.max_rows(), largest_chunk())),
      // Chunks that follow measured times are cut anew after each step.
      cuts_(engine.plan(), chunk_rows_, options_.target_step_seconds > 0 ? 0 : options_.chunk_seconds),
      admission_(engine, tokenizer, counters_, timings_, options_.pages),
      slots_(engine, admission_.tree()),
      drafting_(engine, options_.drafts),
      pages_later_(options_.pages_later) {
    if (tokenizer.size() > engine.info().vocabulary) {
        fail(TSR_CORRUPT_DATA, "the vocabulary has {} tokens, the model's output only {}", tokenizer.size(),
             engine.info().vocabulary);
    }
    entries_.reserve(engine.max_sequences());
    tasks_.reserve(engine.max_sequences());
}

Generator::~Generator() {
    try {
        engine_.finish();
    } catch (const std::exception&) {
        // There is nobody left to be told.
    }
}

void Generator::check(const Request& request) const {
    if (request.prompt.empty()) fail(TSR_INVALID_ARGUMENT, "the prompt has no tokens; at least one is needed");
    for (const Token token : request.prompt) {
        if (token < 0 || static_cast<size_t>(token) >= tokenizer_.size()) {
            fail(TSR_INVALID_ARGUMENT, "token {} of the prompt is outside the vocabulary of {}", token,
                 tokenizer_.size());
        }
    }
    if (request.prompt_probabilities && request.reuse) {
        fail(TSR_INVALID_ARGUMENT,
             "prompt_probabilities with reuse: what is found in the cache has no probabilities; set reuse to false");
    }
    if (request.pooling && !engine_.gives_hidden_states())
        fail(TSR_UNSUPPORTED, "this model was loaded without its hidden states");
    if (request.pooling == Pooling::kMean && request.reuse) {
        fail(TSR_INVALID_ARGUMENT,
             "a mean of hidden states with reuse: what is found in the cache has none; set reuse to false");
    }
    if (!request.sampler) check_sampling_parameters(request.sampling, tokenizer_.size());
    const uint32_t most = engine_.sequence_tokens();
    const uint32_t limit = request.context == 0 ? most : std::min(request.context, most);
    if (request.prompt.size() <= limit) return;
    std::vector<Advice> advice = {{AdviceCode::kShorterPrompt, ""}, {AdviceCode::kLargerContext, ""}};
    if (limit == most && most == engine_.info().context && most < engine_.context()) {
        fail(TSR_DOES_NOT_FIT,
             Notice(fmt::format("the prompt has {} tokens, but the model was made for {} and one request gets no more",
                                request.prompt.size(), limit),
                    std::move(advice)));
    }
    fail(TSR_DOES_NOT_FIT,
         Notice(fmt::format("the prompt has {} tokens, the context holds {}", request.prompt.size(), limit),
                std::move(advice)));
}

void Generator::find_breakers(std::span<Request> requests) const {
    const Request* last = nullptr;
    for (Request& request : requests) {
        const SamplingParameters& p = request.sampling;
        if (p.dry_multiplier == 0.0f || request.sampler || request.breakers) continue;
        const bool same = last && last->sampling.dry_sequence_breakers == p.dry_sequence_breakers;
        request.breakers = same ? last->breakers : find_sequence_breakers(p.dry_sequence_breakers, tokenizer_);
        last = &request;
    }
}

RequestId Generator::add(Request request) {
    check(request);
    add(std::move(request), next_id_);
    return next_id_++;
}

void Generator::add(Request request, RequestId id) {
    admission_.push(std::make_unique<Task>(std::move(request), id, tokenizer_, engine_.sequence_tokens()));
}

uint32_t Generator::cached(const Task& task) const {
    return session::cached(task, engine_.cache());
}

// What a step holds beside one row for each other sequence.
uint32_t Generator::largest_chunk() const {
    return engine_.max_rows() - std::min(engine_.max_sequences(), engine_.max_rows()) + 1;
}

bool Generator::computes_prompt(const Task& task) const {
    const uint32_t length = cached(task);
    return length < task.prompt_size || length + 1 + task.forced < task.tokens.size();
}

bool Generator::step() {
    // Remains if an earlier step failed after some requests had ended.
    admission_.erase_done();
    admission_.resume(!under_way_.empty());
    const bool none_late = take_held();
    admission_.erase_done();
    admission_.take_kept(!under_way_.empty());
    admission_.admit(!under_way_.empty(), [this](const Task& task) { waited(task); });
    if (admission_.active().empty()) return false;
    for (const auto& task : admission_.active()) make_constraint(*task);
    if (admission_.take_waits_for_pages()) {
        entries_.clear();
        tasks_.clear();
    } else {
        gather();
    }
    if (!entries_.empty() || !under_way_.empty()) {
        do_step();
    } else if (!none_late) {
        wait_for_held();
    } else {
        admission_.wait_for_kept();
    }
    admission_.erase_done();
    return !admission_.active().empty() || admission_.waiting() > 0;
}

void Generator::do_step() {
    uint64_t prompt_tokens = 0, generated_tokens = 0;
    const size_t sequences = entries_.size();
    for (size_t i = 0; i < entries_.size(); ++i) {
        const size_t tokens = entries_[i].tokens.size();
        (computes_prompt(*tasks_[i]) ? prompt_tokens : generated_tokens) += tokens;
        counters_.most_tokens = std::max(counters_.most_tokens, cached(*tasks_[i]) + static_cast<uint32_t>(tokens));
    }
    // The time of a step with generation says how large the next chunks may be.
    const bool only_settles = entries_.empty() || (generated_tokens > 0 && !under_way_.empty());
    const auto begun = Clock::now();
    const auto start = under_way_.empty() ? begun - duration_of(drafting_.take_seconds()) : accounted_;
    contained([&] { only_settles ? settle() : compute(); });
    const double step_seconds = seconds_since(begun);
    const double seconds = count_busy(start, only_settles || prompt_tokens > 0);
    if (only_settles) return;
    const Drafted drafted = std::exchange(drafted_, {});
    generated_tokens -= drafted.rows - drafted.accepted;
    // Of a step with forced tokens nothing is known of drafts.
    if (prompt_tokens == 0 && generated_tokens == sequences + drafted.accepted)
        drafting_.finished(static_cast<uint32_t>(sequences), drafted.rows, drafted.accepted, step_seconds);
    counters_.drafted_tokens += drafted.rows;
    counters_.accepted_tokens += drafted.accepted;
    timings_.drafted_tokens += drafted.rows;
    timings_.accepted_tokens += drafted.accepted;
    if (prompt_tokens == 0) timings_.generated_tokens += generated_tokens;
    ++counters_.steps;
    counters_.sequences += sequences;
    counters_.generated_tokens += generated_tokens;
    adapt_chunk(seconds, prompt_tokens > 0 && generated_tokens > 0);
    keep_beside(seconds);
}

void Generator::wait_for_steps() {
    if (under_way_.empty()) return;
    contained([&] { settle(); });
    count_busy(accounted_, true);  // only chunks of prompts are under way
}

// The time since then as work of the engine; steps under way have been counted up to now.
double Generator::count_busy(Clock::time_point start, bool prompt) {
    accounted_ = Clock::now();
    const double seconds = std::chrono::duration<double>(accounted_ - start).count();
    counters_.busy_seconds += seconds;
    (prompt ? counters_.prompt_seconds : counters_.generation_seconds) += seconds;
    (prompt ? timings_.prompt_seconds : timings_.generation_seconds) += seconds;
    return seconds;
}

// Does what may fail, with the requests that then have failed.
template <typename Work>
void Generator::contained(const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        lose_steps();
        if (!options_.contain_errors || error.code() == TSR_CANCELLED) throw;
        fail_step(error);
    } catch (const std::bad_alloc&) {
        lose_steps();
        if (!options_.contain_errors) throw;
        fail_step(Error(TSR_DOES_NOT_FIT, "the system gave no more memory"));
    } catch (...) {
        lose_steps();
        throw;
    }
}

// A step without outputs is not waited for.
void Generator::compute() {
    begin();
    if (options_.on_step) {
        std::vector<RequestId> ids;
        for (const Begun& step : under_way_) {
            for (const Slice& slice : step.slices) {
                if (std::ranges::find(ids, slice.task->answer.id) == ids.end()) ids.push_back(slice.task->answer.id);
            }
        }
        options_.on_step(ids);
    }
    std::vector<std::span<const float>> outputs;
    const bool states = drafting_.wants_states(tasks_);
    if (states || std::ranges::any_of(entries_, &BatchEntry::output)) {
        const auto start = Clock::now();
        outputs = engine_.step(entries_, states);
        if (states) drafting_.computed(tasks_, entries_, seconds_since(start));
    } else {
        engine_.submit(entries_);
    }
    if (options_.on_step) options_.on_step({});
    take_ended();
    take_outputs(outputs);
}

void Generator::begin() {
    Begun& step = under_way_.emplace_back();
    for (size_t i = 0; i < entries_.size(); ++i) {
        const auto rows = static_cast<uint32_t>(entries_[i].tokens.size());
        if (computes_prompt(*tasks_[i])) {
            step.prompt_tokens += rows;
            tasks_[i]->prompt_step = counters_.steps + 1;
        }
        step.slices.push_back({tasks_[i], rows, entries_[i].output, static_cast<uint32_t>(tasks_[i]->draft.size())});
    }
    for (const Slice& slice : step.slices) slice.task->under_way += slice.rows;
}

void Generator::take_ended() {
    while (under_way_.size() > engine_.under_way()) {
        const Begun step = std::move(under_way_.front());
        under_way_.pop_front();
        counters_.prompt_tokens += step.prompt_tokens;
        timings_.prompt_tokens += step.prompt_tokens;
        for (const Slice& slice : step.slices) slice.task->under_way -= slice.rows - slice.drafted;
        for (const Slice& slice : step.slices) progress(*slice.task);
    }
}

// Waits for all steps under way.
void Generator::settle() {
    entries_.clear();
    tasks_.clear();
    engine_.finish();
    take_ended();
}

// After a failure: the requests of all steps that were under way are those of the failed step.
void Generator::lose_steps() {
    if (options_.on_step) options_.on_step({});
    try {
        engine_.finish();  // where it was not the engine that failed
    } catch (const std::exception&) {
        // One failure is reported.
    }
    for (const Begun& step : under_way_) {
        for (const Slice& slice : step.slices) {
            if (std::ranges::find(tasks_, slice.task) == tasks_.end()) tasks_.push_back(slice.task);
        }
    }
    under_way_.clear();
    // Those of a step that has ended, too, if what follows it failed before its drafts were verified.
    for (Task* const task : tasks_) {
        task->under_way = 0;
        drop_rows(*task, static_cast<uint32_t>(task->tokens.size()));
        task->draft.clear();
    }
}

void Generator::adapt_chunk(double seconds, bool mixed) {
    if (options_.target_step_seconds <= 0 || !mixed) return;
    const uint32_t largest = largest_chunk();
    const double rows = chunk_rows_ * options_.target_step_seconds / std::max(seconds, 1e-6);
    // Half of the way, since one step's time is not the next one's.
    const double next = (chunk_rows_ + rows) / 2;
    const auto whole =
        static_cast<uint32_t>(std::clamp(next, 0.0, double{1 << 20})) / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS;
    chunk_rows_ = std::clamp(whole, std::min<uint32_t>(TSR_PAGE_TOKENS, largest), largest);
    cuts_ = ChunkCuts(chunk_rows_);
}

void Generator::fail_step(const Error& error) {
    ++counters_.failed_steps;
    last_error_ = error;
    for (Task* task : tasks_) {
        if (task->done) continue;
        task->answer.error = error.what();
        task->answer.error_code = error.code();
        finish(*task, FinishReason::kFailed);
    }
}

// A step with tokens of the task has ended.
void Generator::progress(Task& task) {
    admission_.remember(task);
    if (!task.request.on_prompt || task.answer.new_tokens > 0) return;
    task.request.on_prompt({std::min(computed(task, engine_.cache()), task.prompt_size), task.prompt_size,
                            task.answer.reused_tokens, seconds_since(task.admitted)});
}

void Generator::take_outputs(std::span<const std::span<const float>> outputs) {
    std::vector<std::pair<Task*, std::span<const std::span<const float>>>> sampling;
    size_t output = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].hidden && entries_[i].output) {
            const size_t count = entries_[i].all_outputs ? entries_[i].tokens.size() : 1;
            pool(*tasks_[i], outputs.subspan(output, count));
            output += count;
            continue;
        }
        if (!entries_[i].output) continue;
        const size_t count = tasks_[i]->draft.size() + 1;
        sampling.emplace_back(tasks_[i], outputs.subspan(output, count));
        output += count;
    }
    const auto until = Clock::now() + kLateness;
    for (const auto& [task, logits] : sampling) task->waits_until = until;
    const auto work = [&](size_t i) {
        const auto& [task, logits] = sampling[i];
        task->scores() ? score(*task, logits.front()) : sample(*task, logits);
    };
    if (sampling.size() == 1) {
        work(0);
    } else {
        engine_.each_on_team(sampling.size(), work);
    }
    for (const auto& [task, logits] : sampling) take(*task);
}

// Of a chunk of the prompt the states that are wanted.
void Generator::pool(Task& task, std::span<const std::span<const float>> states) {
    const uint32_t end = cached(task);
    // A request that gave up its pages is computed anew.
    if (end == states.size() || *task.request.pooling == Pooling::kLast) task.pooled.assign(states.front().size(), 0);
    for (const std::span<const float> state : states) {
        for (size_t i = 0; i < state.size(); ++i) task.pooled[i] += double{state[i]};
    }
    if (end < task.prompt_size) return;
    const double count = *task.request.pooling == Pooling::kMean ? task.prompt_size : 1;
    for (const double sum : task.pooled) task.answer.embedding.push_back(static_cast<float>(sum / count));
    task.answer.prompt_seconds = seconds_since(task.admitted);
    finish(task, FinishReason::kEmbedded);
}

// On any worker: everything about the task alone. `logits`: behind the last of its tokens, and behind each of its
// draft, of which those count that are behind tokens that were chosen.
void Generator::sample(Task& task, std::span<const std::span<const float>> logits) const {
    task.chosen.clear();
    task.verified = 0;
    if (task.request.max_new_tokens == 0 || task.error) return;
    try {
        for (;; ++task.verified) {
            const auto known = logits[task.verified].first(tokenizer_.size());
            if (task.constraint && !wait_for_constraint(task, task.waits_until)) {
                task.held_logits.assign(known.begin(), known.end());
                return;
            }
            const bool forced = choose_tokens(task, known);
            // Forced tokens are computed together, as they are without a draft.
            if (forced || task.verified == task.draft.size()) return;
            const Token token = task.chosen.back().token;
            if (token != task.draft[task.verified] || tokenizer_.ends_generation(token)) return;
        }
    } catch (const Error& error) {
        task.error = error;
    }
}

// The constraint is not late. Whether what was chosen, a token or several, was forced.
bool Generator::choose_tokens(Task& task, std::span<const float> logits) const {
    Sampler& sampler = *task.request.sampler;
    std::span<const Token> forced;
    if (task.constraint) forced = task.constraint->forced();
    // Each has probabilities of its own.
    if (task.request.probabilities) forced = forced.first(std::min<size_t>(forced.size(), 1));
    std::vector<Token> accepted(forced.begin(), forced.end());
    if (forced.empty()) {
        try {
            accepted.push_back(sampler.sample(logits, task.constraint ? task.constraint->allowed() : TokenMask()));
        } catch (const Error& error) {
            throw with_cache_advice(error, engine_.plan().options);
        }
    }
    for (const Token token : accepted) sampler.accept(token);
    for (const Token token : accepted) {
        task.chosen.push_back({token, {}});
        if (!task.request.probabilities) continue;
        task.chosen.back().probabilities =
            task.request.sampled_probabilities && forced.empty()
                ? probabilities_of(sampler.candidates(), token, *task.request.probabilities)
                : probabilities_of(logits, token, *task.request.probabilities);
    }
    if (task.constraint) task.constraint->accept(accepted);
    return !forced.empty();
}

void Generator::make_constraint(Task& task) const {
    if (!task.request.make_constraint || task.constraint || task.error) return;
    try {
        task.constraint = task.request.make_constraint();
    } catch (const Error& error) {
        task.error = error;
        task.constraint_failed = true;
    }
}

// Takes tokens of those whose constraints were late and are no more. False: some still are.
bool Generator::take_held() {
    bool all = true;
    for (const auto& task : admission_.active()) {
        if (task->done || task->held_logits.empty()) continue;
        task->chosen.clear();
        try {
            if (!wait_for_constraint(*task, Clock::now())) {
                all = false;
                continue;
            }
            choose_tokens(*task, task->held_logits);
        } catch (const Error& error) {
            task->error = error;
        }
        task->held_logits = {};
        take(*task);
    }
    return all;
}

// Until one of them is known, or for a while: nothing else is to be done.
void Generator::wait_for_held() const {
    const auto end = Clock::now() + kIdle;
    while (Clock::now() < end) {
        for (const auto& task : admission_.active()) {
            if (task->held_logits.empty()) continue;
            try {
                if (task->constraint->wait(std::min(end, Clock::now() + kShare))) return;
            } catch (const Error&) {
                return;  // it is thrown again where the token is chosen
            }
        }
    }
}

// Of the prompt's next token.
void Generator::score(Task& task, std::span<const float> logits) const {
    try {
        task.probabilities = probabilities_of(logits.first(tokenizer_.size()), task.tokens[task.scored],
                                              *task.request.prompt_probabilities);
    } catch (const Error& error) {
        task.error = error;
    }
}

void Generator::take(Task& task) {
    Answer& answer = task.answer;
    verify(task);
    for (size_t i = 0; i < task.chosen.size() && !task.done; ++i) take_token(task, task.chosen[i]);
    if (task.done) return;
    if (task.error) {
        if (!options_.contain_errors) throw Error(*task.error);
        answer.error = task.error->what();
        answer.error_code = task.error->code();
        answer.constraint_failed = task.constraint_failed;
        return finish(task, FinishReason::kFailed);
    }
    if (task.scores()) {
        ++task.scored;
        if (task.request.on_prompt_probabilities) task.request.on_prompt_probabilities(task.probabilities);
        return;
    }
    if (task.request.max_new_tokens == 0) return finish(task, FinishReason::kLength);
    task.forced = task.held_logits.empty() ? static_cast<uint32_t>(task.tokens.size()) - cached(task) - 1 : 0;
}

// Takes the rows of a draft that the step has computed out of the cache again, but those of tokens that were chosen.
void Generator::verify(Task& task) {
    drafting_.learn(task);
    if (task.draft.empty()) return;
    const auto rows = static_cast<uint32_t>(task.draft.size());
    drop_rows(task, static_cast<uint32_t>(task.tokens.size()) + task.verified);
    task.under_way -= rows;
    task.draft.clear();
    task.answer.drafted_tokens += rows;
    task.answer.accepted_tokens += task.verified;
    drafted_.rows += rows;
    drafted_.accepted += task.verified;
}

void Generator::drop_rows(const Task& task, uint32_t length) {
    if (task.sequence && cached(task) > length) engine_.cache().truncate(*task.sequence, length);
}

void Generator::take_token(Task& task, const ChosenToken& chosen) {
    const Token token = chosen.token;
    Answer& answer = task.answer;
    if (answer.new_tokens++ == 0) {
        answer.first_token_seconds = seconds_since(task.arrived);
        answer.prompt_seconds = seconds_since(task.admitted);
    }
    const bool ends = tokenizer_.ends_generation(token);
    if (ends) {
        if (task.request.show_control && task.request.show_end) task.shown.push_end(token);
        return finish(task, FinishReason::kEndOfText);
    }
    task.tokens.push_back(token);
    task.shown.push(token, chosen.probabilities);
    if (task.request.stop.stopped()) return finish(task, FinishReason::kStopString);
    if (answer.new_tokens >= task.request.max_new_tokens) return finish(task, FinishReason::kLength);
    if (task.tokens.size() > task.limit) return finish(task, FinishReason::kContextFull);
    if (answer.has_new_line && seconds_since(task.arrived) - answer.first_token_seconds > task.request.line_seconds)
        return finish(task, FinishReason::kTimeUp);
}

void Generator::finish(Task& task, FinishReason reason) {
    task.shown.finish();
    // A stop string may be complete only now.
    Answer& answer = task.answer;
    answer.reason = task.request.stop.stopped() ? FinishReason::kStopString : reason;
    answer.stop_string = task.request.stop.match();
    answer.seconds = seconds_since(task.arrived);
    // Of a draft that was accepted beyond the end.
    drop_rows(task, static_cast<uint32_t>(task.tokens.size()));
    admission_.suspend(task);
    drafting_.forget(task);
    ++counters_.finished;
    if (reason == FinishReason::kCancelled) ++counters_.cancelled;
    if (reason == FinishReason::kFailed) ++counters_.failed;
    answer.tokens = std::move(task.tokens);
    if (options_.slots) slots_.remember(task.request.space, task.request.slot, answer.tokens);
    task.done = true;
    if (task.request.on_finish) task.request.on_finish(answer);
}

void Generator::cancel(RequestId id) {
    end(id, nullptr);
}

void Generator::cancel_all() {
    end_all(nullptr);
}

void Generator::fail_all(const Error& error) {
    end_all(&error);
}

void Generator::waited(const Task& task) const {
    if (options_.on_waited) options_.on_waited(task.request.client, task.prompt_size);
}

void Generator::give_up(Task& task, const Error* error) {
    if (!error) return finish(task, FinishReason::kCancelled);
    task.answer.error = error->what();
    task.answer.error_code = error->code();
    finish(task, FinishReason::kFailed);
}

void Generator::end(RequestId id, const Error* error) {
    const auto is_it = [&](const auto& task) { return task->answer.id == id; };
    if (const auto at = std::ranges::find_if(admission_.active(), is_it); at != admission_.active().end()) {
        if ((*at)->under_way > 0) {
            contained([&] { settle(); });
            count_busy(accounted_, true);  // only chunks of prompts are under way
        }
        if (!(*at)->done) give_up(**at, error);
        admission_.active().erase(at);
        return;
    }
    const std::unique_ptr<Task> waiting = admission_.take_waiting(id);
    if (!waiting) return;
    waited(*waiting);
    give_up(*waiting, error);
}

void Generator::end_all(const Error* error) {
    while (!admission_.active().empty()) end(admission_.active().front()->answer.id, error);
    for (const auto& task : admission_.take_all_waiting()) {
        waited(*task);
        give_up(*task, error);
    }
}

void Generator::run(const std::atomic<bool>* cancelled) {
    while (step()) {
        if (cancelled && cancelled->load(std::memory_order_relaxed)) cancel_all();
    }
}

std::vector<RequestState> Generator::states() const {
    std::vector<RequestState> states;
    for (const auto& task : admission_.active()) {
        states.push_back({task->answer.id, task->request.client, task->prompt_size, computed(*task, engine_.cache()),
                          task->answer.new_tokens, task->answer.reused_tokens, !computes_prompt(*task), task->suspended,
                          seconds_since(task->arrived)});
    }
    return states;
}

// The requests whose prompts are to be computed: the first of each client, the second of each, and so on; among them
// that of the client whose prompts have waited longest. So a short prompt waits for one chunk of another client's.
std::vector<Task*> Generator::prompts_in_turn() const {
    std::map<std::string_view, uint64_t> served;  // the last step with rows of a prompt of the client
    for (const auto& task : admission_.active()) {
        uint64_t& last = served[task->request.client];
        last = std::max(last, task->prompt_step);
    }
    struct Turn {
        size_t rank;
        uint64_t served;
        Task* task;
    };
    std::map<std::string_view, size_t> ranks;
    std::vector<Turn> turns;
    for (const auto& task : admission_.active()) {
        if (task->suspended || !computes_prompt(*task) || !task->held_logits.empty()) continue;
        const std::string_view client = task->request.client;
        turns.push_back({ranks[client]++, served[client], task.get()});
    }
    std::ranges::stable_sort(turns, {}, [](const Turn& turn) { return std::pair(turn.rank, turn.served); });
    std::vector<Task*> tasks;
    for (const Turn& turn : turns) tasks.push_back(turn.task);
    return tasks;
}

// Whether the next step gives hidden states, not logits. Where both are wanted, they take turns.
bool Generator::takes_hidden_step() {
    bool some = false, others = false;
    for (const auto& task : admission_.active()) {
        // One whose pages are being read has no rows yet.
        if (!task->suspended && !task->reading) (task->request.pooling ? some : others) = true;
    }
    was_hidden_ = some && !(others && was_hidden_);
    return was_hidden_;
}

std::vector<Generator::Slice> Generator::choose_slices() {
    const bool hidden = takes_hidden_step();
    std::vector<Slice> slices;
    // A token of a prompt that is scored is a row of its own, like an answer's, and takes nothing of the chunk.
    const auto scores = [this](const Task& task) { return task.scores() && cached(task) + 1 == task.scored; };
    for (const auto& task : admission_.active()) {
        if (task->suspended || !task->sequence || (computes_prompt(*task) && !scores(*task)) || hidden) continue;
        if (task->held_logits.empty()) slices.push_back({task.get(), 1, true});
    }
    size_t rows = engine_.max_rows() - slices.size();
    // Tokens that were forced are computed with the one before them.
    for (Slice& slice : slices) {
        if (slice.task->scores()) continue;
        const size_t left = slice.task->tokens.size() - cached(*slice.task);
        const size_t more = std::min(left - 1, rows);
        slice.rows += static_cast<uint32_t>(more);
        slice.output = slice.rows == left;
        rows -= more;
    }
    // Chunks far into a prompt have fewer rows and take as long, so what is left of a step is counted in chunks.
    double chunks = 1 + 1e-6;
    for (Task* task : prompts_in_turn()) {
        if (task->request.pooling.has_value() != hidden) continue;
        if (task->sequence ? scores(*task) : !admission_.start(*task)) continue;
        const uint32_t begin = cached(*task);
        const auto size = static_cast<uint32_t>(task->tokens.size());
        uint32_t end = std::min(size, cuts_.after(begin));
        const bool first_score = scores(*task);  // of one that has just been given its sequence
        if (task->scores()) end = first_score ? begin + 1 : std::min(end, task->scored - 1);
        const double share = static_cast<double>(end - begin) / cuts_.rows_at(begin);
        if (end - begin > rows || share > chunks) continue;
        const bool output = end == size || first_score || task->request.pooling == Pooling::kMean;
        slices.push_back({task, end - begin, output});
        rows -= end - begin;
        chunks -= share;
    }
    return slices;
}

// Of requests of which one token is to be computed, in what is left of the step.
void Generator::make_drafts(std::span<const Slice> slices) {
    std::vector<Task*> tasks;
    size_t rows = 0, generation = 0, outputs = 0;
    for (const Slice& slice : slices) {
        slice.task->draft.clear();
        rows += slice.rows;
        outputs += slice.output ? 1 : 0;
        if (computes_prompt(*slice.task)) continue;
        generation += slice.rows;
        if (slice.rows == 1 && slice.output && drafting_.drafts(*slice.task)) tasks.push_back(slice.task);
    }
    const size_t left = std::min(engine_.max_rows() - std::min<size_t>(rows, engine_.max_rows()),
                                 engine_.max_outputs() - std::min<size_t>(outputs, engine_.max_outputs()));
    const double token_seconds =
        counters_.prompt_seconds / static_cast<double>(std::max<uint64_t>(counters_.prompt_tokens, 1));
    if (!tasks.empty() && left > 0)
        drafting_.make(
            tasks, {static_cast<uint32_t>(generation), static_cast<uint32_t>(left), rows > generation, token_seconds});
}

// A draft takes no page that is not free: what is left of its token's page is enough for the next steps.
void Generator::fit_draft(Task& task, std::span<const uint64_t> reserved) const {
    const PagedCache& cache = engine_.cache();
    const auto fits = [&](uint32_t rows) {
        for (GroupIndex group = 0; group < cache.groups(); ++group) {
            const uint64_t needed = cache.pages_to_append(*task.sequence, rows, group);
            if (needed > cache.pages_to_append(*task.sequence, 1, group) &&
                reserved[group] + needed > cache.free_pages(group))
                return false;
        }
        return true;
    };
    while (!task.draft.empty() && !fits(1 + static_cast<uint32_t>(task.draft.size()))) task.draft.pop_back();
    if (task.draft.empty()) return;
    task.rows.assign(task.tokens.end() - 1, task.tokens.end());
    task.rows.insert(task.rows.end(), task.draft.begin(), task.draft.end());
}

void Generator::gather() {
    entries_.clear();
    tasks_.clear();
    std::vector<Slice> slices = choose_slices();
    make_drafts(slices);
    // By age, so that older requests take pages from younger ones that have no part in this step yet.
    std::vector<const Task*> ages;
    for (const auto& task : admission_.active()) ages.push_back(task.get());
    std::ranges::sort(slices, {},
                      [&](const Slice& slice) { return std::ranges::find(ages, slice.task) - ages.begin(); });
    const PagedCache& cache = engine_.cache();
    std::vector<uint64_t> pages(cache.groups(), 0), reserved = pages;  // a group each
    for (const Slice& slice : slices) {
        Task& task = *slice.task;
        if (!task.sequence) continue;  // an older one has taken its pages
        fit_draft(task, reserved);
        const uint32_t rows = slice.rows + static_cast<uint32_t>(task.draft.size());
        const bool fits = admission_.make_room(task, reserved, rows, !under_way_.empty());
        for (GroupIndex group = 0; group < cache.groups(); ++group)
            pages[group] = reserved[group] + cache.pages_to_append(*task.sequence, rows, group);
        if (!fits) {
            if (!under_way_.empty()) {
                // No request gives up pages that steps under way write to.
                entries_.clear();
                tasks_.clear();
                return;
            }
            // A slot that is saved or restored holds pages that others get when that has ended.
            if (&task != admission_.active().front().get() || slots_.moving()) continue;
            // All others have given up theirs, so pages are held by nobody who is known here.
            GroupIndex short_of = 0;
            while (short_of + 1 < cache.groups() && cache.free_pages(short_of) >= pages[short_of]) ++short_of;
            const Error error(
                TSR_DOES_NOT_FIT,
                fmt::format("{} more pages of the cache are needed, {} of {} are free and no other can be had",
                            pages[short_of] - reserved[short_of], cache.free_pages(short_of) - reserved[short_of],
                            cache.page_count(short_of)));
            if (!options_.contain_errors) throw Error(error);
            give_up(task, &error);
            continue;
        }
        reserved = pages;
        const bool drafted = !task.draft.empty();
        const std::span<const Token> tokens =
            drafted ? std::span<const Token>(task.rows) : std::span(task.tokens).subspan(cached(task), rows);
        entries_.push_back({*task.sequence, tokens, slice.output, drafted || task.request.pooling == Pooling::kMean,
                            task.request.pooling.has_value()});
        tasks_.push_back(&task);
    }
}

}  // namespace tessera::session
