// Who may use the server: keys, and what browsers send on behalf of other sites' pages.
#pragma once

#include "apps/server/api_error.hpp"
#include "apps/server/exchange.hpp"
#include "apps/server/settings.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// Who sent a request: session::Request::client and ::space, and what this client may use.
struct Sender {
    // The same for all requests of one key and different from others'; of those without keys, the address. It is not
    // the key.
    std::string client;
    // Requests of different spaces share nothing that is cached: one for each key, the same whenever the server runs.
    // It is not the key.
    std::string space;
    ClientLimits limits;
};

// An address of this machine that no other can reach; false for what is no address and not "localhost".
bool is_loopback(const std::string& host);

// The origin of a page as browsers send it: "https://example.org:8443", in small letters, without a default port or
// a slash at its end. Throws Error(TSR_INVALID_ARGUMENT) for what is no origin; "*" and "null" are taken as they are.
std::string parse_origin(std::string_view given);

// Any thread.
class AccessControl {
  public:
    // Throws Error if the key file cannot be read, is no regular file, has no keys, or limits that are not valid.
    explicit AccessControl(const ServerSettings& settings);

    // Reads the key file again. Throws as the constructor does; the keys are as before then.
    void reload();

    // Why the request is refused, by its header alone: a name of this machine that is not expected (DNS
    // rebinding), a page of another site, no valid key where `needs_key`.
    std::optional<ApiError> refusal(const HttpRequest& request, bool needs_key) const;

    // Headers for the response to a page of a site that settings allow, also for one that refuses: a browser shows the
    // page nothing of a response without them. Empty for all others.
    Headers cors_headers(const HttpRequest& request) const;

    Sender sender_of(const HttpRequest& request) const;

    bool needs_keys() const;

  private:
    bool known_host(std::string_view host) const;
    bool listed(std::string_view origin) const;
    bool allowed_origin(const HttpRequest& request, std::string_view origin) const;
    struct Key {
        std::string text;
        ClientLimits limits;
        std::string space = {};
        size_t number = 0;  // the same for as long as the server runs
    };
    std::vector<Key> read_keys() const;
    void set_keys(std::vector<Key> keys);
    // With mutex_ held. nullptr: not a valid one.
    const Key* key_of(const HttpRequest& request) const;

    const ServerSettings& settings_;
    const bool loopback_;
    mutable std::mutex mutex_;
    std::vector<Key> keys_;
    std::map<std::string, size_t> numbers_;  // of all keys that there have been
};

}  // namespace tessera::server
