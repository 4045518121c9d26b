// Who may use the server: keys, and what browsers send on behalf of other sites' pages.
#pragma once

#include "apps/tessera-server/exchange.hpp"
#include "apps/tessera-server/settings.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// Any thread.
class AccessControl {
  public:
    // Throws Error if the key file cannot be read or has no keys.
    explicit AccessControl(const ServerSettings& settings);

    // Reads the key file again. Throws as the constructor does; the keys are as before then.
    void reload();

    // An answer that refuses the request, by its header alone: a name of this machine that is not expected (DNS
    // rebinding), a page of another site, no valid key where `needs_key`.
    std::optional<HttpResponse> refusal(const HttpRequest& request, bool needs_key) const;

    // Headers for the answer to a page of a site that settings allow; empty for all others.
    Headers cors_headers(const HttpRequest& request) const;

    // The same for all requests of one key and different from others'; of those without keys, the address. It is not
    // the key.
    std::string client_of(const HttpRequest& request) const;
    // Requests of different spaces share nothing that is cached: one for each key.
    std::string space_of(const HttpRequest& request) const;

  private:
    bool known_host(std::string_view host) const;
    bool listed(std::string_view origin) const;
    bool allowed_origin(const HttpRequest& request, std::string_view origin) const;
    // Its number among all keys; nothing: not a valid one.
    std::optional<size_t> key_of(const HttpRequest& request) const;

    const ServerSettings& settings_;
    const bool loopback_;
    mutable std::mutex mutex_;
    std::vector<std::string> keys_;
};

}  // namespace tessera::server
