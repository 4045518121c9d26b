// Answers of /v1/responses.
#pragma once

#include "apps/server/chat_responder.hpp"
#include "core/text/json_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server::responses {

class ResponsesResponder final : public ChatResponder {
  public:
    ResponsesResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                       ChatDelivery chat)
        : ChatResponder(std::move(exchange), std::move(model), delivery, std::move(chat), "call_") {}

  private:
    // Of the output: reasoning, a message, or a call with its number.
    struct Item {
        text::ReplyKind kind = text::ReplyKind::kContent;  // kToolArguments: a call
        std::string id;
        std::string text;  // or arguments, or the text that a call is made with
        std::string call_id, name;
        bool custom = false;  // a call of a custom tool
    };

    std::string progress_json(std::string_view progress) override;
    void send_opening() override;
    void send_part(size_t index, const text::ReplyEvent& event, std::string_view timings) override;
    void send_finish(size_t index, const session::Answer& answer) override;
    void send_last() override;
    void send_error(const ApiError& error) override;
    std::string whole() override;

    Item item_of(text::ReplyKind kind, const Call* call) const;
    // One event of the stream that has begun. `fill` writes its members behind the type and the number.
    template <typename Fill>
    void write_event(std::string_view type, const Fill& fill);
    // The same, and begins the stream if it has not.
    template <typename Fill>
    void send_event(std::string_view type, const Fill& fill) {
        open();
        write_event(type, fill);
    }
    // Ends the item that was begun, and begins this one.
    void enter(Item item);
    void leave(std::string_view status);
    void write_item(text::JsonWriter& json, const Item& item, std::string_view status) const;
    // Of a function, by the name that the model knows it by.
    void write_name(text::JsonWriter& json, const std::string& whole) const;
    void write_part(text::JsonWriter& json, const Item& item) const;
    // The response without an answer, in the making or failed; and with all of it.
    void write_unfinished(text::JsonWriter& json, std::string_view status, const ApiError* error) const;
    void write_finished(text::JsonWriter& json);
    void write_head(text::JsonWriter& json, std::string_view status) const;
    void write_tail(text::JsonWriter& json) const;

    // Of a stream.
    uint64_t events_ = 0;
    std::optional<Item> item_;         // that was begun
    std::vector<std::string> output_;  // JSON of the items that are complete
};

}  // namespace tessera::server::responses
