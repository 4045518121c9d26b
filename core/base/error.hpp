// The exception of the core, thrown for every failure that input, files, plugins or the machine can cause.
#pragma once

#include "core/base/notice.hpp"

#include <tessera/status.h>

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

class Error : public std::runtime_error {
  public:
    Error(tsr_code code, const std::string& message) : Error(code, Notice(message)) {}
    // what() is the notice's text.
    Error(tsr_code code, Notice notice)
        : std::runtime_error(notice.text), code_(code), notice_(std::make_shared<const Notice>(std::move(notice))) {}

    tsr_code code() const noexcept { return code_; }
    const Notice& notice() const noexcept { return *notice_; }

  private:
    tsr_code code_;
    std::shared_ptr<const Notice> notice_;  // copies of an exception must not throw
};

// Name of a code as people read it: "invalid argument", "does not fit", ...
const char* code_name(tsr_code code) noexcept;

// Throws Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(tsr_code code, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// The same with a notice.
[[noreturn]] void fail(tsr_code code, Notice notice);

// The error with "what: " before its text.
Error prefixed(std::string_view what, const Error& error);

// What is wrong with a status that a plugin returned; empty if it is valid. Else only its struct_size may be read.
std::string status_fault(const tsr_status& status);

// Throws the Error that a status of the ABI describes, after destroying the status. NULL does nothing.
void check(const tsr_status* status);

}  // namespace tessera
