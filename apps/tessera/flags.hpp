// The table of flags of the program.
#pragma once

#include "apps/flags/flag.hpp"

#include <span>
#include <string>
#include <string_view>

namespace tessera::app {

struct CommandInfo {
    Command command;
    std::string_view name;
    std::string_view positional;  // the flag that positional arguments are values of; empty: there are none
    std::string_view usage;
    std::string_view summary;
};

std::span<const CommandInfo> all_commands() noexcept;
const CommandInfo& info_of(Command command) noexcept;

std::string_view group_title(Group group) noexcept;

// The parts of the table.
std::span<const Flag> own_flags() noexcept;
std::span<const Flag> sampling_flags_of_fields() noexcept;
std::span<const Flag> ignored_flags() noexcept;
std::span<const Flag> refused_flags() noexcept;
// All of them, with those of the server.
std::span<const Flag> all_flags();

// What the flag does, with its default and whether it may be given more than once.
std::string help_of(const Flag& flag);

// nullptr if no flag of this command is spelled so; spellings as in Flag::spelled_as().
const Flag* find_flag(std::string_view spelling, Command command);
// By name; there must be one.
const Flag& flag_named(std::string_view name);

// The most similar spelling of a flag of this command; empty if none is similar.
std::string_view nearest_spelling(std::string_view word, Command command);

}  // namespace tessera::app
