// What the table of flags says, for readers.
#pragma once

#include "apps/tessera/flags.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::app {

// The help of a command, for standard output.
std::string help_text(Command command);

// Names of the commands of a flag: "all", "run, chat".
std::string commands_text(uint32_t commands);

// All flags with what is done with them, in Markdown: docs/flags.md.
std::string flags_page();

// The page of the manual, in the man macros of roff.
std::string man_page(std::string_view version);

}  // namespace tessera::app
