// Answers of /v1/messages.
#pragma once

#include "apps/server/chat_responder.hpp"
#include "core/text/json_writer.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tessera::server::anthropic {

class MessagesResponder final : public ChatResponder {
  public:
    MessagesResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                      ChatDelivery chat)
        : ChatResponder(std::move(exchange), std::move(model), delivery, std::move(chat), "toolu_") {}

  private:
    std::string progress_json(std::string_view progress) override;
    void send_opening() override;
    void send_part(size_t index, const text::ReplyEvent& event, std::string_view timings) override;
    void send_finish(size_t index, const session::Answer& answer) override;
    void send_last() override;
    void send_error(const ApiError& error) override;
    std::string whole() override;

    // What a message begins with; its content follows.
    void write_head(text::JsonWriter& json) const;
    void write_stop(text::JsonWriter& json, const Choice& choice) const;
    // Of all reasoning, where it is told as that alone; clients look for one in any case.
    std::string signature(const std::string& reasoning) const;
    void write_usage(text::JsonWriter& json) const;
    // Ends the block that was begun, if it is another, and begins one of this kind.
    void enter(text::ReplyKind kind, const Call* call);
    void leave();

    // Of a stream: the block that was begun, and how many were before.
    std::optional<text::ReplyKind> block_;
    std::string hidden_;  // reasoning of the block, where it is told as a signature
    size_t blocks_ = 0;
};

}  // namespace tessera::server::anthropic
