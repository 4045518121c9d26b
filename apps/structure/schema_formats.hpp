// The formats of JSON Schema, OpenAPI and pydantic, and how each is enforced.
#pragma once

#include <optional>
#include <string_view>

namespace tessera::structure {

struct TextFormat {
    std::string_view name;
    // A pattern with the format's strings, or some of them; empty: `engine` has them.
    std::string_view pattern;
    // The name under which llguidance knows the format, or one whose strings are all of this format.
    std::string_view engine = {};
    // A pattern for strings that also match another pattern, which cannot be enforced; empty: the above.
    std::string_view plain = {};
};

// Null: the format says nothing of strings that could be enforced.
const TextFormat* find_text_format(std::string_view name);

// The same as an expression for values that are not written as JSON; null: there is none.
std::optional<std::string_view> text_format_pattern(std::string_view name);

// Both ends included. Whole numbers of 64 bits have no exact double.
struct NumberFormat {
    std::string_view name;
    bool whole;
    long double least, most;
};

// Null: the format says nothing of numbers.
const NumberFormat* find_number_format(std::string_view name);

// A format of RFC 3986 and others which strings are not held to, though JSON Schema defines it.
bool is_unenforced_standard_format(std::string_view name);

}  // namespace tessera::structure
