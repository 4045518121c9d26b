// The core's notices in the words of the command line: its flags and commands.
#pragma once

#include "core/base/error.hpp"
#include "core/base/notice.hpp"

#include <string>
#include <string_view>

namespace tessera {

// "-mg 3: there is 1 GPU here: CUDA0; leave it out".
std::string worded(const Notice& notice);
std::string worded(const Error& error);

// The flag of a setting, in its first spelling.
std::string_view flag_of(Setting setting) noexcept;

}  // namespace tessera
