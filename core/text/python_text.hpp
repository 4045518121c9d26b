// Texts as Python's str has them, in UTF-8.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tessera::text {

// str.strip(), lstrip() and rstrip(): without white space, or any of the characters in `characters`, at these ends.
// What is not UTF-8 stays.
std::string_view python_strip(std::string_view text, bool left, bool right,
                              std::optional<std::string_view> characters = {});

// Where a character begins, in bytes; the end, if there are not so many. A byte that is not UTF-8 is a character.
size_t character_place(std::string_view text, size_t character);
size_t character_count(std::string_view text);

}  // namespace tessera::text
