#include "apps/server/prompts_of_request.hpp"

#include "apps/server/api_error.hpp"
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

Prompt prompt_of_text(std::string_view text, const ModelText& model, bool with_text) {
    check_length(text.size(), model);
    const text::Tokenizer& tokenizer = *model.tokenizer;
    Prompt prompt{tokens_to_continue(tokenizer, text, true, true, most_prompt_tokens(model)), false, {}};
    check_prompt_tokens(prompt.tokens.size(), model);
    const text::Token bos = tokenizer.bos();
    prompt.bos_added = bos != text::kNoToken && !prompt.tokens.empty() && prompt.tokens.front() == bos &&
                       !text.starts_with(tokenizer.spelling(bos));
    if (with_text) prompt.text = text;
    return prompt;
}

Prompt prompt_of_list(const Fields& fields, const json::array& list, const ModelText& model, bool with_text) {
    const text::Tokenizer& tokenizer = *model.tokenizer;
    Prompt prompt;
    for (const json::value& value : list) {
        if (value.is_string() && &value == &list.front()) {
            prompt = prompt_of_text(view(value), model, with_text);
        } else if (value.is_string()) {
            check_length(value.get_string().size(), model);
            const auto tokens = tokenizer.encode(
                view(value), {.add_special = false, .parse_special = true, .most_tokens = most_prompt_tokens(model)});
            prompt.tokens.insert(prompt.tokens.end(), tokens.begin(), tokens.end());
            if (with_text) prompt.text += view(value);
        } else {
            prompt.tokens.push_back(read_token(fields, "prompt", value, tokenizer));
            if (with_text) prompt.text += tokenizer.bytes(prompt.tokens.back());
        }
        check_prompt_tokens(prompt.tokens.size(), model);
    }
    return prompt;
}

}  // namespace

std::vector<Prompt> read_prompts(const Fields& fields, const ModelText& model, bool with_text) {
    const json::value* const given = fields.find("prompt");
    if (!given) fields.reject("prompt", "a text or a list of tokens");
    if (given->is_string()) return {prompt_of_text(view(*given), model, with_text)};
    const json::array& list = *fields.array("prompt", kMaximumPromptTokens);
    const auto is_prompt = [](const json::value& value) { return value.is_string() || value.is_array(); };
    if (!std::ranges::all_of(list, is_prompt)) return {prompt_of_list(fields, list, model, with_text)};
    if (list.empty()) fields.reject("prompt", "at least one prompt");
    if (list.size() > kMaximumChoices)
        throw ApiError(400, fmt::format("prompt: {} prompts; at most {} are accepted", list.size(), kMaximumChoices),
                       "prompt");
    std::vector<Prompt> prompts;
    for (const json::value& value : list) {
        prompts.push_back(value.is_string() ? prompt_of_text(view(value), model, with_text)
                                            : prompt_of_list(fields, value.get_array(), model, with_text));
    }
    return prompts;
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
