// Names of programs and commands of other projects, typed as commands of this one.
#pragma once

#include <string>
#include <string_view>

namespace tessera::app {

// What to use in place of `word`, as "'tessera serve'" or a sentence; empty if the word is not known. llama-NAME,
// NAME.exe and NAME.py are taken for NAME.
std::string instead_of(std::string_view word);

}  // namespace tessera::app
