#include "apps/server/responder.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/structure_fields.hpp"
#include "core/base/error.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <cmath>
#include <random>

namespace tessera::server {
namespace {

// Writing as many bytes takes less than a step of the engine.
constexpr uint64_t kLongResponse = 64 << 10;

double per_second(uint64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double per_token(uint64_t tokens, double seconds) {
    return tokens > 0 ? seconds * 1000 / static_cast<double>(tokens) : 0;
}

struct Timings {
    uint32_t prompt_tokens, reused_tokens;
    double prompt_seconds;
    uint32_t new_tokens;
    double generation_seconds;
    uint32_t drafted_tokens, accepted_tokens;
    const std::optional<session::PrefixDifference>& difference;
    bool tells_cached;
};

// As llama-server has them.
std::string timings_text(const Timings& t) {
    const uint64_t computed = t.prompt_tokens - std::min(t.reused_tokens, t.prompt_tokens);
    std::string out;
    text::JsonWriter json(out);
    json.begin_object();
    json.member("cache_n", t.reused_tokens).member("prompt_n", computed);
    json.key("prompt_ms").fixed(t.prompt_seconds * 1000, 3);
    json.key("prompt_per_token_ms").fixed(per_token(computed, t.prompt_seconds), 4);
    json.key("prompt_per_second").fixed(per_second(computed, t.prompt_seconds), 3);
    json.member("predicted_n", t.new_tokens);
    json.key("predicted_ms").fixed(t.generation_seconds * 1000, 3);
    json.key("predicted_per_token_ms").fixed(per_token(t.new_tokens, t.generation_seconds), 4);
    json.key("predicted_per_second").fixed(per_second(t.new_tokens, t.generation_seconds), 3);
    if (t.drafted_tokens > 0) json.member("draft_n", t.drafted_tokens).member("draft_n_accepted", t.accepted_tokens);
    if (t.difference) {
        json.key("cache_differs").begin_object();
        json.member("position", t.difference->position).member("prompt", t.difference->given);
        if (t.tells_cached) json.member("cached", t.difference->cached);
        json.end_object();
    }
    json.end_object();
    return out;
}

// Returns the error of an answer that failed. `field`: asks for structured output.
ApiError error_of(const session::Answer& answer, const std::string& field) {
    switch (answer.error_code) {
        case TSR_DEVICE_LOST:
            return {503, answer.error, {}, "device_lost"};
        case TSR_DOES_NOT_FIT:
            return {503, answer.error, {}, "overloaded"};
        case TSR_INVALID_ARGUMENT:
            // A limit that only a part of the grammar exceeds, which the answer has reached.
            if (answer.constraint_failed)
                return {400, fmt::format("{}: {}", field, answer.error), field, "structure_limit"};
            break;
        default:
            if (answer.constraint_failed) return {503, answer.error, field, "structure_failed"};
    }
    return {500, answer.error, {}, "step_failed"};
}

}  // namespace

std::string_view finish_word(session::FinishReason reason) noexcept {
    using enum session::FinishReason;
    return reason == kEndOfText || reason == kStopString ? "stop" : "length";
}

std::string new_id(std::string_view kind) {
    static const uint64_t start = std::random_device()() | uint64_t{std::random_device()()} << 32;
    static std::atomic<uint64_t> count{0};
    return fmt::format("{}{:016x}{:08x}", kind, start, ++count);
}

Responder::Responder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                     size_t prompts)
    : id_(new_id("")),
      created_(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      exchange_(std::move(exchange)),
      model_(std::move(model)),
      delivery_(std::move(delivery)),
      choices_(static_cast<uint32_t>(prompts) * delivery_.choices) {
    for (const std::string& part : delivery_.unenforced)
        exchange_->add_header("X-Tessera-Unenforced", header_value(part));
}

void Responder::start(std::vector<session::Request> prompts, const ClientLimits& limits, ClientAccounts& accounts) {
    const auto self = shared_from_this();
    for (const session::Request& prompt : prompts) {
        prompt_tokens_ += prompt.prompt.size();
        const uint32_t context = model_->context_of_request();
        if (prompt.prompt.size() > context) throw context_exceeded(prompt.prompt.size(), context);
    }
    ticket_ = accounts.admit(prompts.front().client, limits, model_->engine->max_sequences(), choices_, prompt_tokens_);
    left_ = choices_;
    client_ = prompts.front().client;
    // Without keys what is cached may be another client's.
    tells_cached_ = !prompts.front().space.empty();
    exchange_->when_gone([weak = weak_from_this()] {
        if (const auto responder = weak.lock()) responder->cancel();
    });
    first_seed_ = prompts.front().sampling.seed;
    std::vector<session::Request> requests;
    for (session::Request& prompt : prompts) {
        for (uint32_t i = 0; i < delivery_.choices; ++i) {
            session::Request& each = requests.emplace_back(prompt);
            // One of them scores the prompt for all, for which it computes all of it.
            if (i > 0) each.prompt_probabilities.reset();
            if (each.prompt_probabilities) each.reuse = false;
        }
    }
    for (size_t i = 0; i < requests.size(); ++i) {
        session::Request& each = requests[i];
        each.sampling.seed = seed_of(i);
        each.on_token = [self, i](const session::ShownToken& token, const session::Answer& so_far) {
            self->on_token(i, token, self->delivery_.timings ? self->timings_json(so_far) : std::string());
        };
        each.on_finish = [self, i](const session::Answer& answer) { self->finished(i, answer); };
        if (each.prompt_probabilities) {
            each.on_prompt_probabilities = [self, i](const session::TokenProbabilities& token) {
                self->on_prompt_probabilities(self->prompt_of(i), token);
            };
        }
    }
    if (delivery_.stream && delivery_.progress) {
        requests.front().on_prompt = [self](const session::PromptProgress& progress) {
            std::string told;
            text::JsonWriter json(told);
            json.begin_object();
            json.member("total", progress.total).member("cache", progress.reused).member("processed", progress.done);
            json.key("time_ms").fixed(progress.seconds * 1000, 3);
            json.end_object();
            self->send(self->progress_json(told));
        };
    }
    try {
        const session::RequestId first = model_->service->submit(std::move(requests));
        {
            const std::scoped_lock lock(mutex_);
            first_ = first;
            // What came before was of no effect.
            if (gone_) cancel_all();
        }
        // The client learns at once that its request was accepted.
        if (delivery_.stream) open();
    } catch (const session::QueueFull& full) {
        ApiError error(429, full.what(), {}, "queue_full");
        error.retry_after = static_cast<unsigned>(std::ceil(full.seconds()));
        throw error;
    } catch (const Error& error) {
        if (error.code() == TSR_CANCELLED) throw ApiError(503, error.what(), {}, "stopping");
        throw;
    }
}

bool Responder::end_reasoning(std::string_view id, std::string_view client) const {
    return id.size() >= id_.size() && id.ends_with(id_) && client == client_ && end_all_reasoning();
}

void Responder::cancel() {
    const std::scoped_lock lock(mutex_);
    gone_ = true;
    cancel_all();
}

void Responder::cancel_all() {
    for (uint32_t i = 0; first_ && i < choices_; ++i) model_->service->cancel(*first_ + i);
}

void Responder::finished(size_t choice, const session::Answer& answer) {
    using enum session::FinishReason;
    // Others find what this one has computed.
    if (is_first(choice)) {
        usage_.prompt_tokens += answer.prompt_tokens;
        usage_.reused_tokens += answer.reused_tokens;
    }
    usage_.new_tokens += answer.new_tokens;
    usage_.drafted_tokens += answer.drafted_tokens;
    usage_.accepted_tokens += answer.accepted_tokens;
    if (choice == 0) {
        usage_.first_token_seconds = answer.first_token_seconds;
        difference_ = answer.difference;
        if (difference_) usage_.differs_at = difference_->position;
    }
    usage_.finish = reason_name(answer.reason);
    prompt_seconds_ = std::max(prompt_seconds_, answer.prompt_seconds);
    generation_seconds_ = std::max(generation_seconds_, answer.seconds - answer.first_token_seconds);
    bool gone;
    {
        const std::scoped_lock lock(mutex_);
        gone = gone_;
    }
    // Before its last event: a client goes on at once, and what is used must be known by then.
    ticket_->use(answer.new_tokens);
    ticket_->give_back(1);
    if (--left_ == 0) ticket_.reset();
    if (answer.reason == kFailed) {
        fail(error_of(answer, delivery_.structure_field));
    } else if (answer.reason == kCancelled) {
        // Whatever has been sent is not all of it.
        if (!gone) fail({503, "the server was stopped before this answer was complete", {}, "stopping"});
    } else if (!failed_) {
        on_finish(choice, answer);
    }
    if (left_ > 0) return;
    exchange_->note(usage_);
    if (!failed_ && answer.reason != kCancelled) on_end();
}

void Responder::fail(const ApiError& error) {
    if (std::exchange(failed_, true)) return;
    exchange_->note(usage_);
    if (ticket_) ticket_->give_back();
    if (delivery_.stream) {
        send_error(error);
        exchange_->end();
    } else {
        exchange_->respond(to_response(error, dialect()));
    }
    // Nobody reads what the other choices would become.
    cancel();
}

void Responder::open() {
    std::call_once(opened_, [&] {
        exchange_->begin_stream(dialect().stream_type);
        send_opening();
    });
}

void Responder::send(std::string_view json, std::string_view event) {
    open();
    write(json, event);
}

void Responder::write(std::string_view json, std::string_view event) {
    exchange_->send(dialect().part(event, json));
    const std::scoped_lock lock(mutex_);
    last_sent_ = std::chrono::steady_clock::now();
}

void Responder::send_end() {
    exchange_->send("data: [DONE]\n\n");
    exchange_->end();
}

void Responder::respond_later(uint64_t bytes, std::function<std::string()> make) {
    const auto work = [self = shared_from_this(), make = std::move(make)] {
        HttpResponse response{200, "application/json", {}, {}};
        try {
            response.body = make();
        } catch (...) {
            response = to_response(current_api_error(), self->dialect());
        }
        self->exchange_->respond(std::move(response));
    };
    later_&& bytes > kLongResponse ? later_(bytes, work) : work();
}

void Responder::ping(std::chrono::steady_clock::duration silence) {
    {
        const std::scoped_lock lock(mutex_);
        const auto now = std::chrono::steady_clock::now();
        if (!delivery_.stream || dialect().silence.empty() || now - last_sent_ < silence) return;
        last_sent_ = now;
    }
    exchange_->send(std::string(dialect().silence));
}

std::string Responder::timings_json() const {
    return timings_text({usage_.prompt_tokens, usage_.reused_tokens, prompt_seconds_, usage_.new_tokens,
                         generation_seconds_, usage_.drafted_tokens, usage_.accepted_tokens, difference_,
                         tells_cached_});
}

std::string Responder::timings_json(const session::Answer& answer) const {
    return timings_text({answer.prompt_tokens, answer.reused_tokens, answer.prompt_seconds, answer.new_tokens,
                         answer.seconds - answer.first_token_seconds, answer.drafted_tokens, answer.accepted_tokens,
                         answer.difference, tells_cached_});
}

std::string Responder::every_timing_json() {
    const std::optional<session::PrefixDifference> difference{{0, 0, 0}};
    return timings_text({0, 0, 0, 0, 0, 1, 1, difference, true});
}

}  // namespace tessera::server
