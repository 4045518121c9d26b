// What a user asks of the server, and the flags that say it.
#pragma once

#include "apps/flags/flag.hpp"
#include "apps/server/client_limits.hpp"
#include "core/session/generation.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

struct ServerSettings {
    std::string host = "127.0.0.1";                 // an address, or a name of this machine
    uint16_t port = 8080;                           // 0: one that is free
    std::string alias;                              // the model's name to clients; empty: the file's name without .gguf
    std::string prefix;                             // "/api": before every path; empty: none
    std::vector<std::string> keys;                  // any of them is needed; none: no key is needed
    std::optional<std::filesystem::path> key_file;  // more of them, one a line, each with limits; read again on SIGHUP
    // In PEM, read again on SIGHUP: the certificate with its chain, and its key. None: HTTP in the clear.
    std::optional<std::filesystem::path> tls_certificate, tls_key;
    std::vector<std::string> origins;                  // of other sites' pages that browsers may show answers to
    std::vector<std::string> hosts;                    // names besides its own by which clients may call this machine
    bool slots = true;                                 // /slots is answered
    bool metrics = true;                               // /metrics is answered
    bool page = true;                                  // the chat page
    bool embeddings = false;                           // hidden states can be had
    std::optional<session::Pooling> pooling;           // of them; nothing: as the file says
    std::optional<std::filesystem::path> cache_dir;    // of cached pages that later processes find; none: none are kept
    uint64_t cache_dir_bytes = 16ull << 30;            // of all files there
    std::chrono::seconds cache_dir_time{30};           // at the end, for pages that are not there yet
    std::optional<std::filesystem::path> slot_folder;  // of slots that are saved; none: they are not
    std::optional<std::filesystem::path> access_log;   // "-": standard output; none: not written

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
    double target_step_seconds = 0;        // as of GeneratorOptions
};

// "/api"; empty for "/". Throws app::WrongValue.
std::string parse_prefix(std::string_view text);
// off, none, 0 and false: there is no page.
bool parse_page_switch(std::string_view text);
ClientLimits parse_limits(std::string_view text);
// mean, last. Throws app::WrongValue.
session::Pooling parse_pooling(std::string_view text);

namespace rows {
using namespace app;
using S = ServerSettings;

consteval Flag row(std::string_view name, std::string_view spellings, std::string_view value, std::string_view help,
                   Setter setter) {
    return supported(name, spellings, value.empty() ? Takes::kNothing : Takes::kValue, value, kServe, Group::kServer,
                     help, setter);
}

// clang-format off
inline constexpr std::array kServer = {
    row("host", "--host", "ADDRESS", "the address at which clients find the server; 0.0.0.0: all of this machine", verbatim<&S::host>()),
    row("port", "--port", "N", "the port; 0: any that is free", whole<&S::port, 0, 65535>()),
    row("alias", "-a --alias", "NAME", "the model's name to clients (the file's name)", verbatim<&S::alias>()).from("LLAMA_ARG_MODEL_ALIAS"),
    row("api-key", "--api-key", "KEY,...", "clients need one of these keys", list<&S::keys>()).repeated().from("LLAMA_API_KEY"),
    row("api-key-file", "--api-key-file", "FILE", "more keys, one a line; SIGHUP reads them again", verbatim<&S::key_file>()),
    row("tls-cert", "--tls-cert --ssl-cert-file", "FILE", "speak TLS with this certificate, in PEM with its chain; SIGHUP reads it again", verbatim<&S::tls_certificate>()).from("LLAMA_ARG_SSL_CERT_FILE"),
    row("tls-key", "--tls-key --ssl-key-file", "FILE", "the certificate's key, in PEM and not encrypted; SIGHUP reads it again", verbatim<&S::tls_key>()).from("LLAMA_ARG_SSL_KEY_FILE"),
    row("api-prefix", "--api-prefix", "PATH", "stands before every path", parsed<&S::prefix, parse_prefix>()),
    row("timeout", "-to --timeout", "SECONDS", "a client that does not read its answer for so long is disconnected", whole<&S::write_time, 1, 1 << 20>()),
    row("queue", "--queue", "N", "requests that may wait; others get 429", whole<&S::waiting_requests, 1, 1 << 20>()),
    row("client-limits", "--client-limits", "NAME=N,...",
        "what each key, or address without keys, may use: running, waiting, requests-per-minute, tokens-per-minute", parsed<&S::client_limits, parse_limits>()),
    row("request-context", "--request-context", "N",
        "tokens of one request at most, prompt and answer; more than the model was made for only if said here (the model's maximum)",
        whole<&S::request_context, 1, 1 << 30>()),
    row("body-limit", "--body-limit", "MIB", "largest body of a request", whole<&S::body_bytes, 1, 1 << 20, 1 << 20>()),
    row("held-limit", "--held-limit", "MIB",
        "bodies of all requests that are being read, and as much of answers that clients have not read", whole<&S::held_bytes, 1, 1 << 20, 1 << 20>()),
    row("drain-time", "--drain-time", "SECONDS", "running answers may take so long after SIGTERM or SIGINT", whole<&S::drain_time, 0, 1 << 20>()),
    row("itl-target", "--itl-target", "MS", "size chunks of prompts so that running answers get a token in this time; 0: chunks are of -ub rows (0)",
        number<&S::target_step_seconds, 0, 1000000, 1000>()),
    row("cache-dir", "--cache-dir", "FOLDER", "keep what is cached there, so that it is found after a restart", verbatim<&S::cache_dir>()),
    row("cache-dir-size", "--cache-dir-size", "GIB", "of all files there; what was used longest ago goes first", whole<&S::cache_dir_bytes, 1, 1 << 20, 1 << 30>()),
    row("cache-dir-time", "--cache-dir-time", "SECONDS", "at the end, what is cached and not there yet may take so long to be written", whole<&S::cache_dir_time, 0, 1 << 20>()),
    row("slot-save-path", "--slot-save-path", "FOLDER", "slots can be saved there and restored, by POST /slots/ID (not)", verbatim<&S::slot_folder>()),
    row("slots", "--slots", "", "answer /slots (the default)", sets<&S::slots>()).from("LLAMA_ARG_ENDPOINT_SLOTS"),
    row("no-slots", "--no-slots", "", "do not answer /slots", clears<&S::slots>()).from("LLAMA_ARG_NO_ENDPOINT_SLOTS"),
    row("metrics", "--metrics", "", "answer /metrics (the default)", sets<&S::metrics>()).from("LLAMA_ARG_ENDPOINT_METRICS"),
    row("no-metrics", "--no-metrics", "", "do not answer /metrics", clears<&S::metrics>()),
    supported("webui", "--webui --ui", Takes::kSwitch, "on|off|none|auto|llamacpp", kServe, Group::kServer,
              "the chat page (the default); off, none: as --no-webui", parsed<&S::page, parse_page_switch>()),
    row("no-webui", "--no-webui --no-ui", "", "no chat page", clears<&S::page>()),
    row("embeddings", "--embedding --embeddings", "", "answer /v1/embeddings and its like, too; takes some memory for the hidden states of a step", sets<&S::embeddings>()).from("LLAMA_ARG_EMBEDDINGS"),
    row("pooling", "--pooling", "mean|last", "of the hidden states of a text's tokens, where a request says nothing (as the file says; last)", parsed<&S::pooling, parse_pooling>()).from("LLAMA_ARG_POOLING"),
    row("access-log", "--access-log", "FILE", "a line of JSON for each request; '-': on standard output (none)", verbatim<&S::access_log>()),
    row("cors-origin", "--cors-origin --cors-origins", "ORIGIN,...", "pages of other sites that may use the server, as https://example.org", list<&S::origins>()),
    row("allowed-host", "--allowed-host", "NAME,...", "names besides --host by which clients may call the server", list<&S::hosts>()),
};
// clang-format on

}  // namespace rows

inline constexpr std::span<const app::Flag> kServerFlags = rows::kServer;

}  // namespace tessera::server
