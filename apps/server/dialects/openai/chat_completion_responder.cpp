#include "apps/server/dialects/openai/chat_completion_responder.hpp"

namespace tessera::server {
namespace {

std::string_view finish_of(session::FinishReason reason, bool calls) {
    const std::string_view word = finish_word(reason);
    return word == "stop" && calls ? "tool_calls" : word;
}

// Writes the members of a call after its id. `text`: arguments of a function, or input of a custom tool.
void write_call(text::JsonWriter& json, bool custom, std::string_view name, std::string_view text) {
    const std::string_view type = custom ? "custom" : "function";
    json.member("type", type).key(type).begin_object();
    json.member("name", name).member(custom ? "input" : "arguments", text).end_object();
}

// Writes the member of a delta with more of the same text.
void write_call_part(text::JsonWriter& json, bool custom, std::string_view text) {
    json.key(custom ? "custom" : "function").begin_object();
    json.member(custom ? "input" : "arguments", text).end_object();
}

}  // namespace

void ChatCompletionResponder::write_head(text::JsonWriter& json, std::string_view object) const {
    json.begin_object();
    json.member("id", "chatcmpl-" + id_).member("object", object).member("created", created_);
    json.member("model", model().name).member("system_fingerprint", kFingerprint);
}

void ChatCompletionResponder::write_usage(text::JsonWriter& json) const {
    json.key("usage").begin_object();
    json.member("prompt_tokens", usage_.prompt_tokens).member("completion_tokens", usage_.new_tokens);
    json.member("total_tokens", usage_.prompt_tokens + usage_.new_tokens);
    json.key("prompt_tokens_details").begin_object().member("cached_tokens", usage_.reused_tokens).end_object();
    json.key("completion_tokens_details").begin_object().member("reasoning_tokens", reasoning_tokens()).end_object();
    json.end_object();
}

void ChatCompletionResponder::write_probabilities(text::JsonWriter& json, Choice& choice, bool wanted) const {
    json.key("logprobs");
    if (!wanted) {
        json.null();
        return;
    }
    json.begin_object().key("content").json(choice.probabilities.take());
    json.key("refusal").null().end_object();
}

void ChatCompletionResponder::send_opening() {
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion.chunk");
    json.key("choices").begin_list();
    for (size_t i = 0; i < choices(); ++i) {
        json.begin_object().member("index", i);
        json.key("delta").begin_object().member("role", "assistant").key("content").null().end_object();
        json.key("logprobs").null().key("finish_reason").null().end_object();
    }
    json.end_list();
    if (delivery().usage_in_stream) json.key("usage").null();
    json.end_object();
    write(out);
}

std::string ChatCompletionResponder::progress_json(std::string_view progress) {
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion.chunk");
    json.key("choices").begin_list().end_list().key("prompt_progress").json(progress).end_object();
    return out;
}

void ChatCompletionResponder::send_part(size_t index, const text::ReplyEvent& event, std::string_view timings) {
    std::string delta;
    text::JsonWriter json(delta);
    json.begin_object();
    switch (event.kind) {
        case text::ReplyKind::kReasoning:
            json.member("reasoning_content", event.text);
            break;
        case text::ReplyKind::kContent:
            json.member("content", event.text);
            break;
        case text::ReplyKind::kToolCall:
            json.key("tool_calls").begin_list().begin_object();
            json.member("index", event.call).member("id", choice(index).calls.back().id);
            write_call(json, choice(index).calls.back().custom, event.text, "");
            json.end_object().end_list();
            break;
        case text::ReplyKind::kToolArguments:
            json.key("tool_calls").begin_list().begin_object().member("index", event.call);
            write_call_part(json, choice(index).calls[event.call].custom, event.text);
            json.end_object().end_list();
            break;
    }
    json.end_object();
    send_delta(index, delta, timings);
}

void ChatCompletionResponder::send_delta(size_t index, std::string_view delta, std::string_view timings,
                                         std::string_view finish) {
    Choice& sent = choice(index);
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion.chunk");
    json.key("choices").begin_list().begin_object().member("index", index).key("delta").json(delta);
    write_probabilities(json, sent, chat().probabilities && !sent.probabilities.list.empty());
    json.key("finish_reason").text_or_null(finish).end_object().end_list();
    if (delivery().usage_in_stream) json.key("usage").null();
    if (!timings.empty()) json.key("timings").json(timings);
    json.end_object();
    send(out);
}

void ChatCompletionResponder::send_finish(size_t index, const session::Answer& answer) {
    send_delta(index, "{}", timings_json(answer), finish_of(answer.reason, !choice(index).calls.empty()));
}

void ChatCompletionResponder::write_message(text::JsonWriter& json, const Choice& choice) const {
    json.key("message").begin_object().member("role", "assistant").key("content");
    if (choice.content.empty() && !choice.calls.empty())
        json.null();
    else
        json.value(choice.content);
    if (chat().syntax.reasoning && !choice.reasoning.empty()) json.member("reasoning_content", choice.reasoning);
    if (!choice.calls.empty()) {
        json.key("tool_calls").begin_list();
        for (const Call& call : choice.calls) {
            json.begin_object().member("id", call.id);
            write_call(json, call.custom, call.name, call.arguments);
            json.end_object();
        }
        json.end_list();
    }
    json.key("refusal").null().end_object();
}

void ChatCompletionResponder::send_last() {
    if (delivery().usage_in_stream) {
        std::string out;
        text::JsonWriter json(out);
        write_head(json, "chat.completion.chunk");
        json.key("choices").begin_list().end_list();
        write_usage(json);
        json.key("timings").json(timings_json()).end_object();
        send(out);
    }
    send_end();
}

std::string ChatCompletionResponder::whole() {
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion");
    json.key("choices").begin_list();
    for (size_t i = 0; i < choices(); ++i) {
        Choice& told = choice(i);
        json.begin_object().member("index", i);
        write_message(json, told);
        write_probabilities(json, told, chat().probabilities.has_value());
        json.member("finish_reason", finish_of(told.answer.reason, !told.calls.empty())).end_object();
    }
    json.end_list();
    write_usage(json);
    json.key("timings").json(timings_json()).end_object();
    return out;
}

}  // namespace tessera::server
