// One client's connection: reads requests and writes answers, HTTP/1.1 (RFC 9112).
#pragma once

#include "apps/tessera-server/access_log.hpp"
#include "apps/tessera-server/byte_budget.hpp"
#include "apps/tessera-server/exchange.hpp"
#include "apps/tessera-server/settings.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>

namespace tessera::server {

// What all connections share; outlives them.
struct ConnectionContext {
    const ServerSettings& settings;
    Handler handler;  // called on the thread of I/O
    // Whether a request with this header may send its body: an answer refuses it.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> check;
    AccessLog& log;
    ByteBudget bodies, unread;  // of requests; of answers, until clients have read them
    uint64_t requests = 0;      // received so far
    uint32_t open = 0;          // connections
    // Each closes a connection whose request has not arrived; those that have told nothing for longest first.
    std::list<std::function<void()>> arriving;
    bool closing = false;  // answers end their connections
};

// Reads the first request. Everything of a connection happens on the executor of `socket`, which one thread runs.
void serve_connection(boost::asio::ip::tcp::socket socket, ConnectionContext& context);

// Closes the connection that has waited longest for the rest of its request, so that another has room. False: the
// requests of all have arrived.
bool close_longest_arriving(ConnectionContext& context);

}  // namespace tessera::server
