#include "apps/flags/flag.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
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

}  // namespace

std::vector<std::string_view> spellings_of(const Flag& flag) {
    return words_of(flag.spellings);
}

std::string_view shown(const Flag& flag) noexcept {
    return flag.spellings.substr(0, flag.spellings.find(' '));
}

std::vector<std::string_view> variables_of(const Flag& flag) {
    return words_of(flag.variables);
}

bool Flag::spelled_as(std::string_view word) const {
    std::string dashed(word);
    std::ranges::replace(dashed, '_', '-');
    return std::ranges::any_of(spellings_of(*this), [&](std::string_view spelling) {
        return dashed == spelling || (spelling.starts_with("--") && dashed == spelling.substr(1));
    });
}

bool Flag::asks_nothing(std::string_view text) const {
    if (text.empty()) return takes != Takes::kNothing;
    const std::optional<double> number = number_of(text);
    return std::ranges::any_of(words_of(neutral), [&](std::string_view word) {
        return word == text || (number && number_of(word) == number);
    });
}

}  // namespace tessera::app
