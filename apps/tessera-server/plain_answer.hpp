// Answers of /completion, in the form of llama-server's own clients.
#pragma once

#include "apps/tessera-server/answering.hpp"
#include "apps/tessera-server/generation_request.hpp"
#include "apps/tessera-server/probabilities_json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

class PlainAnswer final : public Answering {
  public:
    PlainAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
                PlainForm plain);

  private:
    struct Choice {
        std::string text;
        ProbabilitiesJson probabilities;  // that have not been sent
        std::vector<text::Token> tokens;  // likewise
        std::string last;                 // the last event, or the whole answer
    };

    void on_token(size_t choice, const session::ShownToken& token, std::string_view timings) override;
    void on_finish(size_t choice, const session::Answer& answer) override;
    void on_end() override;
    std::string progress_json(std::string_view progress) override;

    // Fields of every event.
    std::string beginning(size_t index, std::string_view text, bool stop);
    std::string chosen_fields(const std::string& json) const;

    const PlainForm plain_;
    std::vector<Choice> choices_;
};

}  // namespace tessera::server
