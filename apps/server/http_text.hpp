// The text of HTTP/1.1 responses (RFC 9112), and parts of requests.
#pragma once

#include "apps/server/exchange.hpp"

#include <string>
#include <string_view>

namespace tessera::server {

// Status line and header of a whole response.
std::string response_head(const HttpResponse& response, bool keep_alive);
// Of a response in parts. Without chunks (HTTP/1.0) its end is the end of the connection.
std::string stream_head(std::string_view type, const Headers& headers, bool keep_alive, bool chunked);

void append_chunk(std::string& out, std::string_view part);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string lower_case(std::string_view text);
// "/path?query", also of "http://host/path?query". Returns the host, with its port, where the target names one.
std::string_view split_target(std::string_view target, std::string& path, std::string& query);

// Of a header's value as "application/json; charset=utf-8": the part before the parameters, and one of these, without
// quotes; empty: there is none. In small letters.
std::string media_type(std::string_view value);
std::string media_parameter(std::string_view value, std::string_view name);

// Bytes that are written as %41; what is no such is left as it is.
std::string percent_decoded(std::string_view text);

}  // namespace tessera::server
