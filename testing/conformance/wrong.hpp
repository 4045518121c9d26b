#pragma once

#include <stdexcept>
#include <string>

namespace tessera::conformance {

// Ends a check that fails; the text says what is wrong.
[[noreturn]] inline void wrong(const std::string& text) {
    throw std::runtime_error(text);
}

}  // namespace tessera::conformance
