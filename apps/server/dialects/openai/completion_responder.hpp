// Answers of /v1/completions.
#pragma once

#include "apps/server/dialects/openai/requests.hpp"
#include "apps/server/responder.hpp"
#include "core/text/json_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

class CompletionResponder final : public Responder {
  public:
    CompletionResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                        CompletionDelivery completion);

    // As of Responder; public so that tests can play the engine.
    void on_token(size_t choice, const session::ShownToken& token, std::string_view timings) override;
    void on_prompt_probabilities(size_t prompt, const session::TokenProbabilities& token) override;
    void on_finish(size_t choice, const session::Answer& answer) override;
    void on_end() override;

  private:
    // Tokens with their probabilities: lists of JSON without brackets.
    struct Tokens {
        std::string texts, values, best, offsets;
        size_t end = 0;  // characters up to the last one's end

        bool empty() const { return texts.empty(); }
        // `probabilities`: null of the first token of all.
        void add(std::string_view text, const session::TokenProbabilities* probabilities,
                 const text::Tokenizer& tokenizer);
        void append(const Tokens& more);
        // Empties it.
        std::string take();
    };
    struct Choice {
        std::string text;
        Tokens tokens;  // that have not been sent
        std::string finish, timings;
        bool echoed = false;   // the prompt's tokens have been sent
        bool waiting = false;  // for the prompt's probabilities
    };
    // The tokens of a prompt, of all of its choices.
    struct Echo {
        std::vector<std::string> texts;
        size_t known = 0;  // of them have probabilities
        Tokens tokens;     // those
        bool complete() const { return known == texts.size(); }
    };

    std::string progress_json(std::string_view progress) override;
    void echo_token(Echo& echo, const session::TokenProbabilities* probabilities);
    void send_choice(size_t index, std::string_view timings);
    void write_choice(text::JsonWriter& json, size_t index);
    uint64_t bytes_of_whole() const;  // about
    // What every object begins with, up to the choices, and what the last one ends with.
    void write_head(text::JsonWriter& json) const;
    void write_tail(text::JsonWriter& json) const;

    const CompletionDelivery completion_;
    std::vector<Choice> choices_;
    std::vector<Echo> echoes_;  // by prompt; without probabilities: of no tokens
};

}  // namespace tessera::server
