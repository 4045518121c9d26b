// For functions of the host's tables, which plugins call.
#pragma once

#include "core/base/error.hpp"

#include <tessera/cpp/status.hpp>

#include <utility>

namespace tessera {

// Calls `body`; what it throws becomes a status. The core's errors keep their code on the way through the plugin.
template <typename Body>
const tsr_status* status_for_plugin(Body&& body) noexcept {
    return sdk::guarded([&] {
        try {
            std::forward<Body>(body)();
        } catch (const Error& error) {
            throw sdk::Failure(error.code(), error.what());
        }
    });
}

}  // namespace tessera
