#include "core/session/generate.hpp"

#include "core/session/make_sampler.hpp"
#include "core/session/probabilities.hpp"
#include "core/session/task.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace tessera::session {
namespace {

// Of a round of the queue, and what an answer counts beside its prompt, in tokens.
constexpr uint64_t kQuantum = 256;
constexpr uint64_t kAnswerCost = 256;
constexpr std::chrono::seconds kAge(60);

}  // namespace

Generator::Generator(Engine& engine, const text::Tokenizer& tokenizer, GeneratorOptions options)
    : engine_(engine),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      piece_rows_(std::min(options_.piece_rows ? options_.piece_rows : engine.max_rows(), largest_piece())),
      // Pieces that follow measured times are cut anew after each step.
      cuts_(engine.plan(), piece_rows_, options_.target_step_seconds > 0 ? 0 : options_.piece_seconds),
      tree_(engine.cache()),
      queue_(kQuantum, kAge) {
    if (tokenizer.size() > engine.info().vocabulary) {
        fail(TSR_CORRUPT_DATA, "the vocabulary has {} tokens, the model's output only {}", tokenizer.size(),
             engine.info().vocabulary);
    }
    active_.reserve(engine.max_sequences());
    entries_.reserve(engine.max_sequences());
    tasks_.reserve(engine.max_sequences());
}

Generator::~Generator() {
    try {
        engine_.finish();
    } catch (const std::exception&) {
        // There is nobody left to be told.
    }
    for (const auto& task : active_) {
        if (task->sequence) engine_.cache().remove(*task->sequence);
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
    const std::string client = request.client;
    const uint64_t cost = request.prompt.size() + std::min<uint64_t>(request.max_new_tokens, kAnswerCost);
    queue_.push(client, cost, std::make_unique<Task>(std::move(request), id, tokenizer_, engine_.sequence_tokens()),
                Clock::now());
}

uint32_t Generator::cached(const Task& task) const {
    return task.sequence ? engine_.cache().length(*task.sequence) : 0;
}

uint32_t Generator::computed(const Task& task) const {
    return cached(task) - task.under_way;
}

// What a step holds beside one row for each other sequence.
uint32_t Generator::largest_piece() const {
    return engine_.max_rows() - std::min(engine_.max_sequences(), engine_.max_rows()) + 1;
}

bool Generator::computes_prompt(const Task& task) const {
    const uint32_t length = cached(task);
    return length < task.prompt_size || length + 1 < task.tokens.size();
}

void Generator::erase_done() {
    std::erase_if(active_, [](const auto& task) { return task->done; });
}

bool Generator::step() {
    // Remains if an earlier step failed after some requests had ended.
    erase_done();
    resume();
    admit();
    if (active_.empty()) return false;
    if (std::exchange(waits_for_pages_, false)) {
        entries_.clear();
        tasks_.clear();
    } else {
        gather();
    }
    if (!entries_.empty() || !under_way_.empty()) do_step();
    erase_done();
    return !active_.empty() || !queue_.empty();
}

void Generator::do_step() {
    uint64_t prompt_tokens = 0, generated_tokens = 0;
    const size_t sequences = entries_.size();
    for (size_t i = 0; i < entries_.size(); ++i) {
        const size_t tokens = entries_[i].tokens.size();
        (computes_prompt(*tasks_[i]) ? prompt_tokens : generated_tokens) += tokens;
        counters_.most_tokens = std::max(counters_.most_tokens, cached(*tasks_[i]) + static_cast<uint32_t>(tokens));
    }
    // The time of a step with generation says how large the next pieces may be.
    const bool only_settles = entries_.empty() || (generated_tokens > 0 && !under_way_.empty());
    const auto start = under_way_.empty() ? Clock::now() : accounted_;
    contained([&] { only_settles ? settle() : compute(); });
    const double seconds = count_busy(start, only_settles || prompt_tokens > 0);
    if (only_settles) return;
    if (prompt_tokens == 0) timings_.generated_tokens += generated_tokens;
    ++counters_.steps;
    counters_.sequences += sequences;
    counters_.generated_tokens += generated_tokens;
    adapt_piece(seconds, prompt_tokens > 0 && generated_tokens > 0);
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
            for (const Part& part : step.parts) {
                if (std::ranges::find(ids, part.task->answer.id) == ids.end()) ids.push_back(part.task->answer.id);
            }
        }
        options_.on_step(ids);
    }
    std::vector<std::span<const float>> outputs;
    if (std::ranges::any_of(entries_, &BatchEntry::output)) {
        outputs = engine_.step(entries_);
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
        step.parts.push_back({tasks_[i], rows, entries_[i].output});
    }
    for (const Part& part : step.parts) part.task->under_way += part.rows;
}

void Generator::take_ended() {
    while (under_way_.size() > engine_.under_way()) {
        const Begun step = std::move(under_way_.front());
        under_way_.pop_front();
        counters_.prompt_tokens += step.prompt_tokens;
        timings_.prompt_tokens += step.prompt_tokens;
        for (const Part& part : step.parts) part.task->under_way -= part.rows;
        for (const Part& part : step.parts) progress(*part.task);
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
        for (const Part& part : step.parts) {
            part.task->under_way = 0;
            if (std::ranges::find(tasks_, part.task) == tasks_.end()) tasks_.push_back(part.task);
        }
    }
    under_way_.clear();
}

void Generator::adapt_piece(double seconds, bool mixed) {
    if (options_.target_step_seconds <= 0 || !mixed) return;
    const uint32_t largest = largest_piece();
    const double rows = piece_rows_ * options_.target_step_seconds / std::max(seconds, 1e-6);
    // Half of the way, since one step's time is not the next one's.
    const double next = (piece_rows_ + rows) / 2;
    const auto whole =
        static_cast<uint32_t>(std::clamp(next, 0.0, double{1 << 20})) / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS;
    piece_rows_ = std::clamp(whole, std::min<uint32_t>(TSR_PAGE_TOKENS, largest), largest);
    cuts_ = PieceCuts(piece_rows_);
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
    remember(task);
    if (!task.request.on_prompt || task.answer.new_tokens > 0) return;
    task.request.on_prompt({std::min(computed(task), task.prompt_size), task.prompt_size, task.answer.reused_tokens,
                            seconds_since(task.admitted)});
}

void Generator::take_outputs(std::span<const std::span<const float>> outputs) {
    std::vector<std::pair<Task*, std::span<const float>>> sampling;
    size_t output = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].output) sampling.emplace_back(tasks_[i], outputs[output++]);
    }
    const auto work = [&](size_t i) {
        const auto& [task, logits] = sampling[i];
        task->scores() ? score(*task, logits) : sample(*task, logits);
    };
    if (sampling.size() == 1) {
        work(0);
    } else {
        engine_.each_on_team(sampling.size(), work);
    }
    for (const auto& [task, logits] : sampling) take(*task);
}

// On any worker: everything about the task alone.
void Generator::sample(Task& task, std::span<const float> logits) const {
    if (task.request.max_new_tokens == 0) return;
    try {
        const auto known = logits.first(tokenizer_.size());
        if (task.request.make_constraint && !task.constraint) task.constraint = task.request.make_constraint();
        task.sampled = task.request.sampler->sample(known, task.constraint ? task.constraint->allowed() : TokenMask());
        task.request.sampler->accept(task.sampled);
        if (task.constraint) task.constraint->accept(task.sampled);
        if (task.request.probabilities) {
            task.probabilities =
                task.request.sampled_probabilities
                    ? probabilities_of(task.request.sampler->candidates(), task.sampled, *task.request.probabilities)
                    : probabilities_of(known, task.sampled, *task.request.probabilities);
        }
    } catch (const Error& error) {
        task.error = error;
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
    if (task.error) {
        if (!options_.contain_errors) throw Error(*task.error);
        answer.error = task.error->what();
        answer.error_code = task.error->code();
        return finish(task, FinishReason::kFailed);
    }
    if (task.scores()) {
        ++task.scored;
        if (task.request.on_prompt_probabilities) task.request.on_prompt_probabilities(task.probabilities);
        return;
    }
    if (task.request.max_new_tokens == 0) return finish(task, FinishReason::kLength);
    const Token token = task.sampled;
    if (answer.new_tokens++ == 0) {
        answer.first_token_seconds = seconds_since(task.arrived);
        answer.prompt_seconds = seconds_since(task.admitted);
    }
    const bool ends = tokenizer_.ends_generation(token);
    if (ends) {
        if (task.request.show_control && task.request.show_end) show(task, task.detokenizer.push(token));
        return finish(task, FinishReason::kEndOfText);
    }
    task.tokens.push_back(token);
    show(task, task.detokenizer.push(token), token);
    if (task.request.stop.stopped()) return finish(task, FinishReason::kStopString);
    if (answer.new_tokens >= task.request.max_new_tokens) return finish(task, FinishReason::kLength);
    if (task.tokens.size() > task.limit) return finish(task, FinishReason::kContextFull);
    if (answer.has_new_line && seconds_since(task.arrived) - answer.first_token_seconds > task.request.line_seconds)
        return finish(task, FinishReason::kTimeUp);
}

void Generator::show(Task& task, std::string_view text, std::optional<Token> token) {
    task.text.clear();
    task.request.stop.push(text, task.text);
    task.answer.has_new_line |= task.text.find('\n') != std::string::npos;
    if (!task.text.empty() && task.request.on_text) task.request.on_text(task.text);
    if (!task.request.on_token) return;
    if (token) task.unshown.push_back({*token, std::string(text), task.detokenizer.holds(), task.probabilities});
    task.known += task.text;
    show_tokens(task, false);
}

// Gives out tokens whose text is known in full, those that share a character together; at the end of the text, `last`,
// all of them.
void Generator::show_tokens(Task& task, bool last) {
    Answer& answer = task.answer;
    const auto give = [&](const ShownToken& token) {
        answer.seconds = seconds_since(task.arrived);
        task.request.on_token(token, answer);
    };
    std::string_view known = task.known;
    while (!task.unshown.empty()) {
        size_t count = 0, bytes = 0;
        do {
            bytes += task.unshown[count].text.size();
        } while (task.unshown[count++].incomplete && count < task.unshown.size());
        if (bytes > known.size() || (task.unshown[count - 1].incomplete && !last)) break;
        for (; count > 0; --count) {
            const Task::Unshown& first = task.unshown.front();
            give({first.token, known.substr(0, first.text.size()),
                  task.request.probabilities ? &first.probabilities : nullptr});
            known.remove_prefix(first.text.size());
            task.unshown.pop_front();
        }
    }
    if (last && !known.empty()) {
        give({{}, known});
        known = {};
    }
    task.known.erase(0, task.known.size() - known.size());
}

void Generator::finish(Task& task, FinishReason reason) {
    if (!task.request.stop.stopped()) {
        show(task, task.detokenizer.finish());
        task.text.clear();
        task.request.stop.finish(task.text);
        task.answer.has_new_line |= task.text.find('\n') != std::string::npos;
        if (!task.text.empty() && task.request.on_text) task.request.on_text(task.text);
        task.known += task.text;
    }
    // Behind a stop string tokens are left that nobody is shown.
    if (task.request.on_token) show_tokens(task, true);
    // A stop string may be complete only now.
    Answer& answer = task.answer;
    answer.reason = task.request.stop.stopped() ? FinishReason::kStopString : reason;
    answer.stop_string = task.request.stop.match();
    answer.seconds = seconds_since(task.arrived);
    suspend(task);
    ++counters_.finished;
    if (reason == FinishReason::kCancelled) ++counters_.cancelled;
    if (reason == FinishReason::kFailed) ++counters_.failed;
    answer.tokens = std::move(task.tokens);
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
    if (const auto at = std::ranges::find_if(active_, is_it); at != active_.end()) {
        if ((*at)->under_way > 0) {
            contained([&] { settle(); });
            count_busy(accounted_, true);  // only pieces of prompts are under way
        }
        if (!(*at)->done) give_up(**at, error);
        active_.erase(at);
        return;
    }
    std::unique_ptr<Task> waiting;
    queue_.erase_if(is_it, [&](std::unique_ptr<Task> task) { waiting = std::move(task); });
    if (!waiting) return;
    waited(*waiting);
    give_up(*waiting, error);
}

void Generator::end_all(const Error* error) {
    while (!active_.empty()) end(active_.front()->answer.id, error);
    Tasks waiting;
    queue_.erase_if([](const auto&) { return true; },
                    [&](std::unique_ptr<Task> task) { waiting.push_back(std::move(task)); });
    for (const auto& task : waiting) {
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
    for (const auto& task : active_) {
        states.push_back({task->answer.id, task->request.client, task->prompt_size, computed(*task),
                          task->answer.new_tokens, task->answer.reused_tokens, !computes_prompt(*task), task->suspended,
                          seconds_since(task->arrived)});
    }
    return states;
}

}  // namespace tessera::session
