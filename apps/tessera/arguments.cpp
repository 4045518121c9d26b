#include "apps/tessera/arguments.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tessera::app {
namespace {

namespace po = boost::program_options;
using Words = std::vector<std::string>;

// Program_options knows one dash and one letter, or two dashes and a name; users write -mla 3 -fa. So the arguments are
// parsed here, by the table of flags, and Program_options only stores the result.
po::options_description describe(Command command) {
    po::options_description all;
    for (const Flag& flag : all_flags()) {
        if (flag.of(command)) all.add_options()(std::string(flag.name).c_str(), po::value<Words>()->composing());
    }
    return all;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (;;) {
        const size_t end = std::min(text.find(separator), text.size());
        parts.emplace_back(text.substr(0, end));
        if (end == text.size()) return parts;
        text.remove_prefix(end + 1);
    }
}

// Also a list of them, as benchmarks accept.
bool is_switch_word(std::string_view word) {
    constexpr std::array<std::string_view, 7> words = {"on", "off", "auto", "1", "0", "true", "false"};
    return std::ranges::all_of(split(word, ','),
                               [&](std::string_view part) { return std::ranges::find(words, part) != words.end(); });
}

bool looks_like_flag(std::string_view word) {
    return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

[[noreturn]] void fail_unknown(std::string_view word, Command command) {
    const CommandInfo& info = info_of(command);
    std::string commands;
    for (const CommandInfo& other : all_commands()) {
        if (find_flag(word, other.command)) commands += fmt::format("{}{}", commands.empty() ? "" : ", ", other.name);
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

// A positional argument and the flag, or two positional arguments, are two values of a flag that takes one.
void check_positional(const CommandInfo& info, const std::vector<po::option>& options) {
    const std::string_view name = info.positional;
    if (name.empty() || name == "sweep-results") return;
    const po::option* bare = nullptr;
    const po::option* other = nullptr;
    for (const po::option& option : options) {
        if (option.string_key != name) continue;
        (!bare && option.original_tokens.empty() ? bare : other) = &option;
    }
    if (!bare || !other) return;
    throw UsageError(fmt::format("expected one {}, found '{}' and '{}'{}", name == "model" ? "model" : "text",
                                 printable(bare->value.front(), 60), printable(other->value.front(), 60),
                                 name == "model" ? "" : "; a text with blanks needs quotes around it"));
}

po::parsed_options read_words(Command command, std::span<const std::string> words,
                              const po::options_description& known) {
    po::parsed_options parsed(&known);
    // `typed`: the flag as typed; empty for a positional argument.
    const auto store = [&](std::string_view name, std::string value, std::string_view typed) {
        po::option& option = parsed.options.emplace_back(std::string(name), Words{std::move(value)});
        if (!typed.empty()) option.original_tokens.emplace_back(typed);
    };
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (!looks_like_flag(word)) {
            const std::string_view positional = info_of(command).positional;
            if (positional.empty() || word.empty()) fail_bare_word(word);
            store(positional, word, {});
            continue;
        }
        std::string_view typed = word;
        std::optional<std::string> attached;
        const Flag* flag = find_flag(word, command);
        if (!flag) {
            const size_t equals = word.find('=');
            if (equals != std::string::npos && (flag = find_flag(std::string_view(word).substr(0, equals), command))) {
                attached = word.substr(equals + 1);
                typed = typed.substr(0, equals);
            }
        }
        if (!flag) fail_unknown(std::string_view(word).substr(0, word.find('=')), command);
        const bool more = i + 1 < words.size();
        if (flag->takes == Takes::kNothing) {
            if (attached)
                throw UsageError(fmt::format("{} takes no value, found '{}'", typed, printable(*attached, 60)));
            store(flag->name, "1", typed);
            // Other benchmarks take 0 and 1 after flags that have no value elsewhere.
            if (command == Command::kBench && flag->standing == Standing::kIgnored && more &&
                is_switch_word(words[i + 1]))
                ++i;
        } else if (attached) {
            store(flag->name, *attached, typed);
        } else if (flag->takes == Takes::kSwitch) {
            store(flag->name, more && is_switch_word(words[i + 1]) ? words[++i] : "1", typed);
        } else {
            if (!more)
                throw UsageError(fmt::format("{} expects {}, found the end of the line", word,
                                             flag->value.empty() ? "a value" : flag->value));
            // A prompt may be any text; elsewhere a flag in place of a value means that the value is missing.
            if (flag->name != "prompt" && flag->name != "system" && flag->name != "stop" &&
                find_flag(words[i + 1], command)) {
                throw UsageError(fmt::format("{} expects {}, found the flag {}", word,
                                             flag->value.empty() ? "a value" : flag->value, words[i + 1]));
            }
            store(flag->name, words[++i], typed);
        }
    }
    check_positional(info_of(command), parsed.options);
    return parsed;
}

// Flags that take several values in benchmarks, so that users give several elsewhere, too.
bool takes_list(std::string_view name) {
    constexpr std::array<std::string_view, 19> names = {
        "n-gpu-layers", "n-cpu-moe",       "flash-attn", "mla-use",      "attention-max-batch",
        "cache-type-k", "cache-type-v",    "batch-size", "ubatch-size",  "threads-batch",
        "threads",      "run-time-repack", "bench-mmap", "bench-warmup", "bench-output",
        "fused-moe",    "split-mode",      "numa",       "main-gpu"};
    return std::ranges::find(names, name) != names.end();
}

template <typename T>
bool parse_whole(std::string_view text, T& value) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

constexpr size_t kMaximumValues = 1000;

// "FIRST-LAST", "FIRST-LAST+STEP", "FIRST-LAST*FACTOR"; false if the text is none of them.
bool append_range(std::string_view text, Words& values) {
    const size_t dash = text.find('-', 1);
    if (dash == std::string_view::npos) return false;
    const size_t sign = std::min(text.find_first_of("+*", dash), text.size());
    const bool multiplied = sign < text.size() && text[sign] == '*';
    int64_t first = 0, last = 0, step = 1;
    if (!parse_whole(text.substr(0, dash), first) || !parse_whole(text.substr(dash + 1, sign - dash - 1), last))
        return false;
    if (sign < text.size() && !parse_whole(text.substr(sign + 1), step)) return false;
    const bool grows = multiplied ? step > 1 && first > 0 : step > 0 && first >= 0;
    if (!grows || last < first || last > (int64_t{1} << 40)) return false;
    for (size_t count = 0; first <= last && count < kMaximumValues; ++count) {
        values.push_back(std::to_string(first));
        first = multiplied ? first * step : first + step;
    }
    return true;
}

}  // namespace

Arguments::Arguments(Command command, std::span<const std::string> words) : command_(command) {
    const po::options_description known = describe(command);
    const po::parsed_options parsed = read_words(command, words, known);
    for (const po::option& option : parsed.options) {
        const Flag& flag = flag_named(option.string_key);
        if (!option.original_tokens.empty()) typed_.insert_or_assign(option.string_key, option.original_tokens.front());
        if (flag.standing == Standing::kIgnored) remark(fmt::format("{}: {}", typed(flag.name), flag.help));
    }
    po::variables_map stored;
    po::store(parsed, stored);
    for (const auto& [name, value] : stored) values_.emplace(name, value.as<Words>());
}

void Arguments::remark(std::string line) {
    if (std::ranges::find(remarks_, line) == remarks_.end()) remarks_.push_back(std::move(line));
}

bool Arguments::has(std::string_view name) const {
    return values_.contains(name);
}

std::vector<std::string> Arguments::all(std::string_view name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? Words{} : at->second;
}

std::optional<std::string> Arguments::text(std::string_view name) const {
    Words words = all(name);
    if (words.empty()) return std::nullopt;
    return std::move(words.back());
}

std::string_view Arguments::typed(std::string_view name) const {
    const auto at = typed_.find(name);
    return at == typed_.end() ? shown(flag_named(name)) : std::string_view(at->second);
}

void Arguments::reject(std::string_view name, std::string_view expected, std::string_view found) const {
    throw UsageError(fmt::format("{}: expected {}, found '{}'", typed(name), expected, printable(found, 60)));
}

std::string Arguments::single(std::string_view name, const std::string& value) {
    const size_t comma = value.find(',');
    if (comma == std::string::npos || !takes_list(name)) return value;
    std::string first = value.substr(0, comma);
    remark(fmt::format("{} takes one value; using {}", typed(name), printable(first, 60)));
    return first;
}

std::optional<int64_t> Arguments::integer(std::string_view name, int64_t minimum, int64_t maximum) {
    const auto given = text(name);
    if (!given) return std::nullopt;
    int64_t value = 0;
    if (!parse_whole(single(name, *given), value) || value < minimum || value > maximum) {
        reject(name, fmt::format("a whole number from {} to {}", minimum, maximum), *given);
    }
    return value;
}

std::optional<double> Arguments::number(std::string_view name, double minimum, double maximum) {
    const auto given = text(name);
    if (!given) return std::nullopt;
    double value = 0;
    if (!parse_whole(single(name, *given), value) || !(value >= minimum && value <= maximum)) {
        reject(name, fmt::format("a number from {} to {}", minimum, maximum), *given);
    }
    return value;
}

std::optional<std::vector<double>> Arguments::numbers(std::string_view name, double minimum) const {
    const auto given = text(name);
    if (!given) return std::nullopt;
    std::vector<double> values;
    for (std::string_view rest = *given;;) {
        const size_t end = std::min(rest.find_first_of(",/"), rest.size());
        double value = 0;
        if (!parse_whole(rest.substr(0, end), value) || !(value >= minimum) || !std::isfinite(value)) {
            reject(name, "numbers separated by commas", *given);
        }
        values.push_back(value);
        if (end == rest.size()) return values;
        rest.remove_prefix(end + 1);
    }
}

std::optional<bool> Arguments::on_off(std::string_view name) {
    const auto given = text(name);
    if (!given) return std::nullopt;
    if (!is_switch_word(*given)) reject(name, "on, off, auto, 1 or 0", *given);
    const std::string value = single(name, *given);
    return value != "off" && value != "0" && value != "false";
}

std::vector<std::string> Arguments::list(std::string_view name) const {
    Words values;
    for (const std::string& given : all(name)) {
        for (std::string& part : split(given, ',')) {
            if (!append_range(part, values)) values.push_back(std::move(part));
        }
    }
    return values;
}

std::vector<int64_t> Arguments::integers(std::string_view name, int64_t minimum, int64_t maximum) const {
    std::vector<int64_t> numbers;
    for (const std::string& value : list(name)) {
        if (!parse_whole(value, numbers.emplace_back()) || numbers.back() < minimum || numbers.back() > maximum) {
            reject(name, fmt::format("whole numbers from {} to {}, separated by commas", minimum, maximum), value);
        }
    }
    return numbers;
}

std::vector<Arguments> Arguments::combinations(std::span<const std::string_view> names) const {
    std::vector<Arguments> made{*this};
    for (const std::string_view name : names) {
        if (!has(name)) continue;
        // A value that is a pair contains a comma.
        const Words values = flag_named(name).value.find(',') == std::string_view::npos ? list(name) : all(name);
        std::vector<Arguments> longer;
        for (const Arguments& arguments : made) {
            for (const std::string& value : values) {
                longer.push_back(arguments);
                longer.back().values_.find(name)->second = {value};
            }
        }
        made = std::move(longer);
    }
    return made;
}

std::optional<std::string> Arguments::choice(std::string_view name, std::span<const std::string_view> choices) {
    const auto given = text(name);
    if (!given) return std::nullopt;
    std::string value = single(name, *given);
    if (std::ranges::find(choices, value) == choices.end()) {
        std::string expected;
        for (size_t i = 0; i < choices.size(); ++i) {
            expected += fmt::format("{}{}", i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ", choices[i]);
        }
        reject(name, expected, *given);
    }
    return value;
}

std::string help_text(Command command) {
    constexpr size_t column = 30;  // of the descriptions
    const CommandInfo& info = info_of(command);
    std::string text = wrapped(info.summary, 0, 0) + "\n\n" + wrapped(info.usage, 0, 4) + "\n";
    for (const Group group : {Group::kGeneral, Group::kPrompt, Group::kSampling, Group::kContext, Group::kPlacement,
                              Group::kServer, Group::kMeasuring, Group::kReport}) {
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
            lines += wrapped(flag.help, column, column) + '\n';
        }
        if (!lines.empty()) text += fmt::format("\n{}:\n{}", group_title(group), lines);
    }
    std::string others;
    for (const Flag& flag : all_flags()) {
        if (!flag.of(command) || flag.standing != Standing::kIgnored) continue;
        others += fmt::format("{}{}", others.empty() ? "" : " ", flag.spellings);
    }
    if (!others.empty()) text += fmt::format("\n{}:\n  {}\n", group_title(Group::kOthers), wrapped(others, 2, 2));
    return text;
}

}  // namespace tessera::app
