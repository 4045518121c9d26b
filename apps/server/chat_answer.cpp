#include "apps/server/chat_answer.hpp"

namespace tessera::server {
ChatAnswer::ChatAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
                       ChatForm chat)
    : Answering(std::move(exchange), std::move(model), form), chat_(std::move(chat)) {
    for (uint32_t i = 0; i < form.choices; ++i)
        choices_.push_back({text::ReplyParser(chat_.syntax), {}, {}, {}, {}, {}});
}

void ChatAnswer::write_head(text::JsonWriter& json, std::string_view object) const {
    json.begin_object();
    json.member("id", "chatcmpl" + id_).member("object", object).member("created", created_);
    json.member("model", model().name).member("system_fingerprint", kFingerprint);
}

void ChatAnswer::write_usage(text::JsonWriter& json) const {
    json.key("usage").begin_object();
    json.member("prompt_tokens", usage_.prompt_tokens).member("completion_tokens", usage_.new_tokens);
    json.member("total_tokens", usage_.prompt_tokens + usage_.new_tokens);
    json.key("prompt_tokens_details").begin_object().member("cached_tokens", usage_.reused_tokens).end_object();
    json.end_object();
}

void ChatAnswer::write_probabilities(text::JsonWriter& json, Choice& choice, bool wanted) const {
    json.key("logprobs");
    if (!wanted) {
        json.null();
        return;
    }
    json.begin_object().key("content").json(choice.probabilities.take());
    json.key("refusal").null().end_object();
}

std::string ChatAnswer::opening_json() {
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion.chunk");
    json.key("choices").begin_list();
    for (size_t i = 0; i < choices_.size(); ++i) {
        json.begin_object().member("index", i);
        json.key("delta").begin_object().member("role", "assistant").member("content", "").end_object();
        json.key("logprobs").null().key("finish_reason").null().end_object();
    }
    json.end_list();
    if (form().usage_in_stream) json.key("usage").null();
    json.end_object();
    return out;
}

std::string ChatAnswer::progress_json(std::string_view progress) {
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion.chunk");
    json.key("choices").begin_list().end_list().key("prompt_progress").json(progress).end_object();
    return out;
}

void ChatAnswer::on_token(size_t index, const session::ShownToken& token, std::string_view timings) {
    if (token.probabilities) choices_[index].probabilities.add(*token.probabilities, *model().tokenizer);
    std::vector<text::ReplyEvent> events;
    choices_[index].parser.push(token.text, events);
    take(index, events, timings);
}

void ChatAnswer::take(size_t index, std::span<const text::ReplyEvent> events, std::string_view timings) {
    Choice& choice = choices_[index];
    for (const text::ReplyEvent& event : events) {
        std::string delta;
        text::JsonWriter json(delta);
        json.begin_object();
        switch (event.part) {
            case text::ReplyPart::kReasoning:
                if (!streams()) choice.reasoning += event.text;
                json.member("reasoning_content", event.text);
                break;
            case text::ReplyPart::kContent:
                if (!streams()) choice.content += event.text;
                json.member("content", event.text);
                break;
            case text::ReplyPart::kToolCall:
                choice.calls.push_back({new_id("call"), event.text, {}});
                json.key("tool_calls").begin_list().begin_object();
                json.member("index", event.call).member("id", choice.calls.back().id).member("type", "function");
                json.key("function").begin_object().member("name", event.text).member("arguments", "").end_object();
                json.end_object().end_list();
                break;
            case text::ReplyPart::kToolArguments:
                if (event.call < choice.calls.size()) choice.calls[event.call].arguments += event.text;
                json.key("tool_calls").begin_list().begin_object().member("index", event.call);
                json.key("function").begin_object().member("arguments", event.text).end_object();
                json.end_object().end_list();
                break;
        }
        json.end_object();
        if (streams()) send_delta(index, delta, timings);
    }
}

void ChatAnswer::send_delta(size_t index, std::string_view delta, std::string_view timings, std::string_view finish) {
    Choice& choice = choices_[index];
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion.chunk");
    json.key("choices").begin_list().begin_object().member("index", index).key("delta").json(delta);
    write_probabilities(json, choice, chat_.probabilities && !choice.probabilities.list.empty());
    json.key("finish_reason").text_or_null(finish).end_object().end_list();
    if (form().usage_in_stream) json.key("usage").null();
    if (!timings.empty()) json.key("timings").json(timings);
    json.end_object();
    send(out);
}

void ChatAnswer::on_finish(size_t index, const session::Answer& answer) {
    Choice& choice = choices_[index];
    std::vector<text::ReplyEvent> events;
    choice.parser.finish(events);
    take(index, events);
    choice.finish = finish_word(answer.reason);
    if (choice.finish == "stop" && !choice.calls.empty()) choice.finish = "tool_calls";
    if (streams()) send_delta(index, "{}", timings_json(answer), choice.finish);
}

void ChatAnswer::write_message(text::JsonWriter& json, const Choice& choice) const {
    json.key("message").begin_object().member("role", "assistant").key("content");
    if (choice.content.empty() && !choice.calls.empty())
        json.null();
    else
        json.value(choice.content);
    if (chat_.syntax.reasoning && !choice.reasoning.empty()) json.member("reasoning_content", choice.reasoning);
    if (!choice.calls.empty()) {
        json.key("tool_calls").begin_list();
        for (const Call& call : choice.calls) {
            json.begin_object().member("id", call.id).member("type", "function");
            json.key("function").begin_object().member("name", call.name).member("arguments", call.arguments);
            json.end_object().end_object();
        }
        json.end_list();
    }
    json.key("refusal").null().end_object();
}

void ChatAnswer::on_end() {
    if (streams()) {
        if (form().usage_in_stream) {
            std::string out;
            text::JsonWriter json(out);
            write_head(json, "chat.completion.chunk");
            json.key("choices").begin_list().end_list();
            write_usage(json);
            json.key("timings").json(timings_json()).end_object();
            send(out);
        }
        return send_end();
    }
    uint64_t bytes = 0;
    for (const Choice& choice : choices_) {
        bytes += choice.content.size() + choice.reasoning.size() + choice.probabilities.list.size();
        for (const Call& call : choice.calls) bytes += call.name.size() + call.arguments.size();
    }
    respond_later(bytes, [this] { return whole(); });
}

std::string ChatAnswer::whole() {
    std::string out;
    text::JsonWriter json(out);
    write_head(json, "chat.completion");
    json.key("choices").begin_list();
    for (size_t i = 0; i < choices_.size(); ++i) {
        Choice& choice = choices_[i];
        json.begin_object().member("index", i);
        write_message(json, choice);
        write_probabilities(json, choice, chat_.probabilities.has_value());
        json.member("finish_reason", choice.finish).end_object();
    }
    json.end_list();
    write_usage(json);
    json.key("timings").json(timings_json()).end_object();
    return out;
}

}  // namespace tessera::server
