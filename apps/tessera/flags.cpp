#include "apps/tessera/flags.hpp"

#include "core/base/error.hpp"
#include "core/base/nearest.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace tessera::app {
const CommandInfo& info_of(Command command) noexcept {
    return *std::ranges::find(all_commands(), command, &CommandInfo::command);
}

std::string_view group_title(Group group) noexcept {
    constexpr std::array<std::string_view, 9> titles = {
        "General",           "Prompt",    "Sampling",
        "Context and speed", "Placement", "Server",
        "Reports",           "Measuring", "Accepted but ignored (with a note)"};
    return titles[static_cast<size_t>(group)];
}

std::vector<std::string_view> spellings_of(const Flag& flag) {
    std::vector<std::string_view> all;
    for (std::string_view rest = flag.spellings; !rest.empty();) {
        const size_t end = std::min(rest.find(' '), rest.size());
        all.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return all;
}

std::string_view shown(const Flag& flag) noexcept {
    return flag.spellings.substr(0, flag.spellings.find(' '));
}
bool Flag::spelled_as(std::string_view word) const {
    return std::ranges::any_of(spellings_of(*this), [&](std::string_view spelling) {
        return word == spelling || (spelling.starts_with("--") && word == spelling.substr(1));
    });
}

const Flag* find_flag(std::string_view spelling, Command command) {
    const Flag* found = nullptr;
    for (const Flag& flag : all_flags()) {
        if (!flag.of(command) || !flag.spelled_as(spelling)) continue;
        const auto exact = spellings_of(flag);
        if (std::ranges::find(exact, spelling) != exact.end()) return &flag;
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
