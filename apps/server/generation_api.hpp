// The endpoints that generate text.
#pragma once

#include "apps/server/access_control.hpp"
#include "apps/server/answering.hpp"
#include "apps/server/exchange.hpp"
#include "apps/server/model_host.hpp"
#include "apps/server/request_workers.hpp"

#include <memory>
#include <string>

namespace tessera::server {

// Each reads the request, submits what it asks for and returns the answer in the making. Called by workers. `accounts`
// and `workers` outlive the answer. Throws ApiError and Error.
std::shared_ptr<Answering> answer_chat(const std::shared_ptr<Exchange>& exchange,
                                       std::shared_ptr<const ServedModel> model, const Sender& sender,
                                       ClientAccounts& accounts, RequestWorkers& workers);
std::shared_ptr<Answering> answer_completion(const std::shared_ptr<Exchange>& exchange,
                                             std::shared_ptr<const ServedModel> model, const Sender& sender,
                                             ClientAccounts& accounts, RequestWorkers& workers);
std::shared_ptr<Answering> answer_plain_completion(const std::shared_ptr<Exchange>& exchange,
                                                   std::shared_ptr<const ServedModel> model, const Sender& sender,
                                                   ClientAccounts& accounts, RequestWorkers& workers);

}  // namespace tessera::server
