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
    kIgnored,  // accepted and ignored, with the line `help`
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
    kOthers
};
std::string_view group_title(Group group) noexcept;

struct Flag {
    std::string_view name;       // by which the program refers to it: unique
    std::string_view spellings;  // separated by blanks; the first is the one that messages show. No two flags of one
                                 // command share one
    Takes takes = Takes::kNothing;
    std::string_view value;  // placeholder in the help text: "N"
    uint32_t commands = 0;   // of Command
    Group group = Group::kOthers;
    std::string_view help;
    Standing standing = Standing::kSupported;

    bool of(Command command) const noexcept { return (commands & static_cast<uint32_t>(command)) != 0; }
    bool of_all() const noexcept { return commands == kAllCommands; }
    // With one dash in place of two, too.
    bool spelled_as(std::string_view word) const;
};

std::span<const Flag> all_flags() noexcept;
std::vector<std::string_view> spellings_of(const Flag& flag);
std::string_view shown(const Flag& flag) noexcept;  // its first spelling

// nullptr if no flag of this command is spelled so. One dash is accepted for two.
const Flag* find_flag(std::string_view spelling, Command command);
// By name; there must be one.
const Flag& flag_named(std::string_view name);

// The most similar spelling of a flag of this command; empty if none is similar.
std::string_view nearest_spelling(std::string_view word, Command command);

}  // namespace tessera::app
