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

struct Named {
    std::string_view variable, spelling;
};

// Variables that are not named like their flags.
constexpr std::array kOtherNames = {
    Named{"LLAMA_ARG_BATCH", "--batch-size"},
    Named{"LLAMA_ARG_MODEL_ALIAS", "--alias"},
    Named{"LLAMA_ARG_UBATCH", "--ubatch-size"},
    Named{"LLAMA_ARG_N_PARALLEL", "--parallel"},
    Named{"LLAMA_ARG_ROPE_SCALING_TYPE", "--rope-scaling"},
    Named{"LLAMA_ARG_DIO", "--direct-io"},
    Named{"LLAMA_ARG_THINK", "--reasoning-format"},
    Named{"LLAMA_ARG_THINK_BUDGET", "--reasoning-budget"},
    Named{"LLAMA_ARG_THINK_BUDGET_MESSAGE", "--reasoning-budget-message"},
    Named{"LLAMA_ARG_ENDPOINT_METRICS", "--metrics"},
    Named{"LLAMA_ARG_ENDPOINT_PROPS", "--props"},
    Named{"LLAMA_ARG_ENDPOINT_SLOTS", "--slots"},
    Named{"LLAMA_ARG_NO_ENDPOINT_SLOTS", "--no-slots"},
    Named{"LLAMA_ARG_STATIC_PATH", "--path"},
    Named{"LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT", "--checkpoint-min-step"},
    Named{"LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K", "--spec-draft-type-k"},
    Named{"LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V", "--spec-draft-type-v"},
    Named{"LLAMA_ARG_SPEC_DRAFT_HF_REPO", "--spec-draft-hf"},
    Named{"LLAMA_ARG_HFD_REPO", "--hf-repo-draft"},
    Named{"LLAMA_API_KEY", "--api-key"},
    Named{"LLAMA_OFFLINE", "--offline"},
    Named{"LLAMA_LOG_FILE", "--log-file"},
    Named{"LLAMA_LOG_COLORS", "--log-colors"},
    Named{"LLAMA_LOG_VERBOSITY", "--log-verbosity"},
    Named{"LLAMA_LOG_PREFIX", "--log-prefix"},
    Named{"LLAMA_LOG_TIMESTAMPS", "--log-timestamps"},
};

// Empty if the variable is not one of a flag.
std::string spelling_of(std::string_view variable) {
    const auto* const named = std::ranges::find(kOtherNames, variable, &Named::variable);
    if (named != kOtherNames.end()) return std::string(named->spelling);
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
