// Answers of /v1/chat/completions.
#pragma once

#include "apps/server/chat_responder.hpp"
#include "core/text/json_writer.hpp"

#include <string>
#include <string_view>

namespace tessera::server {

class ChatCompletionResponder final : public ChatResponder {
  public:
    ChatCompletionResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model,
                            Delivery delivery, ChatDelivery chat)
        : ChatResponder(std::move(exchange), std::move(model), delivery, std::move(chat), "call_") {}

  private:
    std::string progress_json(std::string_view progress) override;
    void send_opening() override;
    void send_part(size_t index, const text::ReplyEvent& event, std::string_view timings) override;
    void send_finish(size_t index, const session::Answer& answer) override;
    void send_last() override;
    std::string whole() override;

    // `delta`: of the choice, an object of JSON.
    void send_delta(size_t index, std::string_view delta, std::string_view timings, std::string_view finish = {});
    // What every object begins with.
    void write_head(text::JsonWriter& json, std::string_view object) const;
    void write_usage(text::JsonWriter& json) const;
    void write_probabilities(text::JsonWriter& json, Choice& choice, bool wanted) const;
    void write_message(text::JsonWriter& json, const Choice& choice) const;
};

}  // namespace tessera::server
