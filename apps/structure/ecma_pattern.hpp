// Patterns of JSON Schema (ECMA-262, section 22.2, with the flag u) in the syntax that llguidance reads. Groups may be
// named as Python and Rust name them, too: (?P<name>.
#pragma once

#include <string>
#include <string_view>

namespace tessera::structure {

// A pattern that matches the same texts, or fewer. Throws Error(TSR_INVALID_ARGUMENT) that names what is not a regular
// expression (lookaround, back references), has no counterpart, or is not valid.
std::string translate_pattern(std::string_view pattern);

// What translate_pattern() made, of which a part of a text is to match, as one that all of the text is to match. Throws
// Error(TSR_INVALID_ARGUMENT) for one with ^ or $ elsewhere than at the ends of its alternatives.
std::string whole_pattern(std::string_view translated);

}  // namespace tessera::structure
