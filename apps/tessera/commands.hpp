// The subcommands. Each returns the exit code of the process and throws errors that end it.
#pragma once

#include "apps/tessera/arguments.hpp"

#include <span>
#include <string>
#include <vector>

namespace tessera::app {

enum ExitCode : int {
    kExitDone = 0,
    kExitFailed = 1,
    kExitUsage = 2,
    kExitDoesNotFit = 3,
    kExitInterrupted = 130,  // as shells have it for SIGINT
};

int run_command(Arguments& arguments);
int chat_command(Arguments& arguments);
int serve_command(Arguments& arguments);
int plan_command(Arguments& arguments);
int devices_command(Arguments& arguments);
int plugins_command(Arguments& arguments);
int inspect_command(Arguments& arguments);
int tokenize_command(Arguments& arguments);
int bench_command(Arguments& arguments);
int sweep_command(Arguments& arguments);
int perplexity_command(Arguments& arguments);
int repack_command(Arguments& arguments);
int plugin_test_command(Arguments& arguments);

// The arguments of `bench` once for each combination of values of its flags, the threads changing fastest.
std::vector<Arguments> bench_lines(const Arguments& arguments);

// The whole program: `words` are argv without the program's name. Catches everything; messages go to standard error.
int tessera_main(std::span<const std::string> words);

}  // namespace tessera::app
