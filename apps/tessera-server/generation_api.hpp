// The endpoints that generate text.
#pragma once

#include "apps/tessera-server/answering.hpp"
#include "apps/tessera-server/exchange.hpp"
#include "apps/tessera-server/model_host.hpp"

#include <memory>
#include <string>

namespace tessera::server {

// Who sent a request: session::Request::client, and ::space.
struct Sender {
    std::string client;
    std::string space;
};

// Each reads the request, submits what it asks for and returns the answer in the making. Called by workers. Throws
// ApiError and Error.
std::shared_ptr<Answering> answer_chat(const std::shared_ptr<Exchange>& exchange,
                                       std::shared_ptr<const ServedModel> model, const Sender& sender);
std::shared_ptr<Answering> answer_completion(const std::shared_ptr<Exchange>& exchange,
                                             std::shared_ptr<const ServedModel> model, const Sender& sender);
std::shared_ptr<Answering> answer_plain_completion(const std::shared_ptr<Exchange>& exchange,
                                                   std::shared_ptr<const ServedModel> model, const Sender& sender);

}  // namespace tessera::server
