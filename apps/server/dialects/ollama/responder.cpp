#include "apps/server/dialects/ollama/responder.hpp"

#include <spdlog/fmt/fmt.h>

#include <ctime>

namespace tessera::server::ollama {
namespace {

uint64_t nanoseconds(double seconds) {
    return seconds > 0 ? static_cast<uint64_t>(seconds * 1e9) : 0;
}

}  // namespace

std::string time_text(int64_t seconds) {
    const std::time_t time = seconds;
    std::tm parts{};
    gmtime_r(&time, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                       parts.tm_hour, parts.tm_min, parts.tm_sec);
}

void OllamaChatResponder::write_part(text::JsonWriter& json, std::string_view content, std::string_view reasoning,
                                     bool calls, bool done) {
    json.begin_object().member("model", model().name).member("created_at", time_text(created_));
    if (generate_) {
        json.member("response", content);
        if (!reasoning.empty()) json.member("thinking", reasoning);
    } else {
        json.key("message").begin_object().member("role", "assistant").member("content", content);
        if (!reasoning.empty()) json.member("thinking", reasoning);
        if (calls) {
            json.key("tool_calls").begin_list();
            for (const Call& call : choice(0).calls) {
                json.begin_object().member("id", call.id).key("function").begin_object().member("name", call.name);
                json.key("arguments").json(call.arguments_object()).end_object().end_object();
            }
            json.end_list();
        }
        json.end_object();
    }
    if (ProbabilitiesJson& told = choice(0).probabilities; !told.list.empty()) json.key("logprobs").json(told.take());
    json.member("done", done);
}

std::string OllamaChatResponder::last(std::string_view content, std::string_view reasoning, bool calls) {
    const session::Answer& answer = choice(0).answer;
    std::string out;
    text::JsonWriter json(out);
    write_part(json, content, reasoning, calls, true);
    json.member("done_reason", finish_word(answer.reason));
    json.member("total_duration", nanoseconds(answer.seconds)).member("load_duration", 0);
    json.member("prompt_eval_count", answer.prompt_tokens);
    json.member("prompt_eval_duration", nanoseconds(answer.prompt_seconds));
    json.member("eval_count", answer.new_tokens);
    json.member("eval_duration", nanoseconds(answer.seconds - answer.first_token_seconds)).end_object();
    return out;
}

std::string OllamaChatResponder::progress_json(std::string_view) {
    return {};
}

void OllamaChatResponder::send_part(size_t, const text::ReplyEvent& event, std::string_view) {
    const bool reasoning = event.kind == text::ReplyKind::kReasoning;
    if (event.text.empty() || (!reasoning && event.kind != text::ReplyKind::kContent)) return;
    std::string out;
    text::JsonWriter json(out);
    write_part(json, reasoning ? std::string_view() : event.text, reasoning ? event.text : std::string_view(), false,
               false);
    json.end_object();
    send(out);
}

// Calls are sent whole.
void OllamaChatResponder::send_finish(size_t, const session::Answer&) {
    if (choice(0).calls.empty() || generate_) return;
    std::string out;
    text::JsonWriter json(out);
    write_part(json, {}, {}, true, false);
    json.end_object();
    send(out);
}

void OllamaChatResponder::send_last() {
    send(last({}, {}, false));
    exchange().end();
}

std::string OllamaChatResponder::whole() {
    const Choice& told = choice(0);
    return last(told.content, told.reasoning, !told.calls.empty());
}

}  // namespace tessera::server::ollama
