// Errors of loading, with the weight that they are about.
#pragma once

#include "core/base/error.hpp"

#include <string>

namespace tessera {

// Calls body(), and names the weight if that throws an Error.
template <typename Body>
void for_weight(const std::string& weight, Body&& body) {
    try {
        body();
    } catch (const Error& error) {
        throw prefixed(weight, error);
    }
}

}  // namespace tessera
