// Devices as files describe them.
#pragma once

#include "core/base/toml.hpp"
#include "core/hardware/hardware.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// Name, compute_capability, memory and link of a GPU; its kind and id are the caller's. Leaves other keys to the
// caller. Throws Error(TSR_CORRUPT_DATA) naming file, line and key.
DeviceDescription read_gpu(TomlFile::Table& table);

// "8.6" -> 860; nothing if it is not of that form.
std::optional<uint32_t> parse_compute_capability(std::string_view text) noexcept;

// 860 -> "8.6"
std::string compute_capability_text(uint32_t capability);

}  // namespace tessera
