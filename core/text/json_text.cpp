#include "core/text/json_text.hpp"

#include "core/text/utf8.hpp"

#include <algorithm>
#include <charconv>

namespace tessera::text {
namespace {

// Four hexadecimal digits at text[at].
std::optional<uint32_t> hex4(std::string_view text, size_t at) {
    uint32_t value = 0;
    if (text.size() < at + 4) return std::nullopt;
    const char* end = text.data() + at + 4;
    const auto [stop, error] = std::from_chars(text.data() + at, end, value, 16);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
}

}  // namespace

size_t json_spaces(std::string_view text) {
    size_t count = 0;
    while (count < text.size() && is_json_space(text[count])) ++count;
    return count;
}

std::string_view without_space(std::string_view text) {
    text.remove_prefix(json_spaces(text));
    while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
    return text;
}

void append_json_characters(std::string& out, std::string_view text) {
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\b':
                out += "\\b";
                break;
            case '\f':
                out += "\\f";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                if (byte < 0x20) {
                    constexpr std::string_view digits = "0123456789abcdef";
                    out += "\\u00";
                    out += digits[byte >> 4];
                    out += digits[byte & 15];
                } else {
                    out += c;
                }
        }
    }
}

std::optional<std::string> json_characters(std::string_view raw) {
    std::string out;
    for (size_t i = 0; i < raw.size(); ++i) {
        const char c = raw[i];
        if (static_cast<uint8_t>(c) < 0x20 || c == '"') return std::nullopt;
        if (c != '\\') {
            out += c;
            continue;
        }
        if (++i == raw.size()) return std::nullopt;
        constexpr std::string_view letters = "\"\\/bfnrt";
        constexpr std::string_view characters = "\"\\/\b\f\n\r\t";
        if (const size_t at = letters.find(raw[i]); at != letters.npos) {
            out += characters[at];
            continue;
        }
        if (raw[i] != 'u') return std::nullopt;
        auto code = hex4(raw, i + 1);
        if (!code) return std::nullopt;
        i += 4;
        if (*code >= 0xD800 && *code < 0xDC00 && raw.substr(i + 1).starts_with("\\u")) {
            const auto low = hex4(raw, i + 3);
            if (low && *low >= 0xDC00 && *low < 0xE000) {
                code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
                i += 6;
            }
        }
        if (*code >= 0xD800 && *code < 0xE000) return std::nullopt;  // half of a character
        utf8_append(out, *code);
    }
    return out;
}

}  // namespace tessera::text
