// Version numbers: "1.2.0", "580.65.06".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera {

// Its numbers; nothing if `text` is not one to eight numbers of up to nine digits separated by points. Vectors of them
// compare like versions.
inline std::optional<std::vector<uint32_t>> parse_version(std::string_view text) {
    std::vector<uint32_t> numbers(1, 0);
    size_t digits = 0;
    for (const char c : text) {
        if (c == '.') {
            if (digits == 0 || numbers.size() == 8) return std::nullopt;
            numbers.push_back(0);
            digits = 0;
        } else {
            if (c < '0' || c > '9' || ++digits > 9) return std::nullopt;
            numbers.back() = numbers.back() * 10 + static_cast<uint32_t>(c - '0');
        }
    }
    if (digits == 0) return std::nullopt;
    return numbers;
}

}  // namespace tessera
