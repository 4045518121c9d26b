// Names of plugins and of what they bring. They appear in reports, on command lines and in lines that processes
// exchange, so they hold nothing that such a place could take for something else.
#pragma once

#include <algorithm>
#include <string_view>

namespace tessera {

inline constexpr std::string_view kNameRule = "1 to 64 letters, digits, '_', '-' and '.'";

inline bool is_name(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    });
}

}  // namespace tessera
