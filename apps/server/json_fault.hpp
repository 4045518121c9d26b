// The place and kind of the first error in a text that is not JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::server {

struct JsonFault {
    size_t byte = 0;   // offset from the beginning of the text
    std::string what;  // "expected ',' or '}' after a value, found '\"'"

    // "expected ..., found ... (line 1, column 42, byte 41)": lines and columns count from 1, columns in characters.
    std::string message(std::string_view text) const;
};

// Reads a text as RFC 8259 has JSON, in UTF-8, with at most `depth` nested objects and arrays. Returns its first
// error; nothing if there is none. Numbers that no double holds are errors, and so is half of a surrogate pair. Any
// thread.
std::optional<JsonFault> find_json_fault(std::string_view text, size_t depth);

}  // namespace tessera::server
