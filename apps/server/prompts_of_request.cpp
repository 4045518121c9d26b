#include "apps/server/prompts_of_request.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/generation_fields.hpp"
#include "apps/server/request_fields.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumPromptTokens = 1 << 24;

std::string_view view(const json::value& text) {
    return {text.get_string().data(), text.get_string().size()};
}

Prompt prompt_of_text(std::string_view text, const ModelText& model, const PromptField& field) {
    check_length(text.size(), model);
    const text::Tokenizer& tokenizer = *model.tokenizer;
    const size_t most = most_prompt_tokens(model);
    Prompt prompt{field.continued
                      ? tokens_to_continue(tokenizer, text, true, true, most)
                      : tokenizer.encode(text, {.add_special = true, .parse_special = true, .most_tokens = most}),
                  false,
                  {}};
    check_prompt_tokens(prompt.tokens.size(), model);
    const text::Token bos = tokenizer.bos();
    prompt.bos_added = bos != text::kNoToken && !prompt.tokens.empty() && prompt.tokens.front() == bos &&
                       !text.starts_with(tokenizer.spelling(bos));
    if (field.with_text) prompt.text = text;
    return prompt;
}

Prompt prompt_of_list(const Fields& fields, const json::array& list, const ModelText& model, const PromptField& field) {
    const text::Tokenizer& tokenizer = *model.tokenizer;
    Prompt prompt;
    for (const json::value& value : list) {
        if (value.is_string() && &value == &list.front()) {
            prompt = prompt_of_text(view(value), model, field);
        } else if (value.is_string()) {
            check_length(value.get_string().size(), model);
            const auto tokens = tokenizer.encode(
                view(value), {.add_special = false, .parse_special = true, .most_tokens = most_prompt_tokens(model)});
            prompt.tokens.insert(prompt.tokens.end(), tokens.begin(), tokens.end());
            if (field.with_text) prompt.text += view(value);
        } else {
            prompt.tokens.push_back(read_token(fields, field.name, value, tokenizer));
            if (field.with_text) prompt.text += tokenizer.bytes(prompt.tokens.back());
        }
        check_prompt_tokens(prompt.tokens.size(), model);
    }
    return prompt;
}

// As llama-server takes a prompt that may have pictures beside it.
Prompt prompt_of_object(const Fields& fields, const json::object& object, const ModelText& model,
                        const PromptField& field) {
    const Fields prompt(object, prompt_object_table(), fields.path(field.name));
    const auto text = prompt.text("prompt_string");
    if (!text) prompt.reject("prompt_string", "a text");
    prompt.check_read();
    return prompt_of_text(*text, model, field);
}

}  // namespace

std::vector<Prompt> read_prompts(const Fields& fields, const ModelText& model, const PromptField& field) {
    const json::value* const given = fields.find(field.name);
    if (!given) fields.reject(field.name, "a text or a list of tokens");
    if (given->is_string()) return {prompt_of_text(view(*given), model, field)};
    if (given->is_object()) return {prompt_of_object(fields, given->get_object(), model, field)};
    const json::array& list = *fields.array(field.name, kMaximumPromptTokens);
    const auto is_prompt = [](const json::value& value) {
        return value.is_string() || value.is_array() || value.is_object();
    };
    if (!std::ranges::all_of(list, is_prompt)) return {prompt_of_list(fields, list, model, field)};
    if (list.empty()) fields.reject(field.name, "at least one prompt");
    if (list.size() > field.most)
        throw ApiError(400, fmt::format("{}: {} prompts; at most {} are accepted", field.name, list.size(), field.most),
                       std::string(field.name));
    std::vector<Prompt> prompts;
    for (const json::value& value : list) {
        prompts.push_back(value.is_string()  ? prompt_of_text(view(value), model, field)
                          : value.is_array() ? prompt_of_list(fields, value.get_array(), model, field)
                                             : prompt_of_object(fields, value.get_object(), model, field));
    }
    return prompts;
}

std::vector<text::Token> infill_prompt(const text::Gap& gap, const ModelText& model) {
    if (const std::string_view missing = model.infill.missing(); !missing.empty())
        throw ApiError(501, fmt::format("this model fills no gaps: its vocabulary has no token for {} of one", missing),
                       {}, "not_supported");
    uint64_t bytes = gap.before.size() + gap.behind.size();
    for (const text::OtherFile& file : gap.others) bytes += file.name.size() + file.text.size();
    check_length(bytes, model);
    std::vector<text::Token> tokens =
        text::infill_tokens(gap, model.infill, *model.tokenizer, most_prompt_tokens(model));
    check_prompt_tokens(tokens.size(), model);
    return tokens;
}

bool shows_control(const Fields& fields) {
    return !fields.boolean("skip_special_tokens").value_or(true);
}

std::vector<session::Request> requests_of(const session::Request& request, std::vector<Prompt> prompts,
                                          const Delivery& delivery) {
    if (prompts.size() * delivery.choices > kMaximumChoices)
        throw ApiError(400,
                       fmt::format("n: {} answers to {} prompts; at most {} in all are accepted", delivery.choices,
                                   prompts.size(), kMaximumChoices),
                       "n");
    std::vector<session::Request> requests;
    for (Prompt& prompt : prompts) {
        requests.push_back(request);
        requests.back().prompt = std::move(prompt.tokens);
    }
    return requests;
}

}  // namespace tessera::server
