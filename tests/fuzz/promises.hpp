// What targets promise, whatever the input is.
#pragma once

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>

namespace tessera::fuzz {

inline void expect(bool promise, const char* what) {
    if (!promise) throw std::logic_error(what);
}

// What `work` returns; nothing where it throws an Error, which must say something fit to print. All else that it throws
// is a fault.
template <typename Work>
auto attempt(Work&& work) -> std::optional<decltype(work())> {
    try {
        return work();
    } catch (const Error& error) {
        expect(error.code() != TSR_OK && error.code() != TSR_INTERNAL, "code of an error");
        expect(printable(error.what(), SIZE_MAX) == error.what(), "message that is not fit to print");
        return std::nullopt;
    }
}

}  // namespace tessera::fuzz
