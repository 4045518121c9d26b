// Compute capabilities in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// "8.6" -> 860; nothing if it is not such a text.
std::optional<uint32_t> parse_compute_capability(std::string_view text) noexcept;

// 860 -> "8.6"
std::string compute_capability_text(uint32_t capability);

}  // namespace tessera
