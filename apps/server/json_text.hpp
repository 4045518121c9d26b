// Writes JSON as text, without a tree of values.
#pragma once

#include <string>
#include <string_view>

namespace tessera::server {

// Appends `text`, which is UTF-8, as a JSON string. What is not UTF-8 becomes U+FFFD.
void append_json(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

// Appends a number as short as possible; null if it is not finite.
void append_json(std::string& out, double number);

}  // namespace tessera::server
