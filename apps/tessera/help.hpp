// What the table of flags says, for readers.
#pragma once

#include "apps/tessera/flags.hpp"

#include <string>

namespace tessera::app {

// The help of a command, for standard output.
std::string help_text(Command command);

// All flags with what is done with them, in Markdown: docs/flags.md.
std::string flags_page();

}  // namespace tessera::app
