// What main() of a program does.
#pragma once

#include <string_view>

namespace tessera::app {

// Prepares the process and runs the command line. `command`: stands before the arguments, if it is not empty. Returns
// the exit code.
int start_program(int argc, char** argv, std::string_view command = {});

}  // namespace tessera::app
