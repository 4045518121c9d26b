#include "apps/tessera-server/generation_api.hpp"

#include "apps/tessera-server/chat_answer.hpp"
#include "apps/tessera-server/completion_answer.hpp"
#include "apps/tessera-server/generation_request.hpp"

namespace tessera::server {
namespace {

template <typename Answer>
std::shared_ptr<Answering> start(std::shared_ptr<Answer> answer, session::Request request, const Sender& sender,
                                 ClientAccounts& accounts) {
    request.client = sender.client;
    request.space = sender.space;
    request.client_running = sender.limits.running.value_or(0);
    answer->start(std::move(request), sender.limits, accounts);
    return answer;
}

}  // namespace

std::shared_ptr<Answering> answer_chat(const std::shared_ptr<Exchange>& exchange,
                                       std::shared_ptr<const ServedModel> model, const Sender& sender,
                                       ClientAccounts& accounts) {
    ChatRequest read = read_chat(exchange->request().body, *model);
    exchange->drop_body();
    return start(std::make_shared<ChatAnswer>(exchange, std::move(model), read.form, std::move(read.chat)),
                 std::move(read.request), sender, accounts);
}

std::shared_ptr<Answering> answer_completion(const std::shared_ptr<Exchange>& exchange,
                                             std::shared_ptr<const ServedModel> model, const Sender& sender,
                                             ClientAccounts& accounts) {
    CompletionRequest read = read_completion(exchange->request().body, *model);
    exchange->drop_body();
    return start(std::make_shared<CompletionAnswer>(exchange, std::move(model), read.form,
                                                    read.request.probabilities.has_value(), std::move(read.echo)),
                 std::move(read.request), sender, accounts);
}

std::shared_ptr<Answering> answer_plain_completion(const std::shared_ptr<Exchange>& exchange,
                                                   std::shared_ptr<const ServedModel> model, const Sender& sender,
                                                   ClientAccounts& accounts) {
    PlainRequest read = read_plain_completion(exchange->request().body, *model);
    exchange->drop_body();
    return start(std::make_shared<PlainAnswer>(exchange, std::move(model), read.form, std::move(read.prompt),
                                               std::move(read.stops), read.tokens),
                 std::move(read.request), sender, accounts);
}

}  // namespace tessera::server
