// What fuzzing does with the bytes of a connection.
#pragma once

#include <string_view>

namespace tessera::fuzz {

// Throws std::logic_error where a promise of RequestReader is broken. The first byte tells how the rest is cut.
void run_http(std::string_view input);

}  // namespace tessera::fuzz
