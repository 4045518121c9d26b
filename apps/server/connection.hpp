// One client's connection: reads requests and writes responses, HTTP/1.1 (RFC 9112), perhaps by TLS.
#pragma once

#include "apps/server/access_log.hpp"
#include "apps/server/crowd.hpp"
#include "apps/server/dialect.hpp"
#include "apps/server/exchange.hpp"
#include "apps/server/settings.hpp"
#include "apps/server/tls_identity.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tessera::server {

// What a request may do, by its header.
struct Admission {
    std::optional<HttpResponse> refusal;  // nothing: it is to be read and answered
    std::string client;                   // see Sender::client
    uint64_t body_bytes = 0;              // that it may have
    const Dialect* dialect = &kOpenAi;    // of its errors
};

// What all connections share; outlives them. Of the thread of I/O.
struct ConnectionContext {
    const ServerSettings& settings;
    const TlsIdentity* tls;  // nullptr: connections are in the clear
    Handler handler;
    // `reserved`: the connection has a place for requests that cost nothing.
    std::function<Admission(const HttpRequest&, bool reserved)> check;
    // Of every response to the request, whatever it says; its header may be empty if it could not be read.
    std::function<Headers(const HttpRequest&)> headers;
    AccessLog& log;
    Crowd crowd;
    uint64_t requests = 0;     // received so far
    bool closing = false;      // responses end their connections
    bool freed_large = false;  // memory that the system may get back
};

// Shakes hands where TLS is spoken, and reads the first request. Everything of a connection happens on the executor of
// `socket`, which one thread runs.
void serve_connection(boost::asio::ip::tcp::socket socket, ConnectionContext& context, bool reserved);

}  // namespace tessera::server
