#include "apps/tessera/flags.hpp"

#include "apps/tessera/flag_rows.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <system_error>

namespace tessera::app {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> all;
    for (std::string_view rest = text; !rest.empty();) {
        const size_t end = std::min(rest.find(' '), rest.size());
        all.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return all;
}

std::optional<double> number_of(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

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
    constexpr std::array<std::string_view, 10> titles = {"General",
                                                         "Prompt",
                                                         "Sampling",
                                                         "Context and speed",
                                                         "Placement",
                                                         "Server",
                                                         "Reports",
                                                         "Measuring",
                                                         "Accepted but ignored (with a note)",
                                                         "Refused (with the reason)"};
    return titles[static_cast<size_t>(group)];
}

std::span<const Flag> all_flags() {
    static const std::vector<Flag> all = [] {
        std::vector<Flag> joined;
        for (const std::span<const Flag> table : {own_flags(), ignored_flags(), refused_flags()})
            joined.insert(joined.end(), table.begin(), table.end());
        return joined;
    }();
    return all;
}

std::vector<std::string_view> spellings_of(const Flag& flag) {
    return words_of(flag.spellings);
}

std::string_view shown(const Flag& flag) noexcept {
    return flag.spellings.substr(0, flag.spellings.find(' '));
}

bool Flag::spelled_as(std::string_view word) const {
    const std::string dashed = with_dashes(word);
    return std::ranges::any_of(spellings_of(*this), [&](std::string_view spelling) {
        return dashed == spelling || (spelling.starts_with("--") && dashed == spelling.substr(1));
    });
}

bool Flag::asks_nothing(std::string_view text) const {
    if (text.empty()) return takes != Takes::kNothing;
    const std::optional<double> number = number_of(text);
    for (const std::string_view word : words_of(neutral)) {
        if (word == text || (number && number_of(word) == number)) return true;
    }
    return false;
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
