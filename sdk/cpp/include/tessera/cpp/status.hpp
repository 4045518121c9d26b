// status.h for C++: exceptions inside a plugin, statuses in its interface.
#pragma once

#include <tessera/status.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace tessera::sdk {

// Thrown by a plugin to return a status with a code of its choice.
class Failure : public std::runtime_error {
  public:
    Failure(tsr_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
    tsr_code code() const noexcept { return code_; }

  private:
    tsr_code code_;
};

namespace detail {

struct OwnedStatus : tsr_status {
    std::string text;
};

inline void destroy_owned(const tsr_status* status) {
    delete static_cast<const OwnedStatus*>(status);
}

inline const tsr_status kOutOfMemory = {sizeof(tsr_status), TSR_DOES_NOT_FIT, nullptr, "out of host memory", nullptr};

}  // namespace detail

// A status that its receiver destroys. Never throws.
inline const tsr_status* make_status(tsr_code code, const char* message) noexcept {
    try {
        auto* status = new detail::OwnedStatus;
        status->text = message;
        status->struct_size = sizeof(tsr_status);
        status->code = code;
        status->next = nullptr;
        status->message = status->text.c_str();
        status->destroy = detail::destroy_owned;
        return status;
    } catch (...) {
        return &detail::kOutOfMemory;
    }
}

// Calls `body` and converts what it throws to a status: the wrapper around every function of a plugin's tables.
template <typename Body>
const tsr_status* guarded(Body&& body) noexcept {
    try {
        std::forward<Body>(body)();
        return nullptr;
    } catch (const Failure& failure) {
        return make_status(failure.code(), failure.what());
    } catch (const std::bad_alloc&) {
        return &detail::kOutOfMemory;
    } catch (const std::exception& error) {
        return make_status(TSR_INTERNAL, error.what());
    } catch (...) {
        return make_status(TSR_INTERNAL, "an exception of unknown type");
    }
}

// Throws the Failure that a status describes, and destroys the status.
inline void check(const tsr_status* status) {
    if (!status) return;
    Failure failure(status->code, status->message ? status->message : "no message");
    if (status->destroy) status->destroy(status);
    throw failure;
}

}  // namespace tessera::sdk
