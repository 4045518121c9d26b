// The byte-level alphabet of GPT-2's BPE: each of the 256 bytes is written as one printable character, so that a
// vocabulary is a list of ordinary strings. Bytes 21..7E, A1..AC and AE..FF are themselves (as Latin-1); the
// other 68 are U+0100, U+0101, ... in ascending order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::text {

// The character for `byte`.
uint32_t byte_level_character(uint8_t byte) noexcept;

// The bytes for `spelling`; nothing if it is not UTF-8 or has a character outside the alphabet.
std::optional<std::string> byte_level_decode(std::string_view spelling);

// Bytes in their spelling.
std::string byte_level_encode(std::string_view bytes);

}  // namespace tessera::text
