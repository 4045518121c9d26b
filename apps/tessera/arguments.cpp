#include "apps/tessera/arguments.hpp"

#include "apps/tessera/command_words.hpp"
#include "apps/tessera/flag_values.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::app {
namespace {

using Words = std::vector<std::string>;

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

// By the names of the table.
std::string opposite_of(std::string_view name) {
    return name.starts_with("no-") ? std::string(name.substr(3)) : fmt::format("no-{}", name);
}

}  // namespace

Arguments::Arguments(Command command, std::span<const std::string> words, std::span<const GivenFlag> environment)
    : command_(command) {
    const std::vector<GivenFlag> typed = read_words(command, words);
    std::string used;
    for (const GivenFlag& given : environment) {
        const bool is_typed = std::ranges::any_of(typed, [&](const GivenFlag& one) {
            return one.flag->name == given.flag->name || one.flag->name == opposite_of(given.flag->name);
        });
        if (is_typed) continue;
        if (given.flag->standing == Standing::kSupported)
            used += fmt::format("{}{}", used.empty() ? "" : ", ", given.typed);
        add(given);
    }
    if (!used.empty()) remark(fmt::format("read from the environment: {}", used));
    for (const GivenFlag& given : typed) add(given);
}

void Arguments::add(const GivenFlag& given) {
    const Flag& flag = *given.flag;
    if (const std::string reason = idle_reason(flag, command_); !reason.empty()) {
        remark_once(fmt::format("{}: {}", given.typed, reason));
        return;
    }
    if (flag.standing == Standing::kIgnored) remark_once(fmt::format("{}: {}", given.typed, flag.help));
    if (!given.typed.empty()) typed_.insert_or_assign(std::string(flag.name), given.typed);
    values_[std::string(flag.name)].push_back(given.value);
    places_[std::string(flag.name)] = ++given_;
}

void Arguments::set(std::string_view name) {
    values_.insert_or_assign(std::string(name), Words{"1"});
    places_.insert_or_assign(std::string(name), ++given_);
}

void Arguments::remark(std::string_view line) {
    remark_once(as_typed(line));
}

void Arguments::remark_once(std::string line) {
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
    return typed(name, shown(flag_named(name)));
}

std::string_view Arguments::typed(std::string_view name, std::string_view otherwise) const {
    const auto at = typed_.find(name);
    return at == typed_.end() ? otherwise : std::string_view(at->second);
}

std::string Arguments::as_typed(std::string_view message) const {
    if (!message.starts_with('-')) return std::string(message);
    const size_t colon = std::min(message.find(": "), message.size());
    // Words before the colon; each may end with a comma.
    std::string text;
    for (const std::string& word : split(message.substr(0, colon), ' ')) {
        const std::string_view name = std::string_view(word).substr(0, word.find(','));
        const Flag* const flag = find_flag(name, command_);
        text += fmt::format("{}{}{}", text.empty() ? "" : " ", flag ? typed(flag->name, name) : name,
                            std::string_view(word).substr(name.size()));
    }
    return text + std::string(message.substr(colon));
}

void Arguments::reject(std::string_view name, std::string_view expected, std::string_view found) const {
    throw UsageError(fmt::format("{}: expected {}, found '{}'", typed(name), expected, printable(found, 60)));
}

void Arguments::set_members(const void* owner, void* object) {
    std::map<size_t, const Flag*> setters;
    for (const Flag& flag : all_flags()) {
        if (flag.setter.owner == owner && flag.of(command_) && has(flag.name))
            setters.emplace(places_.find(flag.name)->second, &flag);
    }
    for (const auto& [place, flag] : setters) {
        const Words given = all(flag->name);
        for (const std::string& text : flag->repeats ? std::span(given) : std::span(&given.back(), 1)) {
            try {
                flag->setter.set(object, single(flag->name, text), flag->value);
            } catch (const WrongValue& wrong) {
                reject(flag->name, wrong.what(), text);
            } catch (const RefusedValue& refused) {
                throw UsageError(fmt::format("{}: {}", typed(flag->name), refused.what()));
            }
        }
    }
}

std::string Arguments::single(std::string_view name, const std::string& value) {
    const size_t comma = value.find(',');
    if (comma == std::string::npos || !flag_named(name).several) return value;
    std::string first = value.substr(0, comma);
    remark(fmt::format("{} takes one value; using {}", typed(name), printable(first, 60)));
    return first;
}

template <typename Parse>
auto Arguments::value_of(std::string_view name, const Parse& parse)
    -> std::optional<decltype(parse(std::string_view()))> {
    const auto given = text(name);
    if (!given) return std::nullopt;
    try {
        return parse(single(name, *given));
    } catch (const WrongValue& wrong) {
        reject(name, wrong.what(), *given);
    }
}

std::optional<int64_t> Arguments::integer(std::string_view name, int64_t minimum, int64_t maximum) {
    return value_of(name, [&](std::string_view text) { return parse_integer(text, minimum, maximum); });
}

std::optional<double> Arguments::number(std::string_view name, double minimum, double maximum) {
    return value_of(name, [&](std::string_view text) { return parse_number(text, minimum, maximum); });
}

std::optional<std::vector<double>> Arguments::numbers(std::string_view name, double minimum) {
    return value_of(name, [&](std::string_view text) { return parse_numbers(text, minimum); });
}

std::optional<bool> Arguments::on_off(std::string_view name) {
    return value_of(name, parse_switch);
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

std::optional<std::string> Arguments::choice(std::string_view name) {
    return value_of(name, [&](std::string_view text) { return parse_choice(text, flag_named(name).value); });
}

}  // namespace tessera::app
