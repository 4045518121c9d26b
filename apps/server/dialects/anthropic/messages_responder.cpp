#include "apps/server/dialects/anthropic/messages_responder.hpp"

namespace tessera::server::anthropic {

void MessagesResponder::write_head(text::JsonWriter& json) const {
    json.begin_object().member("id", "msg_" + id_).member("type", "message").member("role", "assistant");
    json.member("model", model().name).key("content");
}

void MessagesResponder::write_stop(text::JsonWriter& json, const Choice& told) const {
    using enum session::FinishReason;
    const bool stopped = told.answer.reason == kStopString && told.answer.stop_string >= 0;
    std::string_view reason = "end_turn";
    if (told.answer.reason == kContextFull) {
        reason = "model_context_window_exceeded";
    } else if (told.length()) {
        reason = "max_tokens";
    } else if (!told.calls.empty()) {
        reason = "tool_use";
    } else if (stopped) {
        reason = "stop_sequence";
    }
    json.member("stop_reason", reason).key("stop_sequence");
    if (stopped)
        json.value(chat().stops.at(static_cast<size_t>(told.answer.stop_string)));
    else
        json.null();
}

// As the API has it, tokens that were cached are counted apart.
void MessagesResponder::write_usage(text::JsonWriter& json) const {
    const uint32_t prompt = usage_.prompt_tokens, cached = usage_.reused_tokens;
    json.key("usage").begin_object().member("input_tokens", prompt - std::min(cached, prompt));
    json.member("cache_creation_input_tokens", 0).member("cache_read_input_tokens", cached);
    json.member("output_tokens", usage_.new_tokens).end_object();
}

std::string MessagesResponder::signature(const std::string& reasoning) const {
    return chat().hides_reasoning ? reasoning_to_return(reasoning) : std::string();
}

void MessagesResponder::send_opening() {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("type", "message_start").key("message");
    write_head(json);
    json.begin_list().end_list().key("stop_reason").null().key("stop_sequence").null();
    json.key("usage").begin_object().member("input_tokens", prompt_tokens());
    json.member("cache_creation_input_tokens", 0).member("cache_read_input_tokens", 0).member("output_tokens", 0);
    json.end_object().end_object().end_object();
    write(out, "message_start");
}

std::string MessagesResponder::progress_json(std::string_view) {
    return R"({"type":"ping"})";
}

void MessagesResponder::enter(text::ReplyKind kind, const Call* call) {
    if (block_ == kind && !call) return;
    leave();
    block_ = kind;
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("type", "content_block_start").member("index", blocks_);
    json.key("content_block").begin_object();
    if (call) {
        json.member("type", "tool_use").member("id", call->id).member("name", call->name);
        json.key("input").begin_object().end_object();
    } else if (kind == text::ReplyKind::kReasoning) {
        json.member("type", "thinking").member("thinking", "").member("signature", "");
    } else {
        json.member("type", "text").member("text", "");
    }
    json.end_object().end_object();
    send(out, "content_block_start");
}

void MessagesResponder::leave() {
    if (!block_) return;
    if (block_ == text::ReplyKind::kReasoning) {
        std::string out;
        text::JsonWriter json(out);
        json.begin_object().member("type", "content_block_delta").member("index", blocks_);
        json.key("delta").begin_object().member("type", "signature_delta").member("signature", signature(hidden_));
        json.end_object().end_object();
        hidden_.clear();
        send(out, "content_block_delta");
    }
    block_.reset();
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("type", "content_block_stop").member("index", blocks_++).end_object();
    send(out, "content_block_stop");
}

void MessagesResponder::send_part(size_t index, const text::ReplyEvent& event, std::string_view) {
    using enum text::ReplyKind;
    if (event.kind == kToolCall) return enter(kToolArguments, &choice(index).calls.back());
    if (event.kind != kToolArguments) enter(event.kind, nullptr);
    if (event.text.empty()) return;
    if (event.kind == kReasoning && chat().hides_reasoning) {
        hidden_ += event.text;
        return;
    }
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("type", "content_block_delta").member("index", blocks_).key("delta").begin_object();
    if (event.kind == kReasoning)
        json.member("type", "thinking_delta").member("thinking", event.text);
    else if (event.kind == kContent)
        json.member("type", "text_delta").member("text", event.text);
    else
        json.member("type", "input_json_delta").member("partial_json", event.text);
    json.end_object().end_object();
    send(out, "content_block_delta");
}

void MessagesResponder::send_finish(size_t, const session::Answer&) {
    leave();
}

void MessagesResponder::send_last() {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("type", "message_delta").key("delta").begin_object();
    write_stop(json, choice(0));
    json.end_object();
    write_usage(json);
    json.key("timings").json(timings_json()).end_object();
    send(out, "message_delta");
    send(R"({"type":"message_stop"})", "message_stop");
    exchange().end();
}

void MessagesResponder::send_error(const ApiError& error) {
    send(dialect().error_json(error), "error");
}

std::string MessagesResponder::whole() {
    const Choice& told = choice(0);
    std::string out;
    text::JsonWriter json(out);
    write_head(json);
    json.begin_list();
    if (!told.reasoning.empty()) {
        json.begin_object().member("type", "thinking");
        json.member("thinking", chat().hides_reasoning ? std::string() : told.reasoning);
        json.member("signature", signature(told.reasoning)).end_object();
    }
    if (!told.content.empty() || (told.calls.empty() && told.reasoning.empty()))
        json.begin_object().member("type", "text").member("text", told.content).end_object();
    for (const Call& call : told.calls) {
        json.begin_object().member("type", "tool_use").member("id", call.id).member("name", call.name);
        json.key("input").json(call.arguments_object()).end_object();
    }
    json.end_list();
    write_stop(json, told);
    write_usage(json);
    json.key("timings").json(timings_json()).end_object();
    return out;
}

}  // namespace tessera::server::anthropic
