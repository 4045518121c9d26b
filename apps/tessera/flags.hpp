// The table of flags: names, spellings, kinds of values, and what is done with them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

enum class Command : uint32_t {
    kRun = 1,
    kChat = 2,
    kPlan = 4,
    kDevices = 8,
    kPlugins = 16,
    kInspect = 32,
    kTokenize = 64,
    kBench = 128,
    kSweep = 256,
    kPerplexity = 512,
    kRepack = 1024,
    kServe = 2048,
};

inline constexpr uint32_t kAllCommands = 4095;

struct CommandInfo {
    Command command;
    std::string_view name;
    std::string_view positional;  // the flag that positional arguments are values of; empty: there are none
    std::string_view usage;
    std::string_view summary;
};

std::span<const CommandInfo> all_commands() noexcept;
const CommandInfo& info_of(Command command) noexcept;

enum class Takes : uint8_t {
    kNothing,
    kValue,   // the next word, whatever it is
    kSwitch,  // the next word if it is on, off, auto, 1, 0, true or false, or a list of them; "1" otherwise
};

// What this version does with a flag.
enum class Standing : uint8_t {
    kSupported,
    kIgnored,  // accepted, since it can change no result
    kRefused,  // an error, since it would change results or what the user relies on
};

enum class Group : uint8_t {
    kGeneral,
    kPrompt,
    kSampling,
    kContext,
    kPlacement,
    kServer,
    kReport,
    kMeasuring,
    kIgnored,
    kRefused
};
std::string_view group_title(Group group) noexcept;

struct Flag {
    std::string_view name;       // by which the program refers to it: unique
    std::string_view spellings;  // separated by blanks; the first is the one that messages show. No two flags of one
                                 // command share one
    Takes takes = Takes::kNothing;
    std::string_view value;  // placeholder in the help text: "N"
    uint32_t commands = 0;   // of Command
    Group group = Group::kGeneral;
    std::string_view help;  // of those that are ignored or refused the reason, as a line after the flag
    Standing standing = Standing::kSupported;
    std::string_view neutral;  // values of a refused flag that ask for nothing, separated by blanks

    bool of(Command command) const noexcept { return (commands & static_cast<uint32_t>(command)) != 0; }
    bool of_all() const noexcept { return commands == kAllCommands; }
    // With one dash in place of two and underscores in place of dashes, too.
    bool spelled_as(std::string_view word) const;
    // Whether a refused flag with this value asks for nothing, so that it is accepted.
    bool asks_nothing(std::string_view text) const;
};

std::span<const Flag> all_flags();
std::vector<std::string_view> spellings_of(const Flag& flag);
std::string_view shown(const Flag& flag) noexcept;  // its first spelling

// nullptr if no flag of this command is spelled so; spellings as in Flag::spelled_as().
const Flag* find_flag(std::string_view spelling, Command command);
// By name; there must be one.
const Flag& flag_named(std::string_view name);

// The most similar spelling of a flag of this command; empty if none is similar.
std::string_view nearest_spelling(std::string_view word, Command command);

}  // namespace tessera::app
