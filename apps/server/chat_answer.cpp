#include "apps/server/chat_answer.hpp"

#include "apps/server/json_text.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
ChatAnswer::ChatAnswer(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, AnswerForm form,
                       ChatForm chat)
    : Answering(std::move(exchange), std::move(model), form), chat_(std::move(chat)) {
    for (uint32_t i = 0; i < form.choices; ++i)
        choices_.push_back({text::ReplyParser(chat_.syntax), {}, {}, {}, {}, {}});
}

std::string ChatAnswer::head(std::string_view object) const {
    return fmt::format(R"({{"id":"chatcmpl{}","object":"{}","created":{},"model":{},"system_fingerprint":"{}",)", id_,
                       object, created_, json_string(model().name), kFingerprint);
}

std::string ChatAnswer::usage_json() const {
    return fmt::format(
        R"("usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
        usage_.prompt_tokens, usage_.new_tokens, usage_.prompt_tokens + usage_.new_tokens, usage_.reused_tokens);
}

std::string ChatAnswer::opening_json() {
    std::string choices;
    for (size_t i = 0; i < choices_.size(); ++i) {
        choices += fmt::format(
            R"({}{{"index":{},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}})",
            i ? "," : "", i);
    }
    return head("chat.completion.chunk") + R"("choices":[)" + choices + "]" + std::string(no_usage()) + "}";
}

std::string ChatAnswer::progress_json(std::string_view progress) {
    return fmt::format(R"({}"choices":[],{}}})", head("chat.completion.chunk"), progress);
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
        switch (event.part) {
            case text::ReplyPart::kReasoning:
                if (!streams()) choice.reasoning += event.text;
                delta = R"("reasoning_content":)" + json_string(event.text);
                break;
            case text::ReplyPart::kContent:
                if (!streams()) choice.content += event.text;
                delta = R"("content":)" + json_string(event.text);
                break;
            case text::ReplyPart::kToolCall:
                choice.calls.push_back({new_id("call"), event.text, {}});
                delta = fmt::format(
                    R"("tool_calls":[{{"index":{},"id":"{}","type":"function","function":{{"name":{},"arguments":""}}}}])",
                    event.call, choice.calls.back().id, json_string(event.text));
                break;
            case text::ReplyPart::kToolArguments:
                if (event.call < choice.calls.size()) choice.calls[event.call].arguments += event.text;
                delta = fmt::format(R"("tool_calls":[{{"index":{},"function":{{"arguments":{}}}}}])", event.call,
                                    json_string(event.text));
                break;
        }
        if (streams()) send_delta(index, delta, timings);
    }
}

void ChatAnswer::send_delta(size_t index, std::string_view delta, std::string_view timings, std::string_view finish) {
    ProbabilitiesJson& probabilities = choices_[index].probabilities;
    std::string json = head("chat.completion.chunk");
    json += fmt::format(R"("choices":[{{"index":{},"delta":{{{}}},"logprobs":)", index, delta);
    json += chat_.probabilities && !probabilities.list.empty()
                ? R"({"content":)" + probabilities.take() + R"(,"refusal":null})"
                : "null";
    json += R"(,"finish_reason":)";
    json += finish.empty() ? "null" : json_string(finish);
    json += "}]";
    json += no_usage();
    if (!timings.empty()) (json += ",") += timings;
    json += "}";
    send(json);
}

void ChatAnswer::on_finish(size_t index, const session::Answer& answer) {
    Choice& choice = choices_[index];
    std::vector<text::ReplyEvent> events;
    choice.parser.finish(events);
    take(index, events);
    choice.finish = finish_word(answer.reason);
    if (choice.finish == "stop" && !choice.calls.empty()) choice.finish = "tool_calls";
    if (streams()) send_delta(index, {}, "\"timings\":" + timings_json(answer), choice.finish);
}

std::string ChatAnswer::message_json(const Choice& choice) const {
    std::string json = R"({"role":"assistant","content":)";
    json += choice.content.empty() && !choice.calls.empty() ? "null" : json_string(choice.content);
    if (chat_.syntax.reasoning && !choice.reasoning.empty())
        json += R"(,"reasoning_content":)" + json_string(choice.reasoning);
    if (!choice.calls.empty()) {
        json += R"(,"tool_calls":[)";
        for (const Call& call : choice.calls) {
            json += fmt::format(R"({}{{"id":"{}","type":"function","function":{{"name":{},"arguments":{}}}}})",
                                &call == &choice.calls.front() ? "" : ",", call.id, json_string(call.name),
                                json_string(call.arguments));
        }
        json += ']';
    }
    return json + R"(,"refusal":null})";
}

void ChatAnswer::on_end() {
    if (streams()) {
        if (form().usage_in_stream)
            send(head("chat.completion.chunk") + R"("choices":[],)" + usage_json() + R"(,"timings":)" + timings_json() +
                 "}");
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
    std::string json = head("chat.completion") + R"("choices":[)";
    for (size_t i = 0; i < choices_.size(); ++i) {
        Choice& choice = choices_[i];
        json += fmt::format(R"({}{{"index":{},"message":{},"logprobs":)", i ? "," : "", i, message_json(choice));
        json += chat_.probabilities ? R"({"content":)" + choice.probabilities.take() + R"(,"refusal":null})" : "null";
        json += fmt::format(R"(,"finish_reason":"{}"}})", choice.finish);
    }
    json += "]," + usage_json() + R"(,"timings":)" + timings_json() + "}";
    return json;
}

}  // namespace tessera::server
