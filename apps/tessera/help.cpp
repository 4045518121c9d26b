#include "apps/tessera/help.hpp"

#include "apps/tessera/flags.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

namespace tessera::app {
namespace {

struct CommandSet {
    uint32_t commands;
    std::string_view name;
};

// `text` for a cell of a table in Markdown.
std::string table_cell(std::string_view text) {
    std::string out;
    for (const char c : text) out += c == '|' ? "\\|" : c == '<' ? "&lt;" : std::string(1, c);
    return out;
}

std::string table_row(const Flag& flag) {
    std::string spellings;
    for (const std::string_view spelling : spellings_of(flag))
        spellings += fmt::format("{}`{}`", spellings.empty() ? "" : " ", spelling);
    if (!flag.value.empty()) spellings += fmt::format(" {}", table_cell(flag.value));
    std::string help = table_cell(help_of(flag));
    if (!flag.neutral.empty()) help += fmt::format(" (accepted: `{}`)", flag.neutral);
    return fmt::format("| {} | {} | {} |\n", spellings, commands_text(flag.commands), help);
}

}  // namespace

std::string commands_text(uint32_t commands) {
    constexpr CommandSet sets[] = {{kAll | kPluginTest, "all"},
                                   {kAll, "all but plugin-test"},
                                   {kEngine, "all with a model"},
                                   {kNotServe, "all with a model but serve"}};
    const auto* const set = std::ranges::find(sets, commands, &CommandSet::commands);
    if (set != std::end(sets)) return std::string(set->name);
    std::string names;
    for (const CommandInfo& info : all_commands()) {
        if ((commands & static_cast<uint32_t>(info.command)) != 0)
            names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
    }
    return names;
}

std::string help_text(Command command) {
    constexpr size_t column = 30;  // of the descriptions
    const CommandInfo& info = info_of(command);
    std::string text = wrapped(info.summary, 0, 0) + "\n\n" + wrapped(info.usage, 0, 4) + "\n";
    for (const Group group : {Group::kGeneral, Group::kPrompt, Group::kSampling, Group::kContext, Group::kPlacement,
                              Group::kServer, Group::kMeasuring, Group::kReport, Group::kTests}) {
        std::string lines;
        for (const Flag& flag : all_flags()) {
            if (flag.group != group || !flag.of(command) || flag.standing != Standing::kSupported) continue;
            std::string left = "  ";
            for (const std::string_view spelling : spellings_of(flag))
                left += fmt::format("{}{}", left.size() > 2 ? ", " : "", spelling);
            if (!flag.value.empty())
                left +=
                    flag.takes == Takes::kSwitch ? fmt::format(" [{}]", flag.value) : fmt::format(" {}", flag.value);
            lines +=
                left.size() < column ? fmt::format("{:<{}}", left, column) : fmt::format("{}\n{:{}}", left, "", column);
            lines += wrapped(help_of(flag), column, column) + '\n';
        }
        if (!lines.empty()) text += fmt::format("\n{}:\n{}", group_title(group), lines);
    }
    for (const Group group : {Group::kIgnored, Group::kRefused}) {
        std::string others;
        for (const Flag& flag : all_flags()) {
            if (!flag.of(command) || flag.group != group) continue;
            others += fmt::format("{}{}", others.empty() ? "" : " ", flag.spellings);
        }
        if (!others.empty()) text += fmt::format("\n{}:\n  {}\n", group_title(group), wrapped(others, 2, 2));
    }
    return text;
}

std::string flags_page() {
    std::string text =
        "# Flags\n\nWritten by `tessera help --markdown`. Spellings are those of llama.cpp and ik_llama.cpp where "
        "these "
        "have the flag. Long ones may have one dash, and underscores in place of dashes.\n";
    for (size_t g = 0; g <= static_cast<size_t>(Group::kRefused); ++g) {
        const auto group = static_cast<Group>(g);
        text += fmt::format("\n## {}\n\n| flag | of | {} |\n| --- | --- | --- |\n", group_title(group),
                            group == Group::kIgnored   ? "why it can change no result"
                            : group == Group::kRefused ? "why, and what to do instead"
                                                       : "what it does");
        for (const Flag& flag : all_flags()) {
            if (flag.group == group) text += table_row(flag);
        }
    }
    return text;
}

}  // namespace tessera::app
