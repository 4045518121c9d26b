#include "apps/server/dialects/responses/responder.hpp"

#include <algorithm>
#include <utility>

namespace tessera::server::responses {
namespace {

constexpr std::string_view kInProgress = "in_progress", kCompleted = "completed", kIncomplete = "incomplete";

}  // namespace

ResponsesResponder::Item ResponsesResponder::item_of(text::ReplyKind kind, const Call* call) const {
    if (!call) return {kind, new_id(kind == text::ReplyKind::kReasoning ? "rs_" : "msg_"), {}, {}, {}};
    return {text::ReplyKind::kToolArguments,
            new_id(call->custom ? "ctc_" : "fc_"),
            call->arguments,
            call->id,
            call->name,
            call->custom};
}

template <typename Fill>
void ResponsesResponder::write_event(std::string_view type, const Fill& fill) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("type", type).member("sequence_number", events_++);
    fill(json);
    json.end_object();
    write(out, type);
}

void ResponsesResponder::write_head(text::JsonWriter& json, std::string_view status) const {
    json.begin_object().member("id", "resp_" + id_).member("object", "response").member("created_at", created_);
    json.member("status", status).member("background", false).member("model", model().name);
}

void ResponsesResponder::write_tail(text::JsonWriter& json) const {
    for (const auto& [name, value] : chat().repeated) json.key(name).json(value);
}

void ResponsesResponder::write_unfinished(text::JsonWriter& json, std::string_view status,
                                          const ApiError* error) const {
    write_head(json, status);
    json.key("error");
    if (error) {
        // Of the API's own codes this one says that the same request would fail again.
        const std::string_view code = error->status() == 400  ? "invalid_prompt"
                                      : error->code().empty() ? "server_error"
                                                              : std::string_view(error->code());
        json.begin_object().member("code", code);
        json.member("message", std::string_view(error->what())).end_object();
    } else {
        json.null();
    }
    json.key("incomplete_details").null().key("output").begin_list().end_list();
    write_tail(json);
    json.key("usage").null().end_object();
}

void ResponsesResponder::write_finished(text::JsonWriter& json) {
    const bool cut = choice(0).length();
    write_head(json, cut ? kIncomplete : kCompleted);
    json.key("error").null().key("incomplete_details");
    if (cut)
        json.begin_object().member("reason", "max_output_tokens").end_object();
    else
        json.null();
    json.key("output").begin_list();
    for (const std::string& item : output_) json.json(item);
    json.end_list();
    write_tail(json);
    json.key("usage").begin_object().member("input_tokens", usage_.prompt_tokens);
    json.key("input_tokens_details").begin_object().member("cached_tokens", usage_.reused_tokens).end_object();
    json.member("output_tokens", usage_.new_tokens);
    json.key("output_tokens_details").begin_object();
    json.member("reasoning_tokens", reasoning_tokens()).end_object();
    json.member("total_tokens", usage_.prompt_tokens + usage_.new_tokens).end_object();
    json.key("timings").json(timings_json()).end_object();
}

void ResponsesResponder::write_part(text::JsonWriter& json, const Item& item) const {
    json.begin_object();
    if (item.kind == text::ReplyKind::kReasoning) {
        json.member("type", "reasoning_text").member("text", item.text);
    } else {
        json.member("type", "output_text").member("text", item.text);
        json.key("annotations").begin_list().end_list().key("logprobs").begin_list().end_list();
    }
    json.end_object();
}

void ResponsesResponder::write_name(text::JsonWriter& json, const std::string& whole) const {
    const auto grouped = std::ranges::find(chat().grouped, whole, &GroupedName::whole);
    if (grouped == chat().grouped.end())
        json.member("name", whole);
    else
        json.member("name", grouped->name).member("namespace", grouped->group);
}

void ResponsesResponder::write_item(text::JsonWriter& json, const Item& item, std::string_view status) const {
    const bool begun = status == kInProgress;
    json.begin_object().member("id", item.id).member("status", status);
    if (item.kind == text::ReplyKind::kToolArguments) {
        json.member("type", item.custom ? "custom_tool_call" : "function_call").member("call_id", item.call_id);
        write_name(json, item.name);
        json.key(item.custom ? "input" : "arguments");
        if (begun)
            json.value("");
        else
            json.value(item.text);
        json.end_object();
        return;
    }
    if (item.kind == text::ReplyKind::kReasoning) {
        json.member("type", "reasoning").key("summary").begin_list().end_list().key("encrypted_content");
        if (chat().returns_reasoning && !begun)
            json.value(reasoning_to_return(item.text));
        else
            json.null();
    } else {
        json.member("type", "message").member("role", "assistant");
    }
    json.key("content").begin_list();
    if (!begun) write_part(json, item);
    json.end_list().end_object();
}

void ResponsesResponder::send_opening() {
    for (const std::string_view type : {"response.created", "response.in_progress"}) {
        write_event(type,
                    [&](text::JsonWriter& json) { write_unfinished(json.key("response"), kInProgress, nullptr); });
    }
}

std::string ResponsesResponder::progress_json(std::string_view) {
    return {};
}

void ResponsesResponder::enter(Item item) {
    leave(kCompleted);
    item_ = std::move(item);
    send_event("response.output_item.added", [&](text::JsonWriter& json) {
        json.member("output_index", output_.size());
        write_item(json.key("item"), *item_, kInProgress);
    });
    if (item_->kind == text::ReplyKind::kToolArguments) return;
    send_event("response.content_part.added", [&](text::JsonWriter& json) {
        json.member("item_id", item_->id).member("output_index", output_.size()).member("content_index", 0);
        write_part(json.key("part"), *item_);
    });
}

void ResponsesResponder::leave(std::string_view status) {
    if (!item_) return;
    const Item item = std::move(*item_);
    item_.reset();
    const auto place = [&](text::JsonWriter& json) {
        json.member("item_id", item.id).member("output_index", output_.size());
    };
    if (item.custom) {
        send_event("response.custom_tool_call_input.done", [&](text::JsonWriter& json) {
            place(json);
            json.member("input", item.text);
        });
    } else if (item.kind == text::ReplyKind::kToolArguments) {
        send_event("response.function_call_arguments.done", [&](text::JsonWriter& json) {
            place(json);
            write_name(json, item.name);
            json.member("arguments", item.text);
        });
    } else {
        const bool reasoning = item.kind == text::ReplyKind::kReasoning;
        send_event(reasoning ? "response.reasoning_text.done" : "response.output_text.done",
                   [&](text::JsonWriter& json) {
                       place(json);
                       json.member("content_index", 0).member("text", item.text);
                       if (!reasoning) json.key("logprobs").begin_list().end_list();
                   });
        send_event("response.content_part.done", [&](text::JsonWriter& json) {
            place(json);
            json.member("content_index", 0);
            write_part(json.key("part"), item);
        });
    }
    std::string written;
    text::JsonWriter item_json(written);
    write_item(item_json, item, status);
    send_event("response.output_item.done",
               [&](text::JsonWriter& json) { json.member("output_index", output_.size()).key("item").json(written); });
    output_.push_back(std::move(written));
}

void ResponsesResponder::send_part(size_t index, const text::ReplyEvent& event, std::string_view) {
    using enum text::ReplyKind;
    if (event.kind == kToolCall) return enter(item_of(event.kind, &choice(index).calls.back()));
    if (event.text.empty()) return;
    if (event.kind != kToolArguments && (!item_ || item_->kind != event.kind)) enter(item_of(event.kind, nullptr));
    item_->text += event.text;
    const bool content = event.kind == kContent;
    const std::string_view type = content                    ? "response.output_text.delta"
                                  : event.kind == kReasoning ? "response.reasoning_text.delta"
                                  : item_->custom            ? "response.custom_tool_call_input.delta"
                                                             : "response.function_call_arguments.delta";
    send_event(type, [&](text::JsonWriter& json) {
        json.member("item_id", item_->id).member("output_index", output_.size());
        if (event.kind != kToolArguments) json.member("content_index", 0);
        json.member("delta", event.text);
        if (content) json.key("logprobs").begin_list().end_list();
    });
}

void ResponsesResponder::send_finish(size_t, const session::Answer&) {
    if (!item_ && output_.empty()) enter(item_of(text::ReplyKind::kContent, nullptr));
    leave(choice(0).length() ? kIncomplete : kCompleted);
}

void ResponsesResponder::send_last() {
    send_event(choice(0).length() ? "response.incomplete" : "response.completed",
               [&](text::JsonWriter& json) { write_finished(json.key("response")); });
    exchange().end();
}

void ResponsesResponder::send_error(const ApiError& error) {
    send_event("response.failed",
               [&](text::JsonWriter& json) { write_unfinished(json.key("response"), "failed", &error); });
}

std::string ResponsesResponder::whole() {
    const Choice& told = choice(0);
    std::vector<Item> items;
    const auto add = [&](text::ReplyKind kind, const std::string& text) {
        items.push_back(item_of(kind, nullptr));
        items.back().text = text;
    };
    if (!told.reasoning.empty()) add(text::ReplyKind::kReasoning, told.reasoning);
    if (!told.content.empty() || (items.empty() && told.calls.empty())) add(text::ReplyKind::kContent, told.content);
    for (const Call& call : told.calls) items.push_back(item_of(text::ReplyKind::kToolArguments, &call));
    for (size_t i = 0; i < items.size(); ++i) {
        std::string written;
        text::JsonWriter item_json(written);
        write_item(item_json, items[i], told.length() && i + 1 == items.size() ? kIncomplete : kCompleted);
        output_.push_back(std::move(written));
    }
    std::string out;
    text::JsonWriter json(out);
    write_finished(json);
    return out;
}

}  // namespace tessera::server::responses
