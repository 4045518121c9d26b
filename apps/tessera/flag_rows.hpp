// What the tables of flags are written with: the commands of a flag, and a row for each standing.
#pragma once

#include "apps/tessera/flags.hpp"

#include <stdexcept>

namespace tessera::app {

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
inline constexpr uint32_t kAll = kAllCommands;
// `plan` takes the flags of `run`, so that changing one word of a command line plans it instead.
inline constexpr uint32_t kModel = kRun | kChat | kPlan;
// Commands that load or plan a model.
inline constexpr uint32_t kEngine = kModel | kServe | kBench | kSweep | kPerplexity | kRepack;
// Commands that generate text.
inline constexpr uint32_t kGenerate = kModel | kServe;
inline constexpr uint32_t kNotServe = kEngine & ~kServe;

consteval Flag supported(std::string_view name, std::string_view spellings, Takes takes, std::string_view value,
                         uint32_t commands, Group group, std::string_view help) {
    return {name, spellings, takes, value, commands, group, help, Standing::kSupported, {}};
}

// A row without a reason does not compile.
consteval std::string_view reason_of(std::string_view text) {
    if (text.empty()) throw std::invalid_argument("a flag that is ignored or refused needs a reason");
    return text;
}

// `reason`: why the flag can change no result; printed when it is given.
consteval Flag ignored(std::string_view name, std::string_view spellings, Takes takes, std::string_view reason,
                       uint32_t commands = kEngine) {
    return {name, spellings, takes, "", commands, Group::kIgnored, reason_of(reason), Standing::kIgnored, {}};
}

// `reason`: what is missing, and what to do instead. `neutral`: values that ask for nothing, separated by blanks; so
// does an empty value.
consteval Flag refused(std::string_view name, std::string_view spellings, Takes takes, std::string_view neutral,
                       std::string_view reason, uint32_t commands = kEngine) {
    return {name, spellings, takes, "", commands, Group::kRefused, reason_of(reason), Standing::kRefused, neutral};
}

// The three tables.
std::span<const Flag> own_flags() noexcept;
std::span<const Flag> ignored_flags() noexcept;
std::span<const Flag> refused_flags() noexcept;

}  // namespace tessera::app
