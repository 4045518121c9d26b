#include "apps/tessera-server/generation_request.hpp"

#include "apps/tessera-server/api_error.hpp"
#include "apps/tessera-server/chat_messages.hpp"
#include "apps/tessera-server/request_tables.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr int64_t kMaximumProbabilities = 20;
constexpr size_t kMaximumPromptTokens = 1 << 24;

// A text, whose control tokens are parsed as in other programs, or numbers of tokens; each alone or in a list.
std::vector<text::Token> tokens_of_prompt(const Fields& fields, const ModelText& model) {
    const json::value* const prompt = fields.find("prompt");
    if (!prompt) fields.reject("prompt", "a text or a list of tokens");
    const text::Tokenizer& tokenizer = *model.tokenizer;
    const auto tokens_of = [&](std::string_view text) {
        check_length(text, model);
        return tokens_to_continue(tokenizer, text, true);
    };
    if (prompt->is_string()) return tokens_of(prompt->get_string());
    const json::array* list = fields.array("prompt", kMaximumPromptTokens);
    if (list->size() == 1 && list->front().is_string()) return tokens_of(list->front().get_string());
    if (list->size() == 1 && list->front().is_array()) list = &list->front().get_array();
    for (const json::value& value : *list) {
        if (value.is_string() || value.is_array())
            fields.refuse("prompt", "several prompts in one request are not offered; send one request for each");
    }
    return read_tokens(fields, "prompt", *list, tokenizer);
}

}  // namespace

ChatRequest read_chat(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, chat_table());
    read_response_format(fields);
    ChatRequest read{read_form(fields), read_request(fields, model), {}};
    session::Request& request = read.request;
    const bool wanted = fields.boolean("logprobs").value_or(false);
    if (const auto top = fields.integer("top_logprobs", 0, kMaximumProbabilities)) {
        if (!wanted && *top > 0)
            throw ApiError(400, "top_logprobs: has a meaning with \"logprobs\": true alone", "top_logprobs");
        if (wanted) request.probabilities = static_cast<uint32_t>(*top);
    } else if (wanted) {
        request.probabilities = 0;
    }
    read.chat.probabilities = request.probabilities;
    const text::WrittenChat written = write_chat(fields, model);
    check_length(written.text, model);
    request.prompt = model.writer->tokens(written);
    read.chat.syntax = written.reply;
    // What separates reasoning, content and calls may be control tokens.
    request.show_control = written.reply.reasoning || written.reply.tools != text::ToolSyntax::kNone;
    request.show_end = false;
    fields.check_read();
    return read;
}

CompletionRequest read_completion(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, completion_table());
    read_response_format(fields);
    CompletionRequest read{read_form(fields), {}, {}};
    if (const auto best = fields.integer("best_of", 1, 128); best && *best > static_cast<int64_t>(read.form.choices))
        fields.refuse("best_of", "answers are not ranked; use n");
    // The API's own default.
    session::Request& request = read.request = read_request(fields, model, 16);
    if (const auto count = fields.integer("logprobs", 0, kMaximumProbabilities))
        request.probabilities = static_cast<uint32_t>(*count);
    request.prompt = tokens_of_prompt(fields, model);
    if (fields.boolean("echo").value_or(false)) {
        if (request.probabilities) fields.refuse("echo", "log probabilities of the prompt are not offered");
        read.echo = model.tokenizer->decode(request.prompt);
    }
    fields.check_read();
    return read;
}

PlainRequest read_plain_completion(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, plain_completion_table());
    PlainRequest read;
    read.form = read_form(fields);
    // Not as an initialiser: if one behind another throws, GCC 12 destroys members that were never made.
    read.stops = read_stops(fields);
    if (read.form.choices > 1) fields.refuse("n", "use /v1/completions for several answers");
    session::Request& request = read.request = read_request(fields, model);
    if (const auto count = fields.integer("n_probs", 0, kMaximumProbabilities); count && *count > 0)
        request.probabilities = static_cast<uint32_t>(*count);
    request.prompt = tokens_of_prompt(fields, model);
    if (!read.form.stream) {
        const json::value* const prompt = fields.find("prompt");
        read.prompt = prompt->is_string() ? std::string(prompt->get_string()) : model.tokenizer->decode(request.prompt);
    }
    read.tokens = fields.boolean("return_tokens").value_or(false);
    fields.check_read();
    return read;
}

}  // namespace tessera::server
