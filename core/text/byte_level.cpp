#include "core/text/byte_level.hpp"

#include "core/text/utf8.hpp"

#include <array>

namespace tessera::text {
namespace {

constexpr uint32_t kAlphabetEnd = 0x100 + 68;

struct Alphabet {
    std::array<uint16_t, 256> character{};
    std::array<int16_t, kAlphabetEnd> byte{};

    constexpr Alphabet() {
        byte.fill(-1);
        uint16_t next = 0x100;
        for (int b = 0; b < 256; ++b) {
            const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
            const uint16_t c = printable ? static_cast<uint16_t>(b) : next++;
            character[b] = c;
            byte[c] = static_cast<int16_t>(b);
        }
    }
};

constexpr Alphabet kAlphabet;

}  // namespace

uint32_t byte_level_character(uint8_t byte) noexcept {
    return kAlphabet.character[byte];
}

std::optional<std::string> byte_level_decode(std::string_view spelling) {
    std::string bytes;
    bytes.reserve(spelling.size());
    while (!spelling.empty()) {
        const Utf8Step step = utf8_step(spelling);
        if (step.kind != Utf8Kind::kValid) return std::nullopt;
        const uint32_t code = utf8_decode(spelling, step.length);
        if (code >= kAlphabetEnd || kAlphabet.byte[code] < 0) return std::nullopt;
        bytes.push_back(static_cast<char>(kAlphabet.byte[code]));
        spelling.remove_prefix(step.length);
    }
    return bytes;
}

std::string byte_level_encode(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size() * 2);
    for (const char b : bytes) utf8_append(out, byte_level_character(static_cast<uint8_t>(b)));
    return out;
}

}  // namespace tessera::text
