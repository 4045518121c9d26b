// Flags that are given as environment variables, as llama.cpp reads them: LLAMA_ARG_CTX_SIZE for --ctx-size.
#pragma once

#include "apps/tessera/command_words.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tessera::app {

using Variable = std::pair<std::string, std::string>;  // name, value

// Those of this process whose names begin with LLAMA_.
std::vector<Variable> llama_variables();

// The flags of a command that `variables` stand for, `typed` being the variable's name. Variables of flags that other
// commands have are left out; `remarks` gets a line for those that stand for no flag at all. Throws UsageError for
// refused flags and for values that a switch does not take.
std::vector<GivenFlag> read_environment(Command command, std::span<const Variable> variables,
                                        std::vector<std::string>& remarks);

}  // namespace tessera::app
