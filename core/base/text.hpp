// Small helpers for text that people read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// "4392.0 MiB".
std::string mebibytes(uint64_t bytes);

// "1.2 GiB", "24.0 MiB", "512 bytes".
std::string size_text(uint64_t bytes);
// "1,234,567".
std::string grouped(uint64_t number);
// "1 layer", "27 layers".
std::string counted(uint64_t count, std::string_view noun);

// "a, b, c".
template <typename Texts>
std::string joined(const Texts& texts, std::string_view between = ", ") {
    std::string all;
    for (const auto& text : texts) {
        if (!all.empty()) all += between;
        all += text;
    }
    return all;
}

// Well-formed UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

// `text` escaped for a message or a terminal: control characters and bytes that are not UTF-8 become \xNN, and a text
// longer than `limit` bytes is cut and ends in "...".
std::string printable(std::string_view text, size_t limit = 200);

// `text` in lines of at most `width` columns, broken at blanks; all lines but the first begin with `indent` blanks, and
// the first one begins at column `at`. A word that is longer than a line is not broken.
std::string wrapped(std::string_view text, size_t at, size_t indent, size_t width = 80);

}  // namespace tessera
