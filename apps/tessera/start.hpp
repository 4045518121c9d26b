// What main() does.
#pragma once

namespace tessera::app {

// Prepares the process and runs the command line; a program that is called tessera-server is `tessera serve`. Returns
// the exit code.
int start_program(int argc, char** argv);

}  // namespace tessera::app
