// Answers to chats: reasoning, content and calls of tools, whatever dialect they are sent in.
#pragma once

#include "apps/server/conversation.hpp"
#include "apps/server/probabilities_json.hpp"
#include "apps/server/responder.hpp"
#include "apps/server/tool_input.hpp"
#include "core/text/reply_parser.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// Splits what is generated into parts. Of a stream derived classes send each; else they write the whole at the end.
class ChatResponder : public Responder {
  public:
    // `call_kind`: what the ids of calls begin with.
    ChatResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                  ChatDelivery chat, std::string_view call_kind);

    // As of Responder; public so that tests can play the engine.
    void on_token(size_t choice, const session::ShownToken& token, std::string_view timings) final;
    void on_finish(size_t choice, const session::Answer& answer) final;
    void on_end() final;

  protected:
    struct Call {
        std::string id, name;
        std::string arguments = {};  // JSON; of a custom tool the input, a string
        bool custom = false;         // of a custom tool
        // Reads the input while the model writes arguments; of a custom tool only, until the call is complete.
        std::optional<InputReader> input = {};
        // JSON of an object: what the model wrote is none where it was cut, and is a member of one then.
        std::string arguments_object() const;
    };
    struct Choice {
        text::ReplyParser parser;
        std::string reasoning = {}, content = {};  // of an answer that is not streamed
        std::vector<Call> calls = {};
        ProbabilitiesJson probabilities = {};       // that have not been sent
        session::Answer answer = {};                // without tokens; of one that has finished
        uint32_t tokens = 0, reasoning_tokens = 0;  // so far, and when the last reasoning was read
        bool length() const noexcept { return finish_word(answer.reason) == "length"; }
    };

    bool end_all_reasoning() const final;
    // A part of a stream. Of kToolCall the call is the last of the choice's. The text of kToolArguments is a part of
    // the input where the call is of a custom tool.
    virtual void send_part(size_t choice, const text::ReplyEvent& event, std::string_view timings) = 0;
    // The choice of a stream is complete.
    virtual void send_finish(size_t choice, const session::Answer& answer) = 0;
    // The stream is: ends the exchange.
    virtual void send_last() = 0;
    // The answer that is not streamed.
    virtual std::string whole() = 0;

    const ChatDelivery& chat() const noexcept { return chat_; }
    Choice& choice(size_t index) noexcept { return choices_[index]; }
    uint32_t reasoning_tokens() const noexcept;  // of all answers

  private:
    void take(size_t index, std::span<const text::ReplyEvent> events, std::string_view timings = {});
    // Adds to a call, and sends it in a stream.
    void add_arguments(size_t index, const text::ReplyEvent& event, std::string_view timings);
    // Completes the input of the last call, if it is one of a custom tool.
    void finish_input(size_t index);

    const ChatDelivery chat_;
    const std::string call_kind_;
    std::vector<Choice> choices_;
};

}  // namespace tessera::server
