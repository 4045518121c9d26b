// The endpoints that tell about the server and the model. None of them waits for a step.
#pragma once

#include "apps/server/exchange.hpp"
#include "apps/server/model_host.hpp"
#include "apps/server/settings.hpp"

#include <string>
#include <string_view>

namespace tessera::server {

HttpResponse health_response(const ModelHost& host);
HttpResponse models_response(const ModelHost& host, const std::string& name);
// `id`: as asked for.
HttpResponse model_response(const ModelHost& host, const std::string& name, std::string_view id);
HttpResponse props_response(const ServedModel& model, const ServerSettings& settings);
// As many as the server works on at once; of requests of `client` how far they are, of all others only that they are
// there. `idle_needed`: 503 where all are in use.
HttpResponse slots_response(const ServedModel& model, const std::string& client, bool idle_needed);

// Adapters that are loaded: none.
HttpResponse adapters_response();

// What metrics show beside the model.
struct ServerStatus {
    uint32_t connections;
    uint64_t closed_connections;        // to make room for others
    uint64_t requests;                  // received so far
    uint64_t body_bytes, unread_bytes;  // held of requests, and of answers that clients have not read
    uint64_t limited;                   // requests refused as their client had used up its share
    uint64_t dropped_lines;             // of the access log
};
HttpResponse metrics_response(const ModelHost& host, const ServerStatus& server);

// What lies where: {"devices": [...], "layers": [...]}.
HttpResponse machine_response(const ServedModel& model);

}  // namespace tessera::server
