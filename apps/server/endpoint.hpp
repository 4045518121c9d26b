// The endpoints: a row each, with what it needs and how it is answered. The files of endpoints/ and of dialects
// have them; the build finds these and writes the list.
#pragma once

#include "apps/server/access_control.hpp"
#include "apps/server/byte_budget.hpp"
#include "apps/server/client_limits.hpp"
#include "apps/server/dialect.hpp"
#include "apps/server/exchange.hpp"
#include "apps/server/model_host.hpp"
#include "apps/server/request_workers.hpp"
#include "apps/server/responder.hpp"
#include "apps/server/settings.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tessera::server {

struct ServerStatus {
    uint32_t connections;
    uint64_t closed_connections;        // to make room for others
    uint64_t requests;                  // received so far
    uint64_t body_bytes, unread_bytes;  // held of requests, and of responses that clients have not read
    uint64_t limited;                   // requests refused as their client had used up its share
    uint64_t dropped_lines;             // of the access log
};

// What handlers are made of. All of it outlives every response.
struct EndpointContext {
    ModelHost& host;
    const ServerSettings& settings;
    const std::string& model_name;  // to clients
    const AccessControl& access;
    ClientAccounts& accounts;
    ByteBudget& json_memory;  // of large responses, while they are made
    RequestWorkers& workers;
    std::function<ServerStatus()> status;  // on the thread of I/O
    // Calls Responder::end_reasoning() of responses in the making until one returns true. Any thread.
    std::function<bool(std::string_view id, std::string_view client)> end_reasoning;
};

// Exactly one of the handlers is set, or `refusal`.
struct Endpoint {
    std::string_view method;
    std::string_view paths;  // separated by blanks; one that ends with "/{id}" is all below it
    // Responds at once, on the thread of I/O, without waiting for anything.
    HttpResponse (*look)(const EndpointContext&, const HttpRequest&) = nullptr;
    // Parses and tokenises, by a worker. Throws ApiError and Error.
    HttpResponse (*work)(const EndpointContext&, const HttpRequest&) = nullptr;
    // Reads the request by a worker, submits what it asks for and returns the response in the making; nullptr: it has
    // responded. Throws likewise.
    std::shared_ptr<Responder> (*generate)(const EndpointContext&, const std::shared_ptr<Exchange>&) = nullptr;
    // Of what other servers have, with any method: the reason, answered with 501.
    std::string_view refusal = {};
    bool needs_key = true;
    bool always = false;                      // answered where there is no place for others
    bool ServerSettings::*offered = nullptr;  // 501 where this setting is off
    const Dialect* dialect = &kOpenAi;        // of its errors
};

// The lists of all these files.
std::span<const std::span<const Endpoint>> endpoints();

// Of a path "/v1/models/{id}" the part that is named, without its escapes. The prefix of the settings is left out.
std::string named_part(const EndpointContext& context, const HttpRequest& request, std::string_view before);

}  // namespace tessera::server
