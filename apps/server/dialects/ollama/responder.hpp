// Answers of /api/chat and /api/generate.
#pragma once

#include "apps/server/chat_responder.hpp"
#include "core/text/json_writer.hpp"

#include <string>
#include <string_view>

namespace tessera::server::ollama {

class OllamaChatResponder : public ChatResponder {
  public:
    OllamaChatResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                        ChatDelivery chat, bool generate = false)
        : ChatResponder(std::move(exchange), std::move(model), delivery, std::move(chat), "call_"),
          generate_(generate) {}

  private:
    std::string progress_json(std::string_view progress) override;
    void send_part(size_t index, const text::ReplyEvent& event, std::string_view timings) override;
    void send_finish(size_t index, const session::Answer& answer) override;
    void send_last() override;
    std::string whole() override;

    // Writes an object without its end, with texts, calls where there are any, and the probabilities that have not been
    // sent.
    void write_part(text::JsonWriter& json, std::string_view content, std::string_view reasoning, bool calls,
                    bool done);
    std::string last(std::string_view content, std::string_view reasoning, bool calls);

    const bool generate_;  // as /api/generate has it
};

class GenerateResponder final : public OllamaChatResponder {
  public:
    GenerateResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                      ChatDelivery chat)
        : OllamaChatResponder(std::move(exchange), std::move(model), delivery, std::move(chat), true) {}
};

// "2026-01-31T12:00:00Z" of seconds since 1970.
std::string time_text(int64_t seconds);

}  // namespace tessera::server::ollama
