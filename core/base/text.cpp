#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera {
namespace {

// Bytes of the well-formed sequence that `text` starts with, or 0 (RFC 3629, section 4).
size_t sequence_length(std::string_view text) noexcept {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
    if (text.empty()) return 0;
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
    if (lead >= 0xE0 && lead <= 0xEF) {
        if (!tail(1) || !tail(2)) return 0;
        if (lead == 0xE0 && byte(1) < 0xA0) return 0;
        if (lead == 0xED && byte(1) > 0x9F) return 0;
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        if (lead == 0xF0 && byte(1) < 0x90) return 0;
        if (lead == 0xF4 && byte(1) > 0x8F) return 0;
        return 4;
    }
    return 0;
}

}  // namespace

std::string mebibytes(uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string size_text(uint64_t bytes) {
    if (bytes >= uint64_t{10} << 30)
        return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
    if (bytes >= 1 << 20) return mebibytes(bytes);
    if (bytes >= 1 << 10) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
    return fmt::format("{} bytes", bytes);
}

std::string grouped(uint64_t number) {
    std::string digits = std::to_string(number);
    for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
    return digits;
}

std::string counted(uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const size_t length = sequence_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string printable(std::string_view text, size_t limit) {
    std::string out;
    out.reserve(std::min(text.size(), limit) + 3);
    while (!text.empty()) {
        const unsigned char lead = static_cast<unsigned char>(text.front());
        const size_t length = sequence_length(text);
        const bool high_control = length == 2 && lead == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
        const bool plain = length > 0 && lead >= 0x20 && lead != 0x7F && !high_control;
        const size_t step = plain ? length : 1;
        const size_t width = plain ? step : 4;
        if (out.size() + width > limit) return out + "...";
        if (plain) {
            out += text.substr(0, step);
        } else {
            out += fmt::format("\\x{:02x}", lead);
        }
        text.remove_prefix(step);
    }
    return out;
}

std::string wrapped(std::string_view text, size_t at, size_t indent, size_t width) {
    std::string out;
    for (bool first = true; !text.empty(); first = false) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!first && at + 1 + word.size() > width) {
            out += '\n' + std::string(indent, ' ');
            at = indent;
        } else if (!first) {
            out += ' ';
            ++at;
        }
        out += word;
        at += word.size();
    }
    return out;
}

}  // namespace tessera
