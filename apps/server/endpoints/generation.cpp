// Texts that the model generates.
#include "apps/server/chat_answer.hpp"
#include "apps/server/completion_answer.hpp"
#include "apps/server/endpoint.hpp"
#include "apps/server/generation_request.hpp"
#include "apps/server/plain_answer.hpp"

namespace tessera::server {
namespace {

std::shared_ptr<Answering> start(const EndpointContext& context, const HttpRequest& request,
                                 std::shared_ptr<Answering> answer, std::vector<session::Request> prompts) {
    const Sender sender = context.access.sender_of(request);
    answer->make_whole_by([&workers = context.workers, client = sender.client](uint64_t bytes, auto work) {
        workers.post(client, bytes, std::move(work));
    });
    for (session::Request& prompt : prompts) {
        prompt.client = sender.client;
        prompt.space = sender.space;
        prompt.client_running = sender.limits.running.value_or(0);
    }
    answer->start(std::move(prompts), sender.limits, context.accounts);
    return answer;
}

std::shared_ptr<Answering> chat(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    ChatRequest read = read_chat(exchange->request().body, *model);
    exchange->drop_body();
    std::vector<session::Request> prompts;
    prompts.push_back(std::move(read.request));
    return start(context, exchange->request(),
                 std::make_shared<ChatAnswer>(exchange, std::move(model), read.form, std::move(read.chat)),
                 std::move(prompts));
}

std::shared_ptr<Answering> completion(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    CompletionRequest read = read_completion(exchange->request().body, *model);
    exchange->drop_body();
    return start(context, exchange->request(),
                 std::make_shared<CompletionAnswer>(exchange, std::move(model), read.form, std::move(read.completion)),
                 std::move(read.prompts));
}

std::shared_ptr<Answering> plain_completion(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    PlainRequest read = read_plain_completion(exchange->request().body, *model);
    exchange->drop_body();
    return start(context, exchange->request(),
                 std::make_shared<PlainAnswer>(exchange, std::move(model), read.form, std::move(read.plain)),
                 std::move(read.prompts));
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kGeneration[] = {
    {.method = "POST", .paths = "/v1/chat/completions /chat/completions", .generate = chat},
    {.method = "POST", .paths = "/v1/completions", .generate = completion},
    {.method = "POST", .paths = "/completion /completions", .generate = plain_completion},
};
extern const std::span<const Endpoint> generation = kGeneration;

}  // namespace endpoint_files

}  // namespace tessera::server
