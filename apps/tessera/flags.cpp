#include "apps/tessera/flags.hpp"

#include "apps/server/settings.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

namespace tessera::app {
namespace {

std::string with_dashes(std::string_view word) {
    std::string dashed(word);
    std::ranges::replace(dashed, '_', '-');
    return dashed;
}

}  // namespace

const CommandInfo& info_of(Command command) noexcept {
    return *std::ranges::find(all_commands(), command, &CommandInfo::command);
}

std::string_view group_title(Group group) noexcept {
    constexpr std::array<std::string_view, 11> titles = {"General",
                                                         "Prompt",
                                                         "Sampling",
                                                         "Context and speed",
                                                         "Placement",
                                                         "Server",
                                                         "Reports",
                                                         "Measuring",
                                                         "Tests of plugins",
                                                         "Accepted but ignored (with a note)",
                                                         "Refused (with the reason)"};
    return titles[static_cast<size_t>(group)];
}

std::span<const Flag> all_flags() {
    static const std::vector<Flag> all = [] {
        std::vector<Flag> joined;
        for (const std::span<const Flag> table :
             {own_flags(), sampling_flags_of_fields(), server::kServerFlags, ignored_flags(), refused_flags()})
            joined.insert(joined.end(), table.begin(), table.end());
        return joined;
    }();
    return all;
}

std::string help_of(const Flag& flag) {
    std::string text(flag.help);
    if (const std::string initial = flag.setter.initial ? flag.setter.initial() : ""; !initial.empty())
        text += fmt::format(" ({})", initial);
    if (flag.repeats) text += "; may be repeated";
    return text;
}

const Flag* find_flag(std::string_view spelling, Command command) {
    const Flag* found = nullptr;
    for (const Flag& flag : all_flags()) {
        if (!flag.of(command) || !flag.spelled_as(spelling)) continue;
        const auto exact = spellings_of(flag);
        if (std::ranges::find(exact, with_dashes(spelling)) != exact.end()) return &flag;
        found = &flag;
    }
    return found;
}

const Flag& flag_named(std::string_view name) {
    const auto at = std::ranges::find(all_flags(), name, &Flag::name);
    if (at == all_flags().end()) fail(TSR_INTERNAL, "the table of flags has no '{}'", name);
    return *at;
}

std::string_view nearest_spelling(std::string_view word, Command command) {
    std::vector<std::string_view> spellings;
    for (const Flag& flag : all_flags()) {
        if (flag.of(command)) std::ranges::copy(spellings_of(flag), std::back_inserter(spellings));
    }
    return nearest_name(word, spellings);
}

}  // namespace tessera::app
