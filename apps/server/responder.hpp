// From a request's generations to its response.
#pragma once

#include "apps/server/client_limits.hpp"
#include "apps/server/dialect.hpp"
#include "apps/server/exchange.hpp"
#include "apps/server/model_host.hpp"
#include "apps/server/request_fields.hpp"
#include "core/session/generation.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// Submits a generation for each choice, cancels them when the client goes, and passes on what becomes of them. The
// methods that derived classes define are called by the engine's thread.
class Responder : public std::enable_shared_from_this<Responder> {
  public:
    // `prompts`: how many of them start() is given.
    Responder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
              size_t prompts = 1);
    virtual ~Responder() = default;

    // Once. The choices of the first prompt come first. Throws ApiError if a prompt is longer than the context, the
    // client has used up its share or the queue is full, and what Service::submit throws; nothing is generated then.
    // `accounts` outlive this.
    void start(std::vector<session::Request> prompts, const ClientLimits& limits, ClientAccounts& accounts);

    // Calls `work`, which concerns so many bytes, on another thread, and must not throw. Any thread.
    using Later = std::function<void(uint64_t bytes, std::function<void()> work)>;
    // How long whole responses are put together; at once if this is not called. Before start().
    void make_whole_by(Later later) { later_ = std::move(later); }

    // Ends the reasoning of the answers being generated, if the response has this id ("chatcmpl-...") and was asked for
    // by this client. False: it is another response, or has no reasoning. Any thread; after start().
    bool end_reasoning(std::string_view id, std::string_view client) const;

    // Sends what the dialect has for it if a stream has been silent for that long.
    void ping(std::chrono::steady_clock::duration silence);

  protected:
    // False: the answers have no reasoning. Any thread.
    virtual bool end_all_reasoning() const { return false; }
    // A part of the answer's text. `timings`: an object of JSON, if the request wants them with each part.
    virtual void on_token(size_t choice, const session::ShownToken& token, std::string_view timings) = 0;
    // Of a prompt, in order, if its request wants them. Its choices may have tokens before.
    virtual void on_prompt_probabilities(size_t /*prompt*/, const session::TokenProbabilities&) {}
    // Does not end the exchange: other choices may be running, and its log line is not complete. The choice's place is
    // free by then.
    virtual void on_finish(size_t choice, const session::Answer& answer) = 0;
    // After the last choice has finished; ends the exchange.
    virtual void on_end() = 0;
    // The event that tells `progress`, an object of JSON, as "prompt_progress".
    virtual std::string progress_json(std::string_view progress) = 0;
    // write()s what a stream begins with.
    virtual void send_opening() {}
    // What a stream ends with in place of an answer that cannot be completed.
    virtual void send_error(const ApiError& error) { send(dialect().error_json(error)); }

    bool streams() const noexcept { return delivery_.stream; }
    size_t choices() const noexcept { return choices_; }
    size_t prompt_of(size_t choice) const noexcept { return choice / delivery_.choices; }
    // Of its prompt; the one that scores it, if any does.
    bool is_first(size_t choice) const noexcept { return choice % delivery_.choices == 0; }
    // The choices of one prompt have seeds one after the other.
    uint64_t seed_of(size_t choice) const noexcept {
        return session::following_seed(first_seed_, choice % delivery_.choices);
    }
    const Delivery& delivery() const noexcept { return delivery_; }
    const ServedModel& model() const noexcept { return *model_; }
    Exchange& exchange() noexcept { return *exchange_; }
    const Dialect& dialect() const noexcept { return *delivery_.dialect; }
    // Begins the stream, once.
    void open();
    // One part of the stream, which begins with the first. `event`: its name, where the dialect has names.
    void send(std::string_view json, std::string_view event = {});
    // The same of a stream that has begun.
    void write(std::string_view json, std::string_view event = {});
    // Of all prompts; from start() on.
    uint64_t prompt_tokens() const noexcept { return prompt_tokens_; }
    // The last event of the OpenAI API.
    void send_end();
    // Sends the error instead of the rest of the response, and cancels other choices. Later calls have no effect.
    void fail(const ApiError& error);
    // Responds with JSON of about so many bytes: prompts and their probabilities may be long, and the engine's thread
    // serves everybody.
    void respond_later(uint64_t bytes, std::function<std::string()> make);

    const std::string id_;  // random
    const int64_t created_;
    // Of all choices; each prompt counts once, as its first choice found it.
    Usage usage_;
    // Of all choices together, an object of JSON.
    std::string timings_json() const;
    // The same of one.
    std::string timings_json(const session::Answer& answer) const;
    // Of no generation, with every field that one may have.
    static std::string every_timing_json();

  private:
    void finished(size_t choice, const session::Answer& answer);
    void cancel();
    void cancel_all();  // with mutex_ held

    const std::shared_ptr<Exchange> exchange_;
    const std::shared_ptr<const ServedModel> model_;
    const Delivery delivery_;
    Later later_;
    const uint32_t choices_;  // of all prompts
    std::string client_;
    uint64_t first_seed_ = 0, prompt_tokens_ = 0;
    double prompt_seconds_ = 0, generation_seconds_ = 0;
    std::unique_ptr<ClientAccounts::Ticket> ticket_;  // each choice gives back its place
    uint32_t left_ = 0;
    bool failed_ = false;
    bool tells_cached_ = false;
    std::optional<session::PrefixDifference> difference_;  // of the first choice
    std::once_flag opened_;
    std::mutex mutex_;                         // of all below
    std::optional<session::RequestId> first_;  // of the choices, whose ids follow each other; none: not submitted yet
    bool gone_ = false;
    std::chrono::steady_clock::time_point last_sent_ = std::chrono::steady_clock::now();
};

// "stop" or "length", of an answer that is whole.
std::string_view finish_word(session::FinishReason reason) noexcept;

// What the OpenAI API calls the configuration that answers come from.
inline constexpr std::string_view kFingerprint = "tessera-" TSR_VERSION;

// `kind`, "chatcmpl-" and the like, with a number that no other response has.
std::string new_id(std::string_view kind);

}  // namespace tessera::server
