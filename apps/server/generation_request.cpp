#include "apps/server/generation_request.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/chat_messages.hpp"
#include "apps/server/prompts_of_request.hpp"
#include "apps/server/request_tables.hpp"
#include "apps/server/structure_fields.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr int64_t kMaximumProbabilities = 20, kMaximumPlainProbabilities = 100;
constexpr size_t kMaximumResponseFields = 128;

// Control tokens are a part of the text: true unless skip_special_tokens says otherwise.
bool shows_control(const Fields& fields) {
    return !fields.boolean("skip_special_tokens").value_or(true);
}

// `request` for each of the prompts.
std::vector<session::Request> requests_of(const session::Request& request, std::vector<Prompt> prompts,
                                          const AnswerForm& form) {
    if (prompts.size() * form.choices > kMaximumChoices)
        throw ApiError(400,
                       fmt::format("n: {} answers to {} prompts; at most {} in all are accepted", form.choices,
                                   prompts.size(), kMaximumChoices),
                       "n");
    std::vector<session::Request> requests;
    for (Prompt& prompt : prompts) {
        requests.push_back(request);
        requests.back().prompt = std::move(prompt.tokens);
    }
    return requests;
}

// Nothing if all of the answer is wanted.
std::optional<std::vector<AskedField>> read_asked_fields(const Fields& fields, const GenerationSettings& settings) {
    const json::array* const list = fields.array("response_fields", kMaximumResponseFields);
    if (!list || list->empty()) return std::nullopt;
    std::vector<AskedField> asked;
    json::value parsed;
    for (const json::value& value : *list) {
        if (!value.is_string()) fields.reject("response_fields", "a list of texts");
        AskedField field{std::string(value.get_string()), {}, {}, {}};
        if (std::ranges::find(asked, field.path, &AskedField::path) != asked.end()) continue;
        field.name = field.path.substr(0, field.path.find('/'));
        field.member = field.path.substr(std::min(field.name.size() + 1, field.path.size()));
        if (field.name == "generation_settings" && !field.member.empty() && field.member != "seed") {
            if (parsed.is_null()) parsed = json::parse(settings.json(0));
            field.known = json_member(parsed, field.member);
        }
        asked.push_back(std::move(field));
    }
    return asked;
}

// Calls of the tools, as the model's format has them.
void hold_to_calls(session::Request& request, const AskedCalls& asked, const text::ReplySyntax& reply,
                   const ModelText& model) {
    if (reply.content_begun)
        throw ApiError(400, "tool_choice: the message to be continued is not held to calls", "tool_choice");
    try {
        const structure::Body body = structure::calls_body(reply.tools, asked.tools, asked.several, *model.tokenizer);
        hold_to(request, structure::answer_grammar(body, reply, *model.tokenizer), model, "tool_choice");
    } catch (const Error& error) {
        throw ApiError(400, fmt::format("tool_choice: {}", error.what()), "tool_choice");
    }
}

bool tells(const PlainForm& form, std::string_view name) {
    return !form.fields ||
           std::ranges::any_of(*form.fields, [&](const AskedField& field) { return field.name == name; });
}

}  // namespace

std::optional<std::string> json_member(const json::value& whole, std::string_view path) {
    const json::value* at = &whole;
    while (at && !path.empty()) {
        const std::string_view key = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(key.size() + 1, path.size()));
        at = at->is_object() ? at->get_object().if_contains(json::string_view(key.data(), key.size())) : nullptr;
    }
    return at ? std::optional(json::serialize(*at)) : std::nullopt;
}

ChatRequest read_chat(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, chat_table());
    const auto structure = read_structure(fields, model);
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
    AskedCalls asked;
    const text::WrittenChat written = write_chat(
        fields, model, [&](uint64_t bytes) { check_length(bytes, model); }, &asked);
    check_length(written.text.size(), model);
    request.prompt = model.writer->tokens(written, 0, most_prompt_tokens(model));
    check_prompt_tokens(request.prompt.size(), model);
    read.chat.syntax = written.reply;
    // What separates reasoning, content and calls may be control tokens.
    request.show_control = written.reply.reasoning || written.reply.tools != text::ToolSyntax::kNone;
    request.show_end = false;
    fields.check_read();
    if (!asked.tools.empty()) {
        if (structure) {
            throw ApiError(400, fmt::format("tool_choice: excludes {}: the answer is calls alone", structure->field),
                           "tool_choice");
        }
        hold_to_calls(request, asked, written.reply, model);
    } else if (structure) {
        if (written.reply.tools != text::ToolSyntax::kNone) {
            throw ApiError(
                400,
                fmt::format("{}: excludes tools that may be called; set tool_choice to \"none\"", structure->field),
                structure->field);
        }
        if (written.reply.content_begun) {
            throw ApiError(400, fmt::format("{}: the message to be continued is not held to it", structure->field),
                           structure->field);
        }
        hold_to(request, structure::answer_grammar(structure->body, written.reply, *model.tokenizer), model,
                structure->field);
    }
    return read;
}

CompletionRequest read_completion(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, completion_table());
    const auto structure = read_structure(fields, model);
    CompletionRequest read{read_form(fields), {}, {}};
    if (const auto best = fields.integer("best_of", 1, kMaximumChoices);
        best && *best > static_cast<int64_t>(read.form.choices))
        fields.refuse("best_of", "answers are not ranked; use n");
    // The API's own default.
    session::Request request = read_request(fields, model, 16);
    request.show_control = shows_control(fields);
    request.show_end = false;
    if (const auto count = fields.integer("logprobs", 0, kMaximumProbabilities))
        request.probabilities = static_cast<uint32_t>(*count);
    CompletionForm& form = read.completion;
    form.probabilities = request.probabilities.has_value();
    const bool echo = fields.boolean("echo").value_or(false);
    std::vector<Prompt> prompts = read_prompts(fields, model, echo);
    fields.check_read();
    for (Prompt& prompt : prompts) form.echoes.push_back(std::move(prompt.text));
    if (structure) hold_to(request, structure::answer_grammar(structure->body), model, structure->field);
    if (echo && form.probabilities) {
        request.prompt_probabilities = request.probabilities;
        for (const Prompt& prompt : prompts) {
            form.echoed.push_back(
                {{prompt.tokens.begin() + (prompt.bos_added ? 1 : 0), prompt.tokens.end()}, prompt.bos_added});
        }
    }
    read.prompts = requests_of(request, std::move(prompts), read.form);
    return read;
}

PlainRequest read_plain_completion(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, plain_completion_table());
    const auto structure = read_structure(fields, model);
    PlainRequest read;
    read.form = read_form(fields);
    // Not as an initialiser: if one behind another throws, GCC 12 destroys members that were never made.
    PlainForm& form = read.plain;
    form.stops = read_stops(fields);
    session::Request request = read_request(fields, model);
    request.show_control = shows_control(fields);
    request.show_end = false;
    if (const auto count =
            read_any(fields, {"n_probs", "logprobs"},
                     [&](std::string_view name) { return fields.integer(name, 0, kMaximumPlainProbabilities); });
        count && *count > 0)
        request.probabilities = static_cast<uint32_t>(*count);
    form.probabilities = request.probabilities.has_value();
    form.sampled = request.sampled_probabilities = fields.boolean("post_sampling_probs").value_or(false);
    form.tokens = fields.boolean("return_tokens").value_or(false);
    form.settings = GenerationSettings(request, read.form, form.stops, *model.tokenizer);
    form.fields = read_asked_fields(fields, form.settings);
    const bool told = !read.form.stream && tells(form, "prompt");
    std::vector<Prompt> prompts = read_prompts(fields, model, told);
    fields.check_read();
    if (structure) hold_to(request, structure::answer_grammar(structure->body), model, structure->field);
    for (const Prompt& prompt : prompts) form.prompts.push_back(told ? text::json_string(prompt.text) : std::string());
    read.prompts = requests_of(request, std::move(prompts), read.form);
    return read;
}

}  // namespace tessera::server
