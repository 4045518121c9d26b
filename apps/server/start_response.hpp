// From a request that has been read to its response in the making.
#pragma once

#include "apps/server/conversation.hpp"
#include "apps/server/endpoint.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace tessera::server {

// Submits the prompts on behalf of who sent `request`. Throws what Responder::start throws.
std::shared_ptr<Responder> start_response(const EndpointContext& context, const HttpRequest& request,
                                          std::shared_ptr<Responder> response, std::vector<session::Request> prompts);

// A chat that has been read.
template <typename Response>
std::shared_ptr<Responder> respond_to(ChatRequest read, const EndpointContext& context,
                                      const std::shared_ptr<Exchange>& exchange,
                                      std::shared_ptr<const ServedModel> model) {
    exchange->drop_body();
    std::vector<session::Request> prompts;
    prompts.push_back(std::move(read.request));
    return start_response(context, exchange->request(),
                          std::make_shared<Response>(exchange, std::move(model), read.delivery, std::move(read.chat)),
                          std::move(prompts));
}

// The handler of an endpoint that answers chats: `Read` makes a ChatRequest of body and model.
template <auto Read, typename Response>
std::shared_ptr<Responder> respond_to_chat(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    ChatRequest read = Read(exchange->request().body, *model);
    return respond_to<Response>(std::move(read), context, exchange, std::move(model));
}

}  // namespace tessera::server
