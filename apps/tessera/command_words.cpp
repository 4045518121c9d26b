#include "apps/tessera/command_words.hpp"

#include "apps/tessera/flags.hpp"
#include "apps/tessera/usage_error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace tessera::app {
namespace {

bool looks_like_flag(std::string_view word) {
    return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

const Flag* find_accepted(std::string_view spelling, Command command) {
    if (const Flag* const flag = find_flag(spelling, command)) return flag;
    for (const Command other : {Command::kRun, Command::kServe}) {
        if (const Flag* const flag = find_flag(spelling, other); flag && !idle_reason(*flag, command).empty())
            return flag;
    }
    return nullptr;
}

[[noreturn]] void fail_unknown(std::string_view word, Command command) {
    const CommandInfo& info = info_of(command);
    std::string commands;
    for (const CommandInfo& other : all_commands()) {
        const Flag* const flag = find_flag(word, other.command);
        if (flag && flag->standing == Standing::kSupported)
            commands += fmt::format("{}{}", commands.empty() ? "" : ", ", other.name);
    }
    if (!commands.empty()) {
        throw UsageError(fmt::format("{} is not a flag of 'tessera {}'; it is one of: {}", word, info.name, commands));
    }
    const std::string_view near = nearest_spelling(word, command);
    throw UsageError(fmt::format("unknown flag {}{}; 'tessera {} --help' lists all", printable(word, 60),
                                 near.empty() ? "" : fmt::format("; did you mean {}?", near), info.name));
}

[[noreturn]] void fail_bare_word(const std::string& word) {
    throw UsageError(fmt::format(
        "expected a flag, found '{}'; {}", printable(word, 60),
        word.ends_with(".gguf") ? "a model is named with -m FILE" : "a text with blanks needs quotes around it"));
}

void check_dashes(const std::string& word, Command command) {
    const std::string plain = with_plain_dashes(word);
    const std::string name = plain.substr(0, plain.find('='));
    if (plain == word || !find_accepted(name, command)) return;
    throw UsageError(fmt::format("{} has another dash than '-', as copied from a page or a document; type {}",
                                 printable(word.substr(0, word.find('=')), 60), name));
}

[[noreturn]] void fail_refused(const Flag& flag, std::string_view typed) {
    throw UsageError(fmt::format("{}: {}", typed, flag.help));
}

std::string_view expected_of(const Flag& flag) {
    return flag.value.empty() ? "a value" : flag.value;
}

// A positional argument and the flag, or two positional arguments, are two values of a flag that takes one.
void check_positional(const CommandInfo& info, const std::vector<GivenFlag>& given) {
    const std::string_view name = info.positional;
    if (name.empty() || flag_named(name).repeats) return;
    const GivenFlag* bare = nullptr;
    const GivenFlag* other = nullptr;
    for (const GivenFlag& one : given) {
        if (one.flag->name != name) continue;
        (!bare && one.typed.empty() ? bare : other) = &one;
    }
    if (!bare || !other) return;
    throw UsageError(fmt::format("expected one {}, found '{}' and '{}'{}", name == "model" ? "model" : "text",
                                 printable(bare->value, 60), printable(other->value, 60),
                                 name == "model" ? "" : "; a text with blanks needs quotes around it"));
}

// Reads one word after the other.
class Reader {
  public:
    Reader(Command command, std::span<const std::string> words) : command_(command), words_(words) {}

    std::vector<GivenFlag> read() && {
        while (at_ < words_.size()) {
            check_dashes(words_[at_], command_);
            if (looks_like_flag(words_[at_]))
                read_flag();
            else
                read_positional();
        }
        check_positional(info_of(command_), given_);
        return std::move(given_);
    }

  private:
    const std::string* next() const { return at_ < words_.size() ? &words_[at_] : nullptr; }

    void read_positional() {
        const std::string& word = words_[at_++];
        const std::string_view positional = info_of(command_).positional;
        if (positional.empty() || word.empty()) {
            // After a switch without a value it was meant as that.
            if (!given_.empty() && given_.back().flag->takes == Takes::kSwitch &&
                given_.back().typed == words_[at_ - 2])
                throw UsageError(fmt::format(
                    "{}: expected {}, found '{}'", given_.back().typed,
                    given_.back().flag->value.empty() ? "on or off" : given_.back().flag->value, printable(word, 60)));
            fail_bare_word(word);
        }
        given_.push_back({&flag_named(positional), word, {}});
    }

    void read_flag() {
        std::string_view typed = words_[at_++];
        std::optional<std::string> attached;
        const Flag* flag = find_accepted(typed, command_);
        if (const size_t equals = typed.find('='); !flag && equals != std::string_view::npos) {
            flag = find_accepted(typed.substr(0, equals), command_);
            attached = typed.substr(equals + 1);
            typed = typed.substr(0, equals);
        }
        if (!flag) fail_unknown(typed, command_);
        std::string value = flag->standing == Standing::kRefused ? neutral_value(*flag, typed, std::move(attached))
                                                                 : value_of(*flag, typed, std::move(attached));
        // Other benchmarks take 0 and 1 after flags that have no value elsewhere.
        if (command_ == Command::kBench && flag->takes == Takes::kNothing && next() && is_switch_word(*flag, *next())) {
            const std::string& word = words_[at_++];
            if (flag->standing == Standing::kSupported && (word == "0" || word == "off" || word == "false")) return;
        }
        given_.push_back({flag, std::move(value), std::string(typed)});
    }

    std::string value_of(const Flag& flag, std::string_view typed, std::optional<std::string> attached) {
        if (flag.takes == Takes::kNothing) {
            if (attached)
                throw UsageError(fmt::format("{} takes no value, found '{}'", typed, printable(*attached, 60)));
            return "1";
        }
        if (attached) return *std::move(attached);
        if (flag.takes == Takes::kSwitch) return next() && is_switch_word(flag, *next()) ? words_[at_++] : "1";
        if (!next())
            throw UsageError(fmt::format("{} expects {}, found the end of the line", typed, expected_of(flag)));
        if (!flag.any_text && find_accepted(*next(), command_))
            throw UsageError(fmt::format("{} expects {}, found the flag {}", typed, expected_of(flag), *next()));
        return words_[at_++];
    }

    // Of a refused flag: throws unless the value asks for nothing.
    std::string neutral_value(const Flag& flag, std::string_view typed, std::optional<std::string> attached) {
        if (!attached && flag.takes != Takes::kNothing && next()) attached = words_[at_++];
        if (!attached || !flag.asks_nothing(*attached)) fail_refused(flag, typed);
        return *std::move(attached);
    }

    Command command_;
    std::span<const std::string> words_;
    size_t at_ = 0;
    std::vector<GivenFlag> given_;
};

}  // namespace

std::vector<GivenFlag> read_words(Command command, std::span<const std::string> words) {
    return Reader(command, words).read();
}

std::string idle_reason(const Flag& flag, Command command) {
    if (flag.of(command)) return "";
    const auto is_of = [&](uint32_t commands) { return (commands & static_cast<uint32_t>(command)) != 0; };
    if (flag.group == Group::kSampling && is_of(kEngine & ~kGenerate))
        return fmt::format("'{}' draws no tokens", info_of(command).name);
    if (flag.group == Group::kServer && is_of(kNotServe)) return "a flag of 'tessera serve', without effect here";
    return "";
}

bool is_switch_word(const Flag& flag, std::string_view word) {
    constexpr std::array<std::string_view, 7> common = {"on", "off", "auto", "1", "0", "true", "false"};
    const std::vector<std::string> own = split(flag.value, '|');
    return std::ranges::all_of(split(word, ','), [&](std::string_view part) {
        return std::ranges::find(common, part) != common.end() ||
               (!part.empty() && std::ranges::find(own, part) != own.end());
    });
}

std::string with_plain_dashes(std::string_view word) {
    // In UTF-8: an em dash and a horizontal bar stand for two dashes.
    constexpr std::array<std::pair<std::string_view, std::string_view>, 10> dashes = {{{"\u2010", "-"},
                                                                                       {"\u2011", "-"},
                                                                                       {"\u2012", "-"},
                                                                                       {"\u2013", "-"},
                                                                                       {"\u2014", "--"},
                                                                                       {"\u2015", "--"},
                                                                                       {"\u2212", "-"},
                                                                                       {"\uFE58", "-"},
                                                                                       {"\uFE63", "-"},
                                                                                       {"\uFF0D", "-"}}};
    std::string plain;
    while (!word.empty()) {
        const auto* const dash =
            std::ranges::find_if(dashes, [&](const auto& one) { return word.starts_with(one.first); });
        if (dash == dashes.end()) {
            plain += word.front();
            word.remove_prefix(1);
            continue;
        }
        plain += plain.empty() || dash->second.size() == 1 ? dash->second : "-";
        word.remove_prefix(dash->first.size());
    }
    return plain;
}

}  // namespace tessera::app
