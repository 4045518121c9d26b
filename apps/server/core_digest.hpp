// Which build of the core this program has.
#pragma once

#include <string_view>

namespace tessera::server {

// Hexadecimal digits of a hash of the code that reads models, plans and runs steps: the same for builds of the same
// sources by the same compiler, of which results are the same, too. Written by the build.
std::string_view core_digest() noexcept;

}  // namespace tessera::server
