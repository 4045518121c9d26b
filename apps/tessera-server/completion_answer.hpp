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
    void on_prompt_probabilities(size_t choice, const session::TokenProbabilities& token) override;
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
        std::string finish;
        size_t offset = 0;              // characters of the tokens that have been sent
        size_t echoed = 0;              // tokens of the prompt that have been taken
        std::vector<std::string> echo;  // their texts
    };

    std::string progress_json(std::string_view progress) override;
    void echo_token(size_t choice, const session::TokenProbabilities* probabilities);
    void send_choice(size_t index, std::string_view timings);
    std::string choice_json(size_t index);
    std::string probabilities_json(Choice& choice) const;
    std::string head() const;
    std::string tail() const;

    const CompletionForm completion_;
    std::vector<Choice> choices_;
};

}  // namespace tessera::server
