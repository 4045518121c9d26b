#include "apps/tessera/screen_layout.hpp"

#include "core/text/utf8.hpp"

#include <algorithm>
#include <cwchar>

namespace tessera::app {

ScreenPlace place_after(std::string_view text, size_t columns) {
    constexpr size_t tab = 8;
    ScreenPlace place;
    const auto advance = [&](size_t width) {
        // A wide character is not broken.
        if (place.column + width > columns) place = {place.row + 1, 0};
        place.column += width;
        if (place.column >= columns) place = {place.row + 1, 0};
    };
    while (!text.empty()) {
        const text::Utf8Step step = text::utf8_step(text);
        const auto code = step.kind == text::Utf8Kind::kValid ? text::utf8_decode(text, step.length) : 0xFFFDu;
        text.remove_prefix(std::max<size_t>(step.length, 1));
        if (code == '\n') {
            place = {place.row + 1, 0};
        } else if (code == '\t') {
            do {
                advance(1);
            } while (place.column % tab != 0);
        } else if (code < 0x20 || code == 0x7F) {
            advance(2);
        } else {
            advance(static_cast<size_t>(std::max(wcwidth(static_cast<wchar_t>(code)), 0)));
        }
    }
    return place;
}

}  // namespace tessera::app
