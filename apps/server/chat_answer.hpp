// Answers of /v1/chat/completions.
#pragma once

#include "apps/server/answering.hpp"
#include "apps/server/generation_request.hpp"
#include "apps/server/probabilities_json.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/reply_parser.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tessera::server {

class ChatAnswer final : public Answering {
  public:
    ChatAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
               ChatForm chat);

    // As of Answering; public so that tests can play the engine.
    void on_token(size_t choice, const session::ShownToken& token, std::string_view timings) override;
    void on_finish(size_t choice, const session::Answer& answer) override;
    void on_end() override;

  private:
    struct Call {
        std::string id, name, arguments;
    };
    struct Choice {
        text::ReplyParser parser;
        std::string reasoning, content;  // of an answer in one piece
        std::vector<Call> calls;
        ProbabilitiesJson probabilities;  // that have not been sent
        std::string finish;
    };

    std::string progress_json(std::string_view progress) override;
    std::string opening_json() override;

    void take(size_t index, std::span<const text::ReplyEvent> events, std::string_view timings = {});
    // `delta`: of the choice, an object of JSON.
    void send_delta(size_t index, std::string_view delta, std::string_view timings, std::string_view finish = {});
    // What every object begins with.
    void write_head(text::JsonWriter& json, std::string_view object) const;
    void write_usage(text::JsonWriter& json) const;
    void write_probabilities(text::JsonWriter& json, Choice& choice, bool wanted) const;
    void write_message(text::JsonWriter& json, const Choice& choice) const;
    std::string whole();

    const ChatForm chat_;
    std::vector<Choice> choices_;
};

}  // namespace tessera::server
