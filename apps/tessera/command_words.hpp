// From the words of a command line to flags and values, by the table of flags.
#pragma once

#include "apps/tessera/flags.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

struct GivenFlag {
    const Flag* flag = nullptr;  // perhaps of other commands: see is_idle_sampler()
    std::string value;           // "1" for a flag without one
    std::string typed;           // the flag as typed; empty for a positional argument
};

// `words`: the arguments after the command. Throws UsageError for unknown and refused flags and for values that are
// missing.
std::vector<GivenFlag> read_words(Command command, std::span<const std::string> words);

// A flag of sampling, given to a command that measures or copies and draws no token: accepted, without effect.
bool is_idle_sampler(const Flag& flag, Command command) noexcept;

// on, off, auto, 1, 0, true, false, another word of the flag's own, or a list of them as benchmarks accept.
bool is_switch_word(const Flag& flag, std::string_view word);

// Parts of a text between separators; at least one.
std::vector<std::string> split(std::string_view text, char separator);

// The word with dashes of typography, which web pages and word processors put in place of '-', as those of a keyboard.
std::string with_plain_dashes(std::string_view word);

}  // namespace tessera::app
