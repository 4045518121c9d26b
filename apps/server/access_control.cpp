#include "apps/server/access_control.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/crowd.hpp"
#include "apps/server/given_file.hpp"
#include "apps/server/http_text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/registry/sha256.hpp"

#include <boost/asio/ip/address.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

namespace tessera::server {
namespace {

constexpr uint64_t kKeyFileBytes = 16 << 20;

// Without the port; of "[::1]:8080" what stands in brackets.
std::string_view host_name(std::string_view host) {
    if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
    return host.substr(0, host.find(':'));
}

// Time depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
    return difference == 0;
}

std::string_view given_key(const HttpRequest& request) {
    if (const std::string* header = request.header("authorization")) {
        constexpr std::string_view bearer = "bearer ";
        if (lower_case(std::string_view(*header).substr(0, bearer.size())) == bearer)
            return std::string_view(*header).substr(bearer.size());
    }
    if (const std::string* header = request.header("x-api-key")) return *header;
    return {};
}

}  // namespace

bool is_loopback(const std::string& host) {
    if (host == "localhost") return true;
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(host, error);
    return !error && address.is_loopback();
}

std::string parse_origin(std::string_view given) {
    if (given == "*" || given == "null") return std::string(given);
    std::string origin = lower_case(given.ends_with('/') ? given.substr(0, given.size() - 1) : given);
    const size_t scheme = origin.find("://");
    const std::string_view rest = scheme == std::string::npos ? "" : std::string_view(origin).substr(scheme + 3);
    if (scheme == 0 || rest.empty() || rest.find_first_of("/?#@ \t,") != rest.npos) {
        fail(TSR_INVALID_ARGUMENT,
             "--cors-origin: expected a scheme, a name and perhaps a port, as https://example.org:8443, without a "
             "path; found '{}'",
             printable(given, 80));
    }
    // Browsers leave them out.
    for (const auto& [name, port] : {std::pair("http://", ":80"), std::pair("https://", ":443")}) {
        if (origin.starts_with(name) && origin.ends_with(port)) origin.erase(origin.size() - std::strlen(port));
    }
    return origin;
}

bool AccessControl::needs_keys() const {
    const std::scoped_lock lock(mutex_);
    return !keys_.empty();
}

AccessControl::AccessControl(const ServerSettings& settings)
    : settings_(settings), loopback_(is_loopback(settings.host)) {
    set_keys(read_keys());
}

std::vector<AccessControl::Key> AccessControl::read_keys() const {
    std::vector<Key> keys;
    for (const std::string& key : settings_.keys) keys.push_back({key, settings_.client_limits});
    if (!settings_.key_file) return keys;
    std::string text = read_given_file("--api-key-file", *settings_.key_file, kKeyFileBytes).text;
    // Editors of some systems begin every file with it.
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    std::istringstream file(std::move(text));
    const size_t before = keys.size();
    size_t number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        const size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string::npos || line[begin] == '#') continue;
        const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
        try {
            Key key{line.substr(begin, end - begin),
                    parse_client_limits(std::string_view(line).substr(end), settings_.client_limits)};
            if (std::ranges::any_of(key.text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }))
                fail(TSR_INVALID_ARGUMENT,
                     "a key has a character that no header can carry; the file is one of UTF-8 or ASCII text");
            const auto known =
                std::ranges::find(keys.begin() + static_cast<std::ptrdiff_t>(before), keys.end(), key.text, &Key::text);
            if (known != keys.end() && known->limits != key.limits)
                fail(TSR_INVALID_ARGUMENT, "this key is in the file already, with other limits");
            keys.push_back(std::move(key));
        } catch (const Error& error) {
            fail(TSR_INVALID_ARGUMENT, "--api-key-file {}, line {}: {}", settings_.key_file->string(), number,
                 error.what());
        }
    }
    if (keys.size() == before) {
        fail(TSR_INVALID_ARGUMENT,
             "--api-key-file {}: expected one key a line, found none; without the flag no key is needed",
             settings_.key_file->string());
    }
    return keys;
}

// A key that comes back is the same client, and one that takes its place is another.
void AccessControl::set_keys(std::vector<Key> keys) {
    const std::scoped_lock lock(mutex_);
    for (Key& key : keys) key.space = sha256_of("space of " + key.text);
    for (Key& key : keys) key.number = numbers_.try_emplace(key.text, numbers_.size()).first->second;
    keys_ = std::move(keys);
}

void AccessControl::reload() {
    set_keys(read_keys());
}

bool AccessControl::known_host(std::string_view host) const {
    const std::string name = lower_case(host_name(host));
    // A server for other machines is called by names that it cannot know.
    if (!loopback_ && settings_.hosts.empty()) return true;
    return is_loopback(name) || name == lower_case(settings_.host) ||
           std::ranges::find(settings_.hosts, name) != settings_.hosts.end();
}

bool AccessControl::listed(std::string_view origin) const {
    return std::ranges::any_of(settings_.origins,
                               [&](const std::string& allowed) { return allowed == "*" || allowed == origin; });
}

bool AccessControl::allowed_origin(const HttpRequest& request, std::string_view origin) const {
    if (const std::string* host = request.header("host")) {
        const size_t scheme = origin.find("://");
        // With TLS a page that came without it may be anybody's.
        const bool own = !settings_.tls_certificate || origin.substr(0, scheme) == "https";
        if (own && scheme != std::string_view::npos && origin.substr(scheme + 3) == *host) return true;
    }
    return listed(origin);
}

const AccessControl::Key* AccessControl::key_of(const HttpRequest& request) const {
    const std::string_view given = given_key(request);
    const Key* found = nullptr;
    for (const Key& key : keys_) {
        if (equal_in_constant_time(given, key.text)) found = &key;
    }
    return found;
}

std::optional<ApiError> AccessControl::refusal(const HttpRequest& request, bool needs_key) const {
    // A proxy in front may have gone by another of them (RFC 9112, 3.2; RFC 9110, 5.3).
    for (const char* name : {"Host", "Origin", "Authorization", "X-Api-Key", "Content-Type"}) {
        if (std::ranges::count(request.headers, lower_case(name), &Headers::value_type::first) > 1)
            return ApiError(400, fmt::format("the header {} is there more than once", name), name);
    }
    const std::string* const host = request.header("host");
    if (!host && request.version >= 11) return ApiError(400, "HTTP/1.1 needs the header Host", "Host");
    if (host && !known_host(*host)) {
        return ApiError(421, fmt::format("this server is not called {}; --allowed-host adds a name", host_name(*host)),
                        "Host");
    }
    if (const std::string* origin = request.header("origin"); origin && !allowed_origin(request, *origin)) {
        return ApiError(403, fmt::format("pages of {} may not use this server; --cors-origin allows them", *origin),
                        "Origin");
    }
    needs_key = needs_key && needs_keys();
    if (const std::string* const other = request.header("x-api-key");
        needs_key && other && given_key(request) != *other)
        return ApiError(400, "Authorization and X-Api-Key have different keys: send one", "X-Api-Key");
    bool refused = false;
    if (needs_key) {
        const std::scoped_lock lock(mutex_);
        refused = !keys_.empty() && !key_of(request);
    }
    if (refused) {
        return ApiError(401,
                        given_key(request).empty() ? "a key is needed: send the header 'Authorization: Bearer KEY'"
                                                   : "the key is not valid",
                        {}, "invalid_api_key");
    }
    return std::nullopt;
}

Headers AccessControl::cors_headers(const HttpRequest& request) const {
    const std::string* const origin = request.header("origin");
    if (!origin || !listed(*origin)) return {};
    return {{"Access-Control-Allow-Origin", *origin}, {"Vary", "Origin"}};
}

Sender AccessControl::sender_of(const HttpRequest& request) const {
    const std::scoped_lock lock(mutex_);
    const Key* const key = key_of(request);
    if (!key) return {network_of(request.address), {}, settings_.client_limits};
    return {fmt::format("key {}", key->number), key->space, key->limits};
}

}  // namespace tessera::server
