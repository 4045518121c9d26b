// JSON as text: what chat formats need of it, written as Python's json module writes it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::text {

inline bool is_json_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Bytes of white space at the start.
size_t json_spaces(std::string_view text);
// The text without white space at both ends.
std::string_view without_space(std::string_view text);

// Appends the characters of a string as they stand between its quotes. Only quotes, backslashes and control characters
// are escaped; other bytes, valid or not, stay.
void append_json_characters(std::string& out, std::string_view text);

// The characters of a string whose text between the quotes is `raw`; nothing if that is not valid.
std::optional<std::string> json_characters(std::string_view raw);

}  // namespace tessera::text
