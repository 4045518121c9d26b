// UTF-8 as the Unicode standard defines it (16.0, table 3-7: no surrogates, no overlong forms, nothing past U+10FFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::text {

enum class Utf8Kind : uint8_t {
    kValid,       // a whole character
    kInvalid,     // a maximal ill-formed part: what one U+FFFD replaces
    kIncomplete,  // the text ends inside a character that is well formed so far
};

struct Utf8Step {
    Utf8Kind kind;
    uint8_t length;  // bytes, at least 1
};

// Looks at the character that starts at text[0]. `text` must not be empty.
Utf8Step utf8_step(std::string_view text) noexcept;

// Bytes of the longest prefix that is valid UTF-8.
size_t utf8_valid_prefix(std::string_view text) noexcept;

// The text with every ill-formed part replaced by U+FFFD.
std::string utf8_replace_invalid(std::string_view text);

// Appends `code`, which must be a Unicode scalar value, to `out`.
void utf8_append(std::string& out, uint32_t code);

// Code point of a valid character of `length` bytes at text[0].
uint32_t utf8_decode(std::string_view text, size_t length) noexcept;

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace tessera::text
