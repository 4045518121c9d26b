// From a request that has been read to its answer in the making.
#pragma once

#include "apps/server/conversation.hpp"
#include "apps/server/endpoint.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace tessera::server {

// Submits the prompts on behalf of who sent `request`. Throws what Answering::start throws.
std::shared_ptr<Answering> start_answer(const EndpointContext& context, const HttpRequest& request,
                                        std::shared_ptr<Answering> answer, std::vector<session::Request> prompts);

// The handler of an endpoint that answers chats: `Read` makes a ChatRequest of body and model.
template <auto Read, typename Answer>
std::shared_ptr<Answering> answer_chat(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    ChatRequest read = Read(exchange->request().body, *model);
    exchange->drop_body();
    std::vector<session::Request> prompts;
    prompts.push_back(std::move(read.request));
    return start_answer(context, exchange->request(),
                        std::make_shared<Answer>(exchange, std::move(model), read.delivery, std::move(read.chat)),
                        std::move(prompts));
}

}  // namespace tessera::server
