#include "apps/tessera/flags.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace tessera::app {
namespace {

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other (Damerau, CACM 7(3),
// 1964; each place edited once).
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    std::iota(d[0].begin(), d[0].end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        for (size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

}  // namespace

const CommandInfo& info_of(Command command) noexcept {
    return *std::ranges::find(all_commands(), command, &CommandInfo::command);
}

std::string_view group_title(Group group) noexcept {
    constexpr std::array<std::string_view, 8> titles = {
        "General",   "Prompt",  "Sampling",  "Context and speed",
        "Placement", "Reports", "Measuring", "Taken, and said in one line"};
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
bool spelled(const Flag& flag, std::string_view spelling) {
    const auto spellings = spellings_of(flag);
    return std::ranges::find(spellings, spelling) != spellings.end();
}

const Flag* find_flag(std::string_view spelling, Command command) {
    const auto at = std::ranges::find_if(all_flags(),
                                         [&](const Flag& flag) { return flag.of(command) && spelled(flag, spelling); });
    return at == all_flags().end() ? nullptr : &*at;
}

const Flag& flag_named(std::string_view name) {
    const auto at = std::ranges::find(all_flags(), name, &Flag::name);
    if (at == all_flags().end()) fail(TSR_INTERNAL, "the table of flags has no '{}'", name);
    return *at;
}

std::string_view nearest_spelling(std::string_view word, Command command) {
    std::string_view best;
    // A third of the word may be wrong; more than that is another word.
    size_t least = std::max<size_t>(2, word.size() / 3 + 1);
    for (const Flag& flag : all_flags()) {
        if (!flag.of(command)) continue;
        for (const std::string_view spelling : spellings_of(flag)) {
            const size_t distance = edit_distance(word.substr(0, 64), spelling);
            if (distance < least) {
                least = distance;
                best = spelling;
            }
        }
    }
    return best;
}

}  // namespace tessera::app
