// Answers of /completion, as llama-server's own clients read them.
#pragma once

#include "apps/server/dialects/llama/requests.hpp"
#include "apps/server/probabilities_json.hpp"
#include "apps/server/responder.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

class PlainResponder final : public Responder {
  public:
    // Throws ApiError(400) for a field that is asked and that no answer has.
    PlainResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                   PlainDelivery plain);

    // As of Responder; public so that tests can play the engine.
    void on_token(size_t choice, const session::ShownToken& token, std::string_view timings) override;
    void on_finish(size_t choice, const session::Answer& answer) override;
    void on_end() override;

  private:
    struct Choice {
        std::string text;                 // that has not been sent
        ProbabilitiesJson probabilities;  // likewise
        std::vector<text::Token> tokens;  // likewise
        session::Answer answer;           // without tokens
    };
    // A field of the last event: its JSON; empty: this answer has no such field.
    struct Field {
        std::string_view name;
        std::string (*json)(const PlainResponder&, size_t choice, const session::Answer&);
    };

    std::string progress_json(std::string_view progress) override;

    static const std::vector<Field>& fields();
    // Every event of the text. `timings`: as of on_token().
    std::string event(size_t index, std::string_view text, std::string_view timings);
    std::string last_event(size_t index, const session::Answer& answer) const;
    std::string whole() const;
    // About; of all that is in an answer, its text and what every choice repeats.
    uint64_t bytes_of(size_t index) const;
    void check_asked() const;
    std::string asked_json(const AskedField& asked, size_t index, const session::Answer& answer) const;

    const PlainDelivery plain_;
    uint64_t repeated_bytes_ = 0;  // of every choice's last event, about
    std::vector<Choice> choices_;
};

}  // namespace tessera::server
