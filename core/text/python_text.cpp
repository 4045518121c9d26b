#include "core/text/python_text.hpp"

#include "core/text/utf8.hpp"

#include <algorithm>
#include <cstdint>

namespace tessera::text {
namespace {

// What str.isspace() holds for.
bool is_python_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

std::string_view python_strip(std::string_view text, bool left, bool right,
                              std::optional<std::string_view> characters) {
    const auto drops = [&](std::string_view character) {
        return characters ? characters->find(character) != std::string_view::npos
                          : is_python_space(utf8_decode(character, character.size()));
    };
    while (left && !text.empty()) {
        const Utf8Step step = utf8_step(text);
        if (step.kind != Utf8Kind::kValid || !drops(text.substr(0, step.length))) break;
        text.remove_prefix(step.length);
    }
    while (right && !text.empty()) {
        size_t at = text.size() - 1;
        while (at > 0 && text.size() - at < 4 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
        const std::string_view last = text.substr(at);
        const Utf8Step step = utf8_step(last);
        if (step.kind != Utf8Kind::kValid || step.length != last.size() || !drops(last)) break;
        text.remove_suffix(last.size());
    }
    return text;
}

size_t character_place(std::string_view text, size_t character) {
    size_t at = 0;
    for (; character > 0 && at < text.size(); --character) {
        const Utf8Step step = utf8_step(text.substr(at));
        at += step.kind == Utf8Kind::kValid ? step.length : 1;
    }
    return at;
}

size_t character_count(std::string_view text) {
    size_t count = 0;
    for (; !text.empty(); ++count) text.remove_prefix(character_place(text, 1));
    return count;
}

}  // namespace tessera::text
