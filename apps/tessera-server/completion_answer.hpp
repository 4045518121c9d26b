// Answers of /v1/completions, and of /completion as llama-server has it.
#pragma once

#include "apps/tessera-server/answering.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

class CompletionAnswer final : public Answering {
  public:
    // `echo`: what stands before each text.
    CompletionAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
                     bool probabilities, std::string echo);

  private:
    struct Choice {
        std::string text;
        std::vector<session::TokenProbabilities> probabilities;  // that have not been sent
        std::string finish;
        size_t offset = 0;  // bytes of the tokens whose probabilities have been sent
    };

    void on_probabilities(size_t choice, const session::TokenProbabilities& token) override;
    void on_text(size_t choice, std::string_view text) override;
    void on_finish(size_t choice, const session::Answer& answer) override;
    void on_end() override;
    std::string progress_json(std::string_view progress) override;

    std::string choice_json(size_t index, std::string_view text);
    std::string head() const;
    std::string tail() const;

    const bool probabilities_;
    const std::string echo_;
    std::vector<Choice> choices_;
};

// The form of llama-server's own clients.
class PlainAnswer final : public Answering {
  public:
    PlainAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
                std::string prompt, std::vector<std::string> stops, bool tokens);

  private:
    void on_probabilities(size_t choice, const session::TokenProbabilities& token) override;
    void on_text(size_t choice, std::string_view text) override;
    void on_finish(size_t choice, const session::Answer& answer) override;
    void on_end() override;
    std::string progress_json(std::string_view progress) override;

    const std::string prompt_;
    const std::vector<std::string> stops_;
    const bool tokens_;
    std::string text_, probabilities_;
    std::string last_;  // the last event, or the whole answer
};

}  // namespace tessera::server
