#include "apps/flags/setter.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace tessera::app {
namespace {

template <typename T>
bool parse(std::string_view text, T& value) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool parse_whole(std::string_view text, int64_t& value) {
    return parse(text, value);
}
bool parse_whole(std::string_view text, double& value) {
    return parse(text, value);
}

bool parse_switch(std::string_view text) {
    constexpr std::array<std::string_view, 4> yes = {"on", "1", "true", "auto"};
    constexpr std::array<std::string_view, 3> no = {"off", "0", "false"};
    if (std::ranges::find(yes, text) != yes.end()) return true;
    if (std::ranges::find(no, text) == no.end()) throw WrongValue("on, off, auto, 1 or 0");
    return false;
}

int64_t parse_integer(std::string_view text, int64_t minimum, int64_t maximum) {
    int64_t value = 0;
    if (!parse_whole(text, value) || value < minimum || value > maximum)
        throw WrongValue(fmt::format("a whole number from {} to {}", minimum, maximum));
    return value;
}

double parse_number(std::string_view text, double minimum, double maximum) {
    double value = 0;
    if (!parse_whole(text, value) || !(value >= minimum && value <= maximum))
        throw WrongValue(fmt::format("a number from {} to {}", minimum, maximum));
    return value;
}

std::string parse_choice(std::string_view text, std::string_view choices) {
    const std::vector<std::string> all = split(choices, '|');
    if (std::ranges::find(all, text) != all.end()) return std::string(text);
    std::string expected;
    for (size_t i = 0; i < all.size(); ++i)
        expected += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " or " : ", ", all[i]);
    throw WrongValue(expected);
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

}  // namespace tessera::app
