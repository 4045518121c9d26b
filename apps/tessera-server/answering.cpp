#include "apps/tessera-server/answering.hpp"

#include "apps/tessera-server/api_error.hpp"
#include "core/base/error.hpp"

#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <cmath>
#include <random>

namespace tessera::server {
namespace {

double per_second(uint64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double per_token(uint64_t tokens, double seconds) {
    return tokens > 0 ? seconds * 1000 / static_cast<double>(tokens) : 0;
}

}  // namespace

std::string_view finish_word(session::FinishReason reason) noexcept {
    using enum session::FinishReason;
    return reason == kLength || reason == kContextFull ? "length" : "stop";
}

std::string new_id(std::string_view kind) {
    static const uint64_t start = std::random_device()() | uint64_t{std::random_device()()} << 32;
    static std::atomic<uint64_t> count{0};
    return fmt::format("{}-{:016x}{:08x}", kind, start, ++count);
}

Answering::Answering(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form)
    : id_(new_id("")),
      created_(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      exchange_(std::move(exchange)),
      model_(std::move(model)),
      form_(form) {}

void Answering::start(session::Request request, const ClientLimits& limits, ClientAccounts& accounts) {
    const auto self = shared_from_this();
    ticket_ =
        accounts.admit(request.client, limits, model_->engine->max_sequences(), form_.choices, request.prompt.size());
    left_ = form_.choices;
    // Without keys what is cached may be another client's.
    tells_cached_ = !request.space.empty();
    exchange_->when_gone([weak = weak_from_this()] {
        if (const auto answering = weak.lock()) answering->cancel();
    });
    std::vector<session::Request> requests;
    for (uint32_t i = 1; i < form_.choices; ++i) {
        session::Request& copy = requests.emplace_back();
        copy = request;
        copy.sampling.seed += i;
    }
    requests.insert(requests.begin(), std::move(request));
    for (size_t i = 0; i < requests.size(); ++i) {
        session::Request& each = requests[i];
        if (each.probabilities) {
            each.on_probabilities = [self, i](const session::TokenProbabilities& token) {
                self->on_probabilities(i, token);
            };
        }
        each.on_text = [self, i](std::string_view text) { self->on_text(i, text); };
        each.on_finish = [self, i](const session::Answer& answer) { self->finished(i, answer); };
    }
    if (form_.stream && form_.progress) {
        requests.front().on_prompt = [self](const session::PromptProgress& progress) {
            self->send(self->progress_json(
                fmt::format(R"("prompt_progress":{{"total":{},"cache":{},"processed":{},"time_ms":{:.3f}}})",
                            progress.total, progress.reused, progress.done, progress.seconds * 1000)));
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
        if (form_.stream) open();
    } catch (const session::QueueFull& full) {
        ApiError error(429, full.what(), {}, "queue_full");
        error.retry_after = static_cast<unsigned>(std::ceil(full.seconds()));
        throw error;
    } catch (const Error& error) {
        if (error.code() == TSR_DOES_NOT_FIT) {
            // Clients that shorten conversations by themselves look for llama-server's words, not for the code.
            throw ApiError(400, std::string(error.what()) + "; the request exceeds the available context size", {},
                           "context_length_exceeded");
        }
        if (error.code() == TSR_CANCELLED) throw ApiError(503, error.what(), {}, "stopping");
        throw;
    }
}

void Answering::cancel() {
    const std::scoped_lock lock(mutex_);
    gone_ = true;
    cancel_all();
}

void Answering::cancel_all() {
    for (uint32_t i = 0; first_ && i < form_.choices; ++i) model_->service->cancel(*first_ + i);
}

void Answering::finished(size_t choice, const session::Answer& answer) {
    usage_.prompt_tokens = answer.prompt_tokens;
    usage_.reused_tokens = std::max(usage_.reused_tokens, answer.reused_tokens);
    usage_.new_tokens += answer.new_tokens;
    if (choice == 0) {
        usage_.first_token_seconds = answer.first_token_seconds;
        difference_ = answer.difference;
        if (difference_) usage_.differs_at = difference_->position;
    }
    usage_.finish = reason_name(answer.reason);
    prompt_seconds_ = std::max(prompt_seconds_, answer.prompt_seconds);
    generation_seconds_ = std::max(generation_seconds_, answer.seconds - answer.first_token_seconds);
    if (answer.reason == session::FinishReason::kFailed) {
        const bool lost = answer.error_code == TSR_DEVICE_LOST;
        if (!failed_) {
            const std::string json =
                error_json(lost ? 503 : 500, answer.error, {}, lost ? "device_lost" : "step_failed");
            usage_.finish = "failed";
            exchange_->note(usage_);
            if (form_.stream) {
                send(json);
                exchange_->end();
            } else {
                exchange_->respond({lost ? 503u : 500u, "application/json", json, {}});
            }
        }
        // Nobody reads what the other choices would become.
        if (!std::exchange(failed_, true)) cancel();
    } else if (!failed_) {
        on_finish(choice, answer);
    }
    if (--left_ > 0) return;
    ticket_->use(usage_.new_tokens);
    ticket_.reset();
    exchange_->note(usage_);
    if (!failed_) on_end();
}

void Answering::open() {
    std::call_once(opened_, [&] {
        exchange_->begin_stream("text/event-stream");
        if (const std::string opening = opening_json(); !opening.empty()) write(opening);
    });
}

void Answering::send(std::string_view json) {
    open();
    write(json);
}

void Answering::write(std::string_view json) {
    std::string event;
    event.reserve(json.size() + 8);
    event += "data: ";
    event += json;
    event += "\n\n";
    exchange_->send(std::move(event));
    const std::scoped_lock lock(mutex_);
    last_sent_ = std::chrono::steady_clock::now();
}

void Answering::send_end() {
    exchange_->send("data: [DONE]\n\n");
    exchange_->end();
}

void Answering::ping(std::chrono::steady_clock::duration silence) {
    {
        const std::scoped_lock lock(mutex_);
        const auto now = std::chrono::steady_clock::now();
        if (!form_.stream || now - last_sent_ < silence) return;
        last_sent_ = now;
    }
    exchange_->send(": waiting\n\n");
}

std::string Answering::timings_json() const {
    const uint64_t computed = usage_.prompt_tokens - std::min(usage_.reused_tokens, usage_.prompt_tokens);
    std::string json = fmt::format(
        R"({{"cache_n":{},"prompt_n":{},"prompt_ms":{:.3f},"prompt_per_token_ms":{:.4f},"prompt_per_second":{:.3f},)"
        R"("predicted_n":{},"predicted_ms":{:.3f},"predicted_per_token_ms":{:.4f},"predicted_per_second":{:.3f})",
        usage_.reused_tokens, computed, prompt_seconds_ * 1000, per_token(computed, prompt_seconds_),
        per_second(computed, prompt_seconds_), usage_.new_tokens, generation_seconds_ * 1000,
        per_token(usage_.new_tokens, generation_seconds_), per_second(usage_.new_tokens, generation_seconds_));
    if (difference_) {
        json +=
            fmt::format(R"(,"cache_differs":{{"position":{},"prompt":{})", difference_->position, difference_->given);
        if (tells_cached_) json += fmt::format(R"(,"cached":{})", difference_->cached);
        json += '}';
    }
    return json + '}';
}

}  // namespace tessera::server
