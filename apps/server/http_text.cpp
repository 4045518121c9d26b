#include "apps/server/http_text.hpp"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <ctime>

namespace tessera::server {
namespace {

std::string_view reason(unsigned status) {
    switch (status) {
        case 200:
            return "OK";
        case 204:
            return "No Content";
        case 304:
            return "Not Modified";
        case 308:
            return "Permanent Redirect";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 413:
            return "Content Too Large";
        case 415:
            return "Unsupported Media Type";
        case 417:
            return "Expectation Failed";
        case 421:
            return "Misdirected Request";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 503:
            return "Service Unavailable";
        default:
            return "Status";
    }
}

void append_common(std::string& out, std::string_view type, bool keep_alive) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    fmt::format_to(std::back_inserter(out),
                   "Server: tessera\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\nContent-Type: {}\r\n"
                   "X-Content-Type-Options: nosniff\r\nConnection: {}\r\n",
                   utc, type, keep_alive ? "keep-alive" : "close");
}

std::string_view trimmed(std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

void append_headers(std::string& out, const Headers& headers) {
    for (const auto& [name, value] : headers) out += fmt::format("{}: {}\r\n", name, value);
}

}  // namespace

std::string response_head(const HttpResponse& response, bool keep_alive) {
    std::string out = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
    append_common(out, response.type, keep_alive);
    append_headers(out, response.headers);
    if (response.status != 204 && response.status != 304)
        out += fmt::format("Content-Length: {}\r\n", response.body.size());
    out += "\r\n";
    return out;
}

std::string stream_head(std::string_view type, const Headers& headers, bool keep_alive, bool chunked) {
    std::string out = "HTTP/1.1 200 OK\r\n";
    append_common(out, type, keep_alive && chunked);
    // Proxies are asked to pass each part on at once.
    out += "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n";
    append_headers(out, headers);
    if (chunked) out += "Transfer-Encoding: chunked\r\n";
    out += "\r\n";
    return out;
}

void append_chunk(std::string& out, std::string_view part) {
    char digits[20];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, part.size(), 16);
    out.append(digits, end);
    out += "\r\n";
    out += part;
    out += "\r\n";
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
}

std::string_view split_target(std::string_view target, std::string& path, std::string& query) {
    std::string_view host;
    if (const size_t scheme = target.find("://"); scheme != std::string_view::npos) {
        const std::string name = lower_case(target.substr(0, scheme));
        if (name == "http" || name == "https") {
            target.remove_prefix(scheme + 3);
            host = target.substr(0, target.find_first_of("/?"));
            target.remove_prefix(host.size());
        }
    }
    const size_t question = target.find('?');
    path = target.substr(0, question);
    if (path.empty() && !host.empty()) path = "/";
    query = question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
    return host;
}

std::string media_type(std::string_view value) {
    return lower_case(trimmed(value.substr(0, value.find(';'))));
}

std::string media_parameter(std::string_view value, std::string_view name) {
    for (size_t at = value.find(';'); at != std::string_view::npos; at = value.find(';')) {
        value.remove_prefix(at + 1);
        const std::string_view parameter = value.substr(0, value.find(';'));
        const size_t equals = parameter.find('=');
        if (equals == std::string_view::npos || lower_case(trimmed(parameter.substr(0, equals))) != name) continue;
        std::string_view given = trimmed(parameter.substr(equals + 1));
        if (given.size() >= 2 && given.starts_with('"') && given.ends_with('"'))
            given = given.substr(1, given.size() - 2);
        return lower_case(given);
    }
    return {};
}

std::string percent_decoded(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        uint8_t byte = 0;
        const char* const digits = text.data() + i + 1;
        if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
            out += static_cast<char>(byte);
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace tessera::server
