// Texts that a user names on the command line.
#pragma once

#include <string>

namespace tessera::app {

// All of a text file, or of standard input for "-", without a byte-order mark and a final line end. Throws Error, also
// for a text in UTF-16.
std::string read_text(const std::string& file);

}  // namespace tessera::app
