#include "apps/server/dialects/openai/requests.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/chat_messages.hpp"
#include "apps/server/dialects/openai/dialect.hpp"
#include "apps/server/prompts_of_request.hpp"
#include "apps/server/structure_fields.hpp"

#include <limits>
#include <utility>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr int64_t kMaximumProbabilities = 20, kMaximumBudget = std::numeric_limits<uint32_t>::max();

}  // namespace

ChatRequest read_chat(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, chat_table());
    auto structure = read_structure(fields, model);
    ChatRequest read{read_delivery(fields), read_request(fields, model), {}};
    read.chat.probabilities = read.request.probabilities = read_probabilities(fields);
    Conversation conversation = read_conversation(fields, model);
    conversation.structure = std::move(structure);
    conversation.allow_unenforced = allows_unenforced(fields);
    std::string_view asks;
    if (const auto budget =
            read_any(fields, {"reasoning_budget", "thinking_budget_tokens", "thinking_budget", "thinking_token_budget"},
                     [&](std::string_view name) {
                         const auto given = fields.integer(name, -1, kMaximumBudget);
                         if (given) asks = name;
                         return given;
                     }))
        set_reasoning_budget(*budget, asks, model, conversation);
    fields.check_read();
    write_prompt(read, conversation, model);
    return read;
}

CompletionRequest read_completion(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, completion_table());
    const auto structure = read_structure(fields, model);
    CompletionRequest read{read_delivery(fields), {}, {}};
    if (const auto best = fields.integer("best_of", 1, kMaximumChoices);
        best && *best > static_cast<int64_t>(read.delivery.choices))
        fields.refuse("best_of", "answers are not ranked; use n");
    // The API's own default.
    session::Request request = read_request(fields, model, 16);
    request.show_control = shows_control(fields);
    request.show_end = false;
    if (const auto count = fields.integer("logprobs", 0, kMaximumProbabilities))
        request.probabilities = static_cast<uint32_t>(*count);
    CompletionDelivery& delivery = read.completion;
    delivery.probabilities = request.probabilities.has_value();
    const bool echo = fields.boolean("echo").value_or(false);
    std::vector<Prompt> prompts = read_prompts(fields, model, {.with_text = echo});
    fields.check_read();
    for (Prompt& prompt : prompts) delivery.echoes.push_back(std::move(prompt.text));
    if (structure) hold_to(request, *structure, model, read.delivery);
    if (echo && delivery.probabilities) {
        request.prompt_probabilities = request.probabilities;
        for (const Prompt& prompt : prompts) {
            delivery.echoed.push_back(
                {{prompt.tokens.begin() + (prompt.bos_added ? 1 : 0), prompt.tokens.end()}, prompt.bos_added});
        }
    }
    read.prompts = requests_of(request, std::move(prompts), read.delivery);
    return read;
}

}  // namespace tessera::server
