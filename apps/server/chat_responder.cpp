#include "apps/server/chat_responder.hpp"

#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>

#include <utility>

namespace tessera::server {

ChatResponder::ChatResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model,
                             Delivery delivery, ChatDelivery chat, std::string_view call_kind)
    : Responder(std::move(exchange), std::move(model), delivery), chat_(std::move(chat)), call_kind_(call_kind) {
    for (uint32_t i = 0; i < delivery.choices; ++i) choices_.push_back({text::ReplyParser(chat_.syntax)});
}

std::string ChatResponder::Call::arguments_object() const {
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(arguments, error);
    if (!error && value.is_object()) return arguments;
    return arguments.empty() ? "{}" : R"({"arguments":)" + text::json_string(arguments) + "}";
}

void ChatResponder::on_token(size_t index, const session::ShownToken& token, std::string_view timings) {
    Choice& choice = choices_[index];
    if (token.probabilities) choice.probabilities.add(*token.probabilities, *model().tokenizer);
    ++choice.tokens;
    std::vector<text::ReplyEvent> events;
    choice.parser.push(token.text, events);
    take(index, events, timings);
}

void ChatResponder::take(size_t index, std::span<const text::ReplyEvent> events, std::string_view timings) {
    Choice& choice = choices_[index];
    for (const text::ReplyEvent& event : events) {
        const bool calls = event.kind == text::ReplyKind::kToolCall || event.kind == text::ReplyKind::kToolArguments;
        if (calls && chat_.one_call && event.call > 0) continue;
        if (event.kind == text::ReplyKind::kToolArguments) {
            add_arguments(index, event, timings);
            continue;
        }
        finish_input(index);
        switch (event.kind) {
            case text::ReplyKind::kReasoning:
                choice.reasoning_tokens = choice.tokens;
                if (!streams()) choice.reasoning += event.text;
                break;
            case text::ReplyKind::kContent:
                if (!streams()) choice.content += event.text;
                break;
            case text::ReplyKind::kToolCall:
                choice.calls.push_back({new_id(call_kind_), event.text});
                if (chat_.custom_tools.contains(event.text)) {
                    choice.calls.back().custom = true;
                    choice.calls.back().input.emplace();
                }
                break;
            case text::ReplyKind::kToolArguments:
                break;
        }
        if (streams()) send_part(index, event, timings);
    }
}

void ChatResponder::add_arguments(size_t index, const text::ReplyEvent& event, std::string_view timings) {
    if (event.call >= choices_[index].calls.size()) return;
    Call& call = choices_[index].calls[event.call];
    text::ReplyEvent sent = event;
    if (call.input) sent.text = call.input->push(event.text);
    if (call.custom && sent.text.empty()) return;
    call.arguments += sent.text;
    if (streams()) send_part(index, sent, timings);
}

void ChatResponder::finish_input(size_t index) {
    std::vector<Call>& calls = choices_[index].calls;
    if (calls.empty() || !calls.back().input) return;
    const std::string rest = calls.back().input->finish();
    calls.back().input.reset();
    if (!rest.empty())
        add_arguments(index, {text::ReplyKind::kToolArguments, rest, static_cast<uint32_t>(calls.size() - 1)}, {});
}

void ChatResponder::on_finish(size_t index, const session::Answer& answer) {
    Choice& choice = choices_[index];
    std::vector<text::ReplyEvent> events;
    choice.parser.finish(events);
    take(index, events);
    finish_input(index);
    choice.answer = answer;
    choice.answer.tokens = {};
    if (streams()) send_finish(index, answer);
}

bool ChatResponder::end_all_reasoning() const {
    if (chat_.end_reasoning) chat_.end_reasoning->store(true, std::memory_order_relaxed);
    return chat_.end_reasoning != nullptr;
}

uint32_t ChatResponder::reasoning_tokens() const noexcept {
    uint32_t tokens = 0;
    for (const Choice& choice : choices_) tokens += choice.reasoning_tokens;
    return tokens;
}

void ChatResponder::on_end() {
    if (streams()) return send_last();
    uint64_t bytes = 0;
    for (const Choice& choice : choices_) {
        bytes += choice.content.size() + choice.reasoning.size() + choice.probabilities.list.size();
        for (const Call& call : choice.calls) bytes += call.name.size() + call.arguments.size();
    }
    respond_later(bytes, [this] { return whole(); });
}

}  // namespace tessera::server
