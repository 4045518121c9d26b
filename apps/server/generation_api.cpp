#include "apps/server/generation_api.hpp"

#include "apps/server/chat_answer.hpp"
#include "apps/server/completion_answer.hpp"
#include "apps/server/generation_request.hpp"
#include "apps/server/plain_answer.hpp"

namespace tessera::server {
namespace {

std::shared_ptr<Answering> start(std::shared_ptr<Answering> answer, std::vector<session::Request> prompts,
                                 const Sender& sender, ClientAccounts& accounts, RequestWorkers& workers) {
    answer->make_whole_by([&workers, client = sender.client](uint64_t bytes, std::function<void()> work) {
        workers.post(client, bytes, std::move(work));
    });
    for (session::Request& prompt : prompts) {
        prompt.client = sender.client;
        prompt.space = sender.space;
        prompt.client_running = sender.limits.running.value_or(0);
    }
    answer->start(std::move(prompts), sender.limits, accounts);
    return answer;
}

}  // namespace

std::shared_ptr<Answering> answer_chat(const std::shared_ptr<Exchange>& exchange,
                                       std::shared_ptr<const ServedModel> model, const Sender& sender,
                                       ClientAccounts& accounts, RequestWorkers& workers) {
    ChatRequest read = read_chat(exchange->request().body, *model);
    exchange->drop_body();
    std::vector<session::Request> prompts;
    prompts.push_back(std::move(read.request));
    return start(std::make_shared<ChatAnswer>(exchange, std::move(model), read.form, std::move(read.chat)),
                 std::move(prompts), sender, accounts, workers);
}

std::shared_ptr<Answering> answer_completion(const std::shared_ptr<Exchange>& exchange,
                                             std::shared_ptr<const ServedModel> model, const Sender& sender,
                                             ClientAccounts& accounts, RequestWorkers& workers) {
    CompletionRequest read = read_completion(exchange->request().body, *model);
    exchange->drop_body();
    return start(std::make_shared<CompletionAnswer>(exchange, std::move(model), read.form, std::move(read.completion)),
                 std::move(read.prompts), sender, accounts, workers);
}

std::shared_ptr<Answering> answer_plain_completion(const std::shared_ptr<Exchange>& exchange,
                                                   std::shared_ptr<const ServedModel> model, const Sender& sender,
                                                   ClientAccounts& accounts, RequestWorkers& workers) {
    PlainRequest read = read_plain_completion(exchange->request().body, *model);
    exchange->drop_body();
    return start(std::make_shared<PlainAnswer>(exchange, std::move(model), read.form, std::move(read.plain)),
                 std::move(read.prompts), sender, accounts, workers);
}

}  // namespace tessera::server
