// Answers of /v1/completions.
#pragma once

#include "apps/tessera-server/answering.hpp"
#include "apps/tessera-server/generation_request.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

class CompletionAnswer final : public Answering {
  public:
    CompletionAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
                     CompletionForm completion);

    // As of Answering; public so that tests can play the engine.
    void on_token(size_t choice, const session::ShownToken& token, std::string_view timings) override;
    void on_prompt_probabilities(size_t prompt, const session::TokenProbabilities& token) override;
    void on_finish(size_t choice, const session::Answer& answer) override;
    void on_end() override;

  private:
    struct Shown {
        std::string text;
        std::optional<session::TokenProbabilities> probabilities;  // nothing: the first of all
    };
    struct Choice {
        std::string text;
        std::vector<Shown> tokens;  // that have not been sent
        std::string finish, timings;
        size_t offset = 0;     // characters of the tokens that have been sent
        bool echoed = false;   // the prompt's tokens have been sent
        bool waiting = false;  // for the prompt's probabilities
    };
    // The tokens of a prompt, of all of its choices.
    struct Echo {
        std::vector<std::string> texts;
        std::vector<Shown> tokens;  // those whose probabilities are known
        bool complete() const { return tokens.size() == texts.size(); }
    };

    std::string progress_json(std::string_view progress) override;
    void echo_token(Echo& echo, const session::TokenProbabilities* probabilities);
    void send_choice(size_t index, std::string_view timings);
    std::string choice_json(size_t index);
    std::string probabilities_json(size_t index);
    std::string head() const;
    std::string tail() const;

    const CompletionForm completion_;
    std::vector<Choice> choices_;
    std::vector<Echo> echoes_;  // by prompt; without probabilities: of no tokens
};

}  // namespace tessera::server
