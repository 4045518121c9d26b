// The commit that the program was built from.
#pragma once

#include <string_view>

namespace tessera::app {

// Abbreviated, with "-dirty" where files were changed; "unknown" where the sources were no clone.
std::string_view build_commit() noexcept;

}  // namespace tessera::app
