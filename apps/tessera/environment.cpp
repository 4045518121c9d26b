#include "apps/tessera/environment.hpp"

#include "apps/tessera/usage_error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

namespace tessera::app {
namespace {

constexpr std::string_view kPrefix = "LLAMA_ARG_";

// The spelling of the flag that a variable stands for; empty if it is of none.
std::string spelling_of(std::string_view variable) {
    for (const Flag& flag : all_flags()) {
        for (const std::string_view entry : variables_of(flag)) {
            const size_t equals = std::min(entry.find('='), entry.size());
            if (entry.substr(0, equals) != variable) continue;
            if (equals < entry.size()) return std::string(entry.substr(equals + 1));
            const auto all = spellings_of(flag);
            return std::string(
                *std::ranges::find_if(all, [](std::string_view spelling) { return spelling.starts_with("--"); }));
        }
    }
    if (!variable.starts_with(kPrefix) || variable.size() == kPrefix.size()) return "";
    std::string spelling = "--";
    for (const char c : variable.substr(kPrefix.size()))
        spelling += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return spelling;
}

std::optional<bool> switch_of(std::string_view value) {
    constexpr std::array<std::string_view, 4> yes = {"1", "on", "true", "enabled"};
    constexpr std::array<std::string_view, 4> no = {"0", "off", "false", "disabled"};
    if (std::ranges::find(yes, value) != yes.end()) return true;
    if (std::ranges::find(no, value) != no.end()) return false;
    return std::nullopt;
}

bool supported_elsewhere(std::string_view spelling) {
    return std::ranges::any_of(all_commands(), [&](const CommandInfo& info) {
        const Flag* const flag = find_flag(spelling, info.command);
        return flag && flag->standing == Standing::kSupported;
    });
}

// The flag that a switch stands for; nullptr if for none.
const Flag* switched(const Flag& flag, std::string_view spelling, const Variable& variable, Command command) {
    const std::optional<bool> on = switch_of(variable.second);
    const bool negative = spelling.starts_with("--no-");
    if (!on || (negative && !*on))
        throw UsageError(fmt::format("{}: expected {}, found '{}'", variable.first, negative ? "1" : "1 or 0",
                                     printable(variable.second, 40)));
    return *on ? &flag : find_flag(fmt::format("--no-{}", spelling.substr(2)), command);
}

}  // namespace

std::vector<Variable> llama_variables() {
    std::vector<Variable> found;
    for (char** at = environ; at && *at; ++at) {
        const std::string_view entry = *at;
        const size_t equals = entry.find('=');
        if (entry.starts_with("LLAMA_") && equals != std::string_view::npos)
            found.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    }
    std::ranges::sort(found);
    return found;
}

std::vector<GivenFlag> read_environment(Command command, std::span<const Variable> variables,
                                        std::vector<std::string>& remarks) {
    std::vector<GivenFlag> given;
    for (const Variable& variable : variables) {
        const auto& [name, value] = variable;
        const std::string spelling = spelling_of(name);
        if (spelling.empty()) continue;
        const Flag* flag = find_flag(spelling, command);
        if (!flag || flag->standing != Standing::kSupported) {
            if (supported_elsewhere(spelling)) continue;
            if (!flag && !find_flag(spelling, Command::kRun) && !find_flag(spelling, Command::kServe))
                remarks.push_back(fmt::format("{}: there is no flag {}; the variable is not read", name, spelling));
            if (!flag) continue;
        }
        if (flag->takes == Takes::kNothing) flag = switched(*flag, spelling, variable, command);
        if (!flag) continue;
        if (flag->standing == Standing::kRefused && (flag->takes == Takes::kNothing || !flag->asks_nothing(value)))
            throw UsageError(fmt::format("{}: {}; unset the variable", name, flag->help));
        if (flag->takes == Takes::kSwitch && !is_switch_word(*flag, value))
            throw UsageError(fmt::format("{}: expected on or off, found '{}'", name, printable(value, 40)));
        given.push_back({flag, flag->takes == Takes::kNothing ? "1" : value, name});
    }
    return given;
}

}  // namespace tessera::app
