#include "core/base/error.hpp"

#include <tessera/sizes.h>

namespace tessera {

const char* code_name(tsr_code code) noexcept {
    switch (code) {
        case TSR_OK:
            return "ok";
        case TSR_INVALID_ARGUMENT:
            return "invalid argument";
        case TSR_NOT_FOUND:
            return "not found";
        case TSR_UNSUPPORTED:
            return "unsupported";
        case TSR_CORRUPT_DATA:
            return "corrupt data";
        case TSR_DOES_NOT_FIT:
            return "does not fit";
        case TSR_IO_ERROR:
            return "input/output error";
        case TSR_DEVICE_ERROR:
            return "device error";
        case TSR_CANCELLED:
            return "cancelled";
        case TSR_INTERNAL:
            return "internal error";
        case TSR_DEVICE_LOST:
            return "device lost";
    }
    return "unknown code";
}

void fail(tsr_code code, Notice notice) {
    throw Error(code, std::move(notice));
}

Error prefixed(std::string_view what, const Error& error) {
    Notice notice = error.notice();
    notice.text = fmt::format("{}: {}", what, notice.text);
    return {error.code(), std::move(notice)};
}

std::string status_fault(const tsr_status& status) {
    if (status.struct_size >= TSR_SIZE_tsr_status_0) return {};
    return fmt::format("a plugin answered with a status whose struct_size is {}, expected at least {}",
                       status.struct_size, +TSR_SIZE_tsr_status_0);
}

void check(const tsr_status* status) {
    if (!status) return;
    // No field of such a status can be read, not even destroy: it is leaked.
    if (std::string why = status_fault(*status); !why.empty()) throw Error(TSR_INTERNAL, why);
    Error error(status->code, status->message ? status->message : "no message");
    if (status->destroy) status->destroy(status);
    throw error;
}

}  // namespace tessera
