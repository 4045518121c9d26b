#pragma once

#include <tessera/status.h>

#include <stdexcept>
#include <string>

namespace tessera::conformance {

// The message of a status, which is destroyed.
inline std::string text_of(const tsr_status* status) {
    std::string text = status->message ? status->message : "no message";
    if (status->destroy) status->destroy(status);
    return text;
}

// Ends a check that fails; the text says what is wrong.
[[noreturn]] inline void wrong(const std::string& text) {
    throw std::runtime_error(text);
}

}  // namespace tessera::conformance
