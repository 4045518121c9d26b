// What a user asks of the server.
#pragma once

#include "apps/server/client_limits.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera::server {

struct ServerSettings {
    std::string host = "127.0.0.1";                 // an address, or a name of this machine
    uint16_t port = 8080;                           // 0: one that is free
    std::string alias;                              // the model's name to clients; empty: the file's name without .gguf
    std::string prefix;                             // "/api": before every path; empty: none
    std::vector<std::string> keys;                  // any of them is needed; none: no key is needed
    std::optional<std::filesystem::path> key_file;  // more of them, one a line, each with limits; read again on SIGHUP
    std::vector<std::string> origins;               // of other sites' pages that browsers may show answers to
    std::vector<std::string> hosts;                 // names besides its own by which clients may call this machine
    bool slots = true;                              // /slots is answered
    bool metrics = true;                            // /metrics is answered
    bool page = true;                               // the chat page
    std::optional<std::filesystem::path> access_log;  // "-": standard output; none: not written

    // Limits.
    ClientLimits client_limits;  // of each key that has none of its own in the key file; without keys, of each address
    uint32_t waiting_requests = 256;  // of all clients, until the next is refused with 429
    uint64_t waiting_tokens = 1 << 22;
    // Tokens of one request at most, prompt and answer; nothing: as many as the model was made for.
    std::optional<uint32_t> request_context;
    uint32_t connections = 4096;
    uint32_t network_connections = 1024;  // of these, from one address; see network_of()
    uint64_t body_bytes = 64ull << 20;
    uint64_t held_bytes =
        256ull << 20;  // of all requests' bodies; of answers that clients have not read; of parsed JSON
    std::chrono::seconds header_time{30};  // until a request's header has been read
    std::chrono::seconds idle_time{300};   // until a connection without a request is closed
    std::chrono::seconds write_time{600};  // that a client may take to accept what is written (--timeout)
    std::chrono::seconds ping_time{10};    // between lines that keep a waiting stream alive
    std::chrono::seconds drain_time{600};  // for running requests after SIGTERM (--drain-time)
};

}  // namespace tessera::server
