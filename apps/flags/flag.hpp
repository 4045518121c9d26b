// A row of the table of flags: names, kind of value, what is done with it, and the member that it sets.
#pragma once

#include "apps/flags/setter.hpp"

#include <cstdint>
#include <stdexcept>
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
    kPluginTest = 4096,
};

inline constexpr uint32_t kRun = static_cast<uint32_t>(Command::kRun);
inline constexpr uint32_t kChat = static_cast<uint32_t>(Command::kChat);
inline constexpr uint32_t kPlan = static_cast<uint32_t>(Command::kPlan);
inline constexpr uint32_t kInspect = static_cast<uint32_t>(Command::kInspect);
inline constexpr uint32_t kTokenize = static_cast<uint32_t>(Command::kTokenize);
inline constexpr uint32_t kPlugins = static_cast<uint32_t>(Command::kPlugins);
inline constexpr uint32_t kDevices = static_cast<uint32_t>(Command::kDevices);
inline constexpr uint32_t kBench = static_cast<uint32_t>(Command::kBench);
inline constexpr uint32_t kSweep = static_cast<uint32_t>(Command::kSweep);
inline constexpr uint32_t kPerplexity = static_cast<uint32_t>(Command::kPerplexity);
inline constexpr uint32_t kRepack = static_cast<uint32_t>(Command::kRepack);
inline constexpr uint32_t kServe = static_cast<uint32_t>(Command::kServe);
inline constexpr uint32_t kPluginTest = static_cast<uint32_t>(Command::kPluginTest);
// All but that which tests plugins and knows no configuration.
inline constexpr uint32_t kAll = kPluginTest - 1;
// `plan` takes the flags of `run`, so that changing one word of a command line plans it instead.
inline constexpr uint32_t kModel = kRun | kChat | kPlan;
// Commands that load or plan a model.
inline constexpr uint32_t kEngine = kModel | kServe | kBench | kSweep | kPerplexity | kRepack;
// Commands that generate text.
inline constexpr uint32_t kGenerate = kModel | kServe;
inline constexpr uint32_t kNotServe = kEngine & ~kServe;

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
    kTests,
    kIgnored,
    kRefused
};

struct Flag {
    std::string_view name;       // by which the program refers to it: unique
    std::string_view spellings;  // separated by blanks; the first is the one that messages show. No two flags of one
                                 // command share one
    Takes takes = Takes::kNothing;
    std::string_view value;  // placeholder in the help text: "N"; of a setter that takes one of several words, these
    uint32_t commands = 0;   // of Command
    Group group = Group::kGeneral;
    std::string_view help;  // of those that are ignored or refused the reason, as a line after the flag
    Standing standing = Standing::kSupported;
    std::string_view neutral = {};  // values of a refused flag that ask for nothing, separated by blanks

    Setter setter = {};               // none: the command that has the flag reads it
    bool several = false;             // benchmarks take several values, separated by commas
    bool repeats = false;             // every value counts, not the last alone
    bool any_text = false;            // the value may look like a flag
    std::string_view variables = {};  // of the environment, beside LLAMA_ARG_ and its spelling, separated by blanks; as
                                      // NAME=SPELLING where that is not the first long one

    bool of(Command command) const noexcept { return (commands & static_cast<uint32_t>(command)) != 0; }
    bool of_all() const noexcept { return (commands & kAll) == kAll; }
    // With one dash in place of two and underscores in place of dashes, too.
    bool spelled_as(std::string_view word) const;
    // Whether a refused flag with this value asks for nothing, so that it is accepted.
    bool asks_nothing(std::string_view text) const;

    consteval Flag with(Setter that) const {
        Flag flag = *this;
        flag.setter = that;
        return flag;
    }
    consteval Flag taking_several() const {
        Flag flag = *this;
        flag.several = true;
        return flag;
    }
    consteval Flag repeated() const {
        Flag flag = *this;
        flag.repeats = true;
        return flag;
    }
    consteval Flag of_any_text() const {
        Flag flag = *this;
        flag.any_text = true;
        return flag;
    }
    consteval Flag from(std::string_view names) const {
        Flag flag = *this;
        flag.variables = names;
        return flag;
    }
};

std::vector<std::string_view> spellings_of(const Flag& flag);
std::string_view shown(const Flag& flag) noexcept;  // its first spelling
std::vector<std::string_view> variables_of(const Flag& flag);

consteval Flag supported(std::string_view name, std::string_view spellings, Takes takes, std::string_view value,
                         uint32_t commands, Group group, std::string_view help, Setter setter = {}) {
    return {name, spellings, takes, value, commands, group, help, Standing::kSupported, {}, setter};
}

// A row without a reason does not compile.
consteval std::string_view reason_of(std::string_view text) {
    if (text.empty()) throw std::invalid_argument("a flag that is ignored or refused needs a reason");
    return text;
}

// `reason`: why the flag can change no result; printed when it is given.
consteval Flag ignored(std::string_view name, std::string_view spellings, Takes takes, std::string_view reason,
                       uint32_t commands = kEngine) {
    return {name, spellings, takes, "", commands, Group::kIgnored, reason_of(reason), Standing::kIgnored};
}

// `reason`: what is missing, and what to do instead. `neutral`: values that ask for nothing, separated by blanks; so
// does an empty value.
consteval Flag refused(std::string_view name, std::string_view spellings, Takes takes, std::string_view neutral,
                       std::string_view reason, uint32_t commands = kEngine) {
    return {name, spellings, takes, "", commands, Group::kRefused, reason_of(reason), Standing::kRefused, neutral};
}

}  // namespace tessera::app
