#include "apps/server/page.hpp"

namespace tessera::server {
namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// If-None-Match (RFC 9110, 13.1.2): "*" or a list of tags, compared weakly.
bool client_has(std::string_view tags, std::string_view etag) {
    while (!tags.empty()) {
        const size_t comma = tags.find(',');
        std::string_view tag = tags.substr(0, comma);
        while (!tag.empty() && (tag.front() == ' ' || tag.front() == '\t')) tag.remove_prefix(1);
        while (!tag.empty() && (tag.back() == ' ' || tag.back() == '\t')) tag.remove_suffix(1);
        if (tag.starts_with("W/")) tag.remove_prefix(2);
        if (tag == "*" || tag == etag) return true;
        if (comma == tags.npos) break;
        tags.remove_prefix(comma + 1);
    }
    return false;
}

}  // namespace

HttpResponse page_response(const PageFile& file, const HttpRequest& request) {
    HttpResponse response{200, std::string(file.type), {}, {}};
    const std::string* const tags = request.header("if-none-match");
    if (tags && client_has(*tags, file.etag)) {
        response.status = 304;
    } else {
        response.body = file.body;
    }
    response.headers = {
        {"ETag", std::string(file.etag)},
        // Kept by browsers, but asked for again each time: a newer program's page is never mixed with an older one's.
        {"Cache-Control", "no-cache"},
        {"Content-Security-Policy", std::string(kPolicy)},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
    };
    return response;
}

}  // namespace tessera::server
