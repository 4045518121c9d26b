// From the words of a command line to flags and values, by the table of flags.
#pragma once

#include "apps/tessera/flags.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

struct GivenFlag {
    const Flag* flag = nullptr;  // perhaps of other commands: see idle_reason()
    std::string value;           // "1" for a flag without one
    std::string typed;           // the flag as typed; empty for a positional argument
};

// `words`: the arguments after the command. Throws UsageError for unknown and refused flags and for values that are
// missing.
std::vector<GivenFlag> read_words(Command command, std::span<const std::string> words);

// The reason why a flag of other commands has no effect on this one, where lines are tried with several commands: a
// flag of sampling, given to a command that draws no token, or one of the server, given to a command that loads a
// model. Empty: it is an error.
std::string idle_reason(const Flag& flag, Command command);

// on, off, auto, 1, 0, true, false, another word of the flag's own, or a list of them as benchmarks accept.
bool is_switch_word(const Flag& flag, std::string_view word);

// The word with dashes of typography, which web pages and word processors put in place of '-', as those of a keyboard.
std::string with_plain_dashes(std::string_view word);

}  // namespace tessera::app
