#include "apps/server/json_text.hpp"

#include "core/text/utf8.hpp"

#include <charconv>
#include <cmath>

namespace tessera::server {

void append_json(std::string& out, std::string_view text) {
    constexpr char digits[] = "0123456789abcdef";
    out += '"';
    while (!text.empty()) {
        const auto c = static_cast<unsigned char>(text[0]);
        size_t length = 1;
        if (c == '"' || c == '\\') {
            out += '\\';
            out += text[0];
        } else if (c == '\n') {
            out += "\\n";
        } else if (c < 0x20 || c == 0x7f) {
            out += "\\u00";
            out += digits[c >> 4];
            out += digits[c & 15];
        } else if (c < 0x80) {
            out += text[0];
        } else {
            const text::Utf8Step step = text::utf8_step(text);
            length = step.length;
            out += step.kind == text::Utf8Kind::kValid ? text.substr(0, length) : text::kReplacementCharacter;
        }
        text.remove_prefix(length);
    }
    out += '"';
}

std::string json_string(std::string_view text) {
    std::string out;
    append_json(out, text);
    return out;
}

void append_json(std::string& out, double number) {
    if (!std::isfinite(number)) {
        out += "null";
        return;
    }
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
    out.append(digits, error == std::errc() ? end : digits);
}

}  // namespace tessera::server
