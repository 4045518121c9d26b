#include "core/session/generate.hpp"

#include "core/base/error.hpp"
#include "core/text/detokenizer.hpp"

#include <algorithm>
#include <chrono>

namespace tessera::session {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

uint64_t pages_of(uint64_t tokens) {
    return (tokens + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS;
}

uint32_t whole_pages(uint32_t tokens) {
    return tokens / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS;
}

uint32_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
    return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::string_view reason_name(FinishReason reason) noexcept {
    switch (reason) {
        case FinishReason::kEndOfText:
            return "end of text";
        case FinishReason::kStopString:
            return "stop string";
        case FinishReason::kLength:
            return "length";
        case FinishReason::kContextFull:
            return "context full";
        case FinishReason::kCancelled:
            return "cancelled";
    }
    return "";
}

struct Generator::Task {
    Request request;
    Answer answer;
    text::StreamingDetokenizer detokenizer;
    std::vector<Token> tokens;  // prompt and answer; all but the last of the answer are in the cache or about to be
    uint32_t prompt_size;
    uint32_t limit;  // tokens in the cache
    SequenceId sequence = 0;
    uint32_t shared = 0;  // tokens from the start whose pages another sequence may have, too
    bool admitted = false;
    bool done = false;
    Clock::time_point start = Clock::now();
    std::string text;  // of one token, to be shown

    Task(Request given, RequestId id, const text::Tokenizer& tokenizer, uint32_t engine_context)
        : request(std::move(given)),
          detokenizer(tokenizer, request.show_control),
          tokens(std::move(request.prompt)),
          prompt_size(static_cast<uint32_t>(tokens.size())),
          limit(request.context == 0 ? engine_context : std::min(request.context, engine_context)) {
        answer.id = id;
        answer.prompt_tokens = prompt_size;
    }

    // The maximum of tokens that it may hold.
    uint32_t maximum_tokens() const {
        return static_cast<uint32_t>(std::min<uint64_t>(limit, uint64_t{prompt_size} + request.max_new_tokens));
    }
};

// Where the beginning of a prompt is found.
struct Generator::Prefix {
    Task* task = nullptr;
    Kept* kept = nullptr;
    uint32_t tokens = 0;  // usable now
    uint32_t later = 0;   // usable once the other prompt has been computed
    bool whole = false;   // the kept sequence is continued instead of shared
};

Generator::Generator(Engine& engine, const text::Tokenizer& tokenizer) : engine_(engine), tokenizer_(tokenizer) {
    if (tokenizer.size() > engine.info().vocabulary) {
        fail(TSR_CORRUPT_DATA, "the vocabulary has {} tokens, the model's output only {}", tokenizer.size(),
             engine.info().vocabulary);
    }
    active_.reserve(engine.max_sequences());
    entries_.reserve(engine.max_sequences());
    tasks_.reserve(engine.max_sequences());
}

Generator::~Generator() {
    for (const auto& task : active_) {
        if (task->admitted) engine_.cache().remove(task->sequence);
    }
    for (const Kept& kept : kept_) engine_.cache().remove(kept.sequence);
}

RequestId Generator::add(Request request) {
    if (request.prompt.empty()) fail(TSR_INVALID_ARGUMENT, "the prompt has no tokens; at least one is needed");
    for (const Token token : request.prompt) {
        if (token < 0 || static_cast<size_t>(token) >= tokenizer_.size()) {
            fail(TSR_INVALID_ARGUMENT, "token {} of the prompt is outside the vocabulary of {}", token,
                 tokenizer_.size());
        }
    }
    auto task = std::make_unique<Task>(std::move(request), next_id_, tokenizer_, engine_.context());
    if (task->prompt_size > task->limit) {
        fail(TSR_DOES_NOT_FIT, "the prompt has {} tokens, the context holds {}: shorten it or give more with -c",
             task->prompt_size, task->limit);
    }
    for (const Token token : task->tokens) task->request.sampler.accept(token);
    waiting_.push_back(std::move(task));
    return next_id_++;
}

Generator::Prefix Generator::find_prefix(const Task& task) {
    // The last token is always computed: its logits are wanted.
    const std::span<const Token> wanted = std::span(task.tokens).first(task.prompt_size - 1);
    Prefix best;
    for (const auto& other : active_) {
        const uint32_t common = common_prefix(other->tokens, wanted);
        const uint32_t now = whole_pages(std::min(common, engine_.cache().length(other->sequence)));
        best.later = std::max(best.later, whole_pages(std::min(common, other->prompt_size)));
        if (now > best.tokens) best = {other.get(), nullptr, now, best.later, false};
    }
    for (Kept& other : kept_) {
        const uint32_t common = common_prefix(other.tokens, wanted);
        const bool whole = other.tokens.size() - common < TSR_PAGE_TOKENS;
        const uint32_t now = whole ? common : whole_pages(common);
        if (now > best.tokens) best = {nullptr, &other, now, best.later, whole};
    }
    return best;
}

uint64_t Generator::promised_pages() const {
    uint64_t pages = 0;
    for (const auto& task : active_) {
        pages += pages_of(task->maximum_tokens()) -
                 pages_of(std::min(engine_.cache().length(task->sequence), task->maximum_tokens()));
    }
    return pages;
}

// Forgets kept sequences, the one used longest ago first, until that many pages can be promised.
bool Generator::make_room(uint64_t pages, const Kept* needed) {
    PagedCache& cache = engine_.cache();
    const uint64_t promised = promised_pages();
    auto at = kept_.begin();
    while (cache.free_pages() < promised + pages) {
        if (at != kept_.end() && &*at == needed) ++at;
        if (at == kept_.end()) return false;
        cache.remove(at->sequence);
        at = kept_.erase(at);
    }
    return true;
}

bool Generator::admit(Task& task) {
    if (active_.size() >= engine_.max_sequences()) return false;
    PagedCache& cache = engine_.cache();
    const Prefix prefix = find_prefix(task);
    if (prefix.later > prefix.tokens) return false;  // worth a step's wait
    const uint64_t all = pages_of(task.maximum_tokens());
    const uint64_t shared = prefix.tokens / TSR_PAGE_TOKENS;
    const auto forked = [&](SequenceId from, uint32_t& from_shared) {
        task.sequence = cache.fork(from, prefix.tokens);
        task.shared = prefix.tokens;
        from_shared = std::max(from_shared, prefix.tokens);
    };
    if (prefix.kept && prefix.whole &&
        make_room(all - pages_of(prefix.tokens) + (prefix.tokens < prefix.kept->shared), prefix.kept)) {
        // A last page that is shared is copied before it is written.
        task.sequence = prefix.kept->sequence;
        task.shared = prefix.kept->shared;
        cache.truncate(task.sequence, prefix.tokens);
        std::erase_if(kept_, [&](const Kept& kept) { return &kept == prefix.kept; });
        task.answer.reused_tokens = prefix.tokens;
    } else if (prefix.kept && !prefix.whole && make_room(all - shared, prefix.kept)) {
        forked(prefix.kept->sequence, prefix.kept->shared);
        kept_.splice(kept_.end(), kept_,
                     std::ranges::find_if(kept_, [&](const Kept& kept) { return &kept == prefix.kept; }));
        task.answer.reused_tokens = prefix.tokens;
    } else if (prefix.task && make_room(all - shared, nullptr)) {
        forked(prefix.task->sequence, prefix.task->shared);
        task.answer.reused_tokens = prefix.tokens;
    } else if (make_room(all, nullptr)) {
        task.sequence = cache.create();
    } else {
        return false;
    }
    timings_.reused_tokens += task.answer.reused_tokens;
    task.admitted = true;
    return true;
}

void Generator::admit() {
    while (!waiting_.empty() && admit(*waiting_.front())) {
        active_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
    }
}

void Generator::gather_prompts(size_t& rows) {
    for (const auto& task : active_) {
        const uint32_t begin = engine_.cache().length(task->sequence);
        if (begin >= task->prompt_size) continue;
        const uint32_t end = std::min(task->prompt_size, (begin / engine_.max_rows() + 1) * engine_.max_rows());
        if (end - begin > rows) continue;
        entries_.push_back(
            {task->sequence, std::span(task->tokens).subspan(begin, end - begin), end == task->prompt_size, false});
        tasks_.push_back(task.get());
        rows -= end - begin;
    }
}

void Generator::gather_generations(size_t& rows) {
    const auto generates = [&](const auto& task) {
        return engine_.cache().length(task->sequence) >= task->prompt_size;
    };
    // All of them or none: each gets a token in at least every second step.
    if (static_cast<size_t>(std::ranges::count_if(active_, generates)) > rows) return;
    for (const auto& task : active_) {
        if (!generates(task)) continue;
        entries_.push_back({task->sequence, std::span(task->tokens).last(1), true, false});
        tasks_.push_back(task.get());
        --rows;
    }
}

void Generator::gather() {
    entries_.clear();
    tasks_.clear();
    size_t rows = engine_.max_rows();
    if (prompts_went_last_) gather_generations(rows);
    const size_t generations = entries_.size();
    gather_prompts(rows);
    const bool prompts = entries_.size() > generations;
    const size_t before = entries_.size();
    if (!prompts_went_last_) gather_generations(rows);
    prompts_went_last_ = prompts && generations == 0 && entries_.size() == before;
}

bool Generator::step() {
    // Remains if an earlier step failed after some requests had ended.
    std::erase_if(active_, [](const auto& task) { return task->done; });
    admit();
    if (active_.empty()) return false;
    gather();
    uint64_t prompt_tokens = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
        if (engine_.cache().length(entries_[i].sequence) < tasks_[i]->prompt_size)
            prompt_tokens += entries_[i].tokens.size();
    }
    const auto start = Clock::now();
    const auto outputs = engine_.step(entries_);
    size_t output = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].output) take(*tasks_[i], outputs[output++]);
    }
    const double seconds = seconds_since(start);
    if (prompt_tokens > 0) {
        timings_.prompt_tokens += prompt_tokens;
        timings_.prompt_seconds += seconds;
    } else {
        timings_.generated_tokens += entries_.size();
        timings_.generation_seconds += seconds;
    }
    std::erase_if(active_, [](const auto& task) { return task->done; });
    return !active_.empty() || !waiting_.empty();
}

void Generator::take(Task& task, std::span<const float> logits) {
    Answer& answer = task.answer;
    if (task.request.max_new_tokens == 0) return finish(task, FinishReason::kLength);
    const Token token = task.request.sampler.sample(logits.first(tokenizer_.size()));
    task.request.sampler.accept(token);
    if (answer.new_tokens++ == 0) answer.first_token_seconds = seconds_since(task.start);
    if (tokenizer_.ends_generation(token)) {
        if (task.request.show_control) show(task, task.detokenizer.push(token));
        return finish(task, FinishReason::kEndOfText);
    }
    task.tokens.push_back(token);
    show(task, task.detokenizer.push(token));
    if (task.request.stop.stopped()) return finish(task, FinishReason::kStopString);
    if (answer.new_tokens >= task.request.max_new_tokens) return finish(task, FinishReason::kLength);
    if (task.tokens.size() > task.limit) return finish(task, FinishReason::kContextFull);
}

void Generator::show(Task& task, std::string_view text) {
    task.text.clear();
    task.request.stop.push(text, task.text);
    if (!task.text.empty() && task.request.on_text) task.request.on_text(task.text);
}

void Generator::finish(Task& task, FinishReason reason) {
    if (!task.request.stop.stopped()) {
        show(task, task.detokenizer.finish());
        task.text.clear();
        task.request.stop.finish(task.text);
        if (!task.text.empty() && task.request.on_text) task.request.on_text(task.text);
    }
    // A stop string may be complete only now.
    Answer& answer = task.answer;
    answer.reason = task.request.stop.stopped() ? FinishReason::kStopString : reason;
    answer.stop_string = task.request.stop.match();
    answer.seconds = seconds_since(task.start);
    if (task.admitted) {
        PagedCache& cache = engine_.cache();
        const uint32_t cached = cache.length(task.sequence);
        if (task.request.keep && cached > 0) {
            kept_.push_back({task.sequence, task.shared, {task.tokens.begin(), task.tokens.begin() + cached}});
        } else {
            cache.remove(task.sequence);
        }
        task.admitted = false;
    }
    answer.tokens = std::move(task.tokens);
    task.done = true;
    if (task.request.on_finish) task.request.on_finish(answer);
}

void Generator::cancel(RequestId id) {
    const auto is_it = [&](const auto& task) { return task->answer.id == id; };
    if (const auto at = std::ranges::find_if(active_, is_it); at != active_.end()) {
        finish(**at, FinishReason::kCancelled);
        active_.erase(at);
    } else if (const auto queued = std::ranges::find_if(waiting_, is_it); queued != waiting_.end()) {
        finish(**queued, FinishReason::kCancelled);
        waiting_.erase(queued);
    }
}

void Generator::cancel_all() {
    while (!active_.empty()) cancel(active_.front()->answer.id);
    while (!waiting_.empty()) cancel(waiting_.front()->answer.id);
}

void Generator::run(const std::atomic<bool>* cancelled) {
    while (step()) {
        if (cancelled && cancelled->load(std::memory_order_relaxed)) cancel_all();
    }
}

}  // namespace tessera::session
