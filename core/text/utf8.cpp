#include "core/text/utf8.hpp"

#include <cstring>

namespace tessera::text {

Utf8Step utf8_step(std::string_view text) noexcept {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t lead = byte(0);
    if (lead < 0x80) return {Utf8Kind::kValid, 1};
    // The second byte's range depends on the lead; later bytes are always 80..BF.
    uint8_t length = 0;
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else {
        return {Utf8Kind::kInvalid, 1};
    }
    for (uint8_t i = 1; i < length; ++i) {
        if (i >= text.size()) return {Utf8Kind::kIncomplete, i};
        if (byte(i) < low || byte(i) > high) return {Utf8Kind::kInvalid, i};
        low = 0x80;
        high = 0xBF;
    }
    return {Utf8Kind::kValid, length};
}

size_t utf8_valid_prefix(std::string_view text) noexcept {
    size_t at = 0;
    while (at < text.size()) {
        // Eight ASCII bytes at a time: most of most texts.
        uint64_t eight;
        if (text.size() - at >= sizeof eight) {
            std::memcpy(&eight, text.data() + at, sizeof eight);
            if ((eight & 0x8080808080808080ull) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        const Utf8Step step = utf8_step(text.substr(at));
        if (step.kind != Utf8Kind::kValid) return at;
        at += step.length;
    }
    return at;
}

std::string utf8_replace_invalid(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    size_t at = 0;
    while (at < text.size()) {
        const size_t valid = utf8_valid_prefix(text.substr(at));
        out.append(text.substr(at, valid));
        at += valid;
        if (at == text.size()) break;
        at += utf8_step(text.substr(at)).length;
        out += kReplacementCharacter;
    }
    return out;
}

void utf8_append(std::string& out, uint32_t code) {
    const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6);
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

uint32_t utf8_decode(std::string_view text, size_t length) noexcept {
    if (length == 1) return static_cast<uint8_t>(text[0]);
    uint32_t code = static_cast<uint8_t>(text[0]) & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3Fu);
    return code;
}

}  // namespace tessera::text
