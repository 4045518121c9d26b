#include "core/hardware/compute_capability.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera {

std::optional<uint32_t> parse_compute_capability(std::string_view text) noexcept {
    uint32_t numbers[2] = {};
    const size_t point = text.find('.');
    if (point == 0 || point > 3 || point + 2 != text.size()) return std::nullopt;
    for (size_t i = 0; i < text.size(); ++i) {
        if (i == point) continue;
        if (text[i] < '0' || text[i] > '9') return std::nullopt;
        uint32_t& number = numbers[i > point];
        number = number * 10 + static_cast<uint32_t>(text[i] - '0');
    }
    if (numbers[0] == 0) return std::nullopt;
    return 100 * numbers[0] + 10 * numbers[1];
}

std::string compute_capability_text(uint32_t capability) {
    return fmt::format("{}.{}", capability / 100, capability % 100 / 10);
}

}  // namespace tessera
