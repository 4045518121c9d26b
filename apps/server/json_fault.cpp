#include "apps/server/json_fault.hpp"

#include "core/base/text.hpp"
#include "core/text/utf8.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace tessera::server {
namespace {

constexpr std::string_view kHalf = "half of a surrogate pair";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Recursive descent; every function returns false after the first error.
class Reader {
  public:
    Reader(std::string_view text, size_t depth) : text_(text), depth_(depth) {}

    std::optional<JsonFault> read() {
        if (value(0)) {
            skip_space();
            if (at_ < text_.size()) fail(fmt::format("expected the end after the value, found {}", found()));
        }
        return std::move(fault_);
    }

  private:
    bool fail(std::string what) { return fail_at(at_, std::move(what)); }
    bool fail_at(size_t byte, std::string what) {
        fault_ = JsonFault{byte, std::move(what)};
        return false;
    }

    std::string_view rest() const { return text_.substr(at_); }
    bool starts(char c) const { return at_ < text_.size() && text_[at_] == c; }

    void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

    // The character that was not expected, as a message shows it.
    std::string found() const {
        if (at_ >= text_.size()) return "the end of the text";
        const text::Utf8Step step = text::utf8_step(rest());
        if (step.kind != text::Utf8Kind::kValid)
            return fmt::format("the byte 0x{:02X}, which is not UTF-8", static_cast<uint8_t>(text_[at_]));
        const std::string_view character = text_.substr(at_, step.length);
        return character == "'" ? std::string("\"'\"") : fmt::format("'{}'", printable(character));
    }

    bool value(size_t depth) {
        skip_space();
        if (at_ >= text_.size()) return fail("expected a value, found the end of the text");
        switch (text_[at_]) {
            case '{':
                return object(depth);
            case '[':
                return list(depth);
            case '"':
                return string();
            default:
                return text_[at_] == '-' || is_digit(text_[at_]) ? number() : word();
        }
    }

    bool enter(size_t depth) {
        if (depth >= depth_) return fail(fmt::format("nested deeper than {} objects and arrays", depth_));
        ++at_;
        skip_space();
        return true;
    }

    bool object(size_t depth) {
        if (!enter(depth)) return false;
        if (starts('}')) return ++at_, true;
        for (;;) {
            skip_space();
            if (!starts('"')) return fail(fmt::format("expected a key in double quotes, found {}", found()));
            if (!string()) return false;
            skip_space();
            if (!starts(':')) return fail(fmt::format("expected ':' after a key, found {}", found()));
            ++at_;
            if (!value(depth + 1)) return false;
            skip_space();
            if (starts('}')) return ++at_, true;
            if (!starts(',')) return fail(fmt::format("expected ',' or '}}' after a value, found {}", found()));
            if (!comma('}')) return false;
        }
    }

    bool list(size_t depth) {
        if (!enter(depth)) return false;
        if (starts(']')) return ++at_, true;
        for (;;) {
            if (!value(depth + 1)) return false;
            skip_space();
            if (starts(']')) return ++at_, true;
            if (!starts(',')) return fail(fmt::format("expected ',' or ']' after a value, found {}", found()));
            if (!comma(']')) return false;
        }
    }

    bool comma(char end) {
        const size_t comma = at_++;
        skip_space();
        return starts(end) ? fail_at(comma, fmt::format("a comma before '{}'; remove it", end)) : true;
    }

    // true, false, null, or what is written in their place.
    bool word() {
        for (const std::string_view known : {"true", "false", "null"}) {
            if (!rest().starts_with(known)) continue;
            const std::string_view behind = rest().substr(known.size());
            if (!behind.empty() && (is_letter(behind[0]) || is_digit(behind[0]) || behind[0] == '_')) break;
            at_ += known.size();
            return true;
        }
        for (const std::string_view known : {"true", "false", "null"}) {
            if (!rest().empty() && known.starts_with(rest()))
                return fail_at(text_.size(), fmt::format("the text ends within {}", known));
        }
        size_t length = 0;
        while (length < rest().size() && is_letter(rest()[length])) ++length;
        if (length > 0)
            return fail(
                fmt::format("expected a value, found {}; strings have double quotes, and true, false and null "
                            "small letters",
                            printable(rest().substr(0, length), 20)));
        if (starts('/')) return fail("a comment; JSON has none");
        return fail(
            fmt::format("expected a value, found {}{}", found(), starts('\'') ? "; strings have double quotes" : ""));
    }

    bool digits(std::string_view where) {
        if (at_ >= text_.size()) return fail("the text ends within a number");
        if (!is_digit(text_[at_])) return fail(fmt::format("expected a digit {}, found {}", where, found()));
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        return true;
    }

    bool number() {
        const size_t begin = at_;
        if (starts('-')) ++at_;
        const size_t first = at_;
        if (!digits("after '-'")) return false;
        if (text_[first] == '0' && at_ > first + 1) return fail_at(first, "a number that begins with 0");
        if (starts('.')) {
            ++at_;
            if (!digits("after the decimal point")) return false;
        }
        if (starts('e') || starts('E')) {
            ++at_;
            if (starts('+') || starts('-')) ++at_;
            if (!digits("in the exponent")) return false;
        }
        if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.'))
            return fail(fmt::format("expected the end of a number, found {}", found()));
        const std::string written(text_.substr(begin, at_ - begin));
        if (!std::isfinite(std::strtod(written.c_str(), nullptr)))
            return fail_at(begin, fmt::format("the number {} is larger than a double holds", printable(written, 40)));
        return true;
    }

    bool string() {
        const size_t begin = at_++;
        while (at_ < text_.size()) {
            const auto c = static_cast<uint8_t>(text_[at_]);
            if (c == '"') return ++at_, true;
            if (c == '\\') {
                if (!escape(begin)) return false;
            } else if (c < 0x20) {
                return fail(fmt::format("a control character (0x{:02X}) in a string; write it as an escape, {}", c,
                                        c == '\n'   ? "\\n"
                                        : c == '\t' ? "\\t"
                                                    : "\\u00XX"));
            } else if (c < 0x80) {
                ++at_;
            } else if (!character()) {
                return false;
            }
        }
        return unended(begin);
    }

    bool unended(size_t begin) {
        return fail_at(text_.size(), fmt::format("a string that begins at byte {} has no end", begin));
    }

    // One that is not ASCII.
    bool character() {
        const text::Utf8Step step = text::utf8_step(rest());
        if (step.kind == text::Utf8Kind::kValid) {
            at_ += step.length;
            return true;
        }
        const auto first = static_cast<uint8_t>(text_[at_]);
        // UTF-8 of 0xD800 to 0xDFFF.
        if (first == 0xED && rest().size() > 1 && static_cast<uint8_t>(rest()[1]) >= 0xA0 &&
            static_cast<uint8_t>(rest()[1]) < 0xC0)
            return fail(fmt::format("it is not UTF-8: {}, half an emoji or the like, as three bytes", kHalf));
        return fail(fmt::format(
            "it is not UTF-8: the byte 0x{:02X} {}", first,
            step.kind == text::Utf8Kind::kIncomplete ? "begins a character that the end cuts" : "begins no character"));
    }

    // The code unit of \uXXXX at `at`; nothing if there is none.
    std::optional<uint32_t> unit(size_t at) const {
        if (text_.size() - at < 6 || text_[at] != '\\' || text_[at + 1] != 'u') return std::nullopt;
        uint32_t value = 0;
        for (size_t i = at + 2; i < at + 6; ++i) {
            const char c = text_[i], low = static_cast<char>(c | 0x20);
            if (!is_digit(c) && !(low >= 'a' && low <= 'f')) return std::nullopt;
            value = value * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : low - 'a' + 10);
        }
        return value;
    }

    bool escape(size_t string_begin) {
        if (rest().size() < 2) return unended(string_begin);
        const char kind = rest()[1];
        if (kind != 'u') {
            if (std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
                ++at_;
                const std::string what = found();
                --at_;
                return fail(
                    fmt::format("a backslash before {} in a string; write \\\\ for the backslash itself", what));
            }
            at_ += 2;
            return true;
        }
        const auto first = unit(at_);
        if (!first) {
            if (rest().size() < 6 && rest().find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos)
                return unended(string_begin);
            return fail("expected four hexadecimal digits after \\u");
        }
        const bool high = *first >= 0xD800 && *first < 0xDC00, low = *first >= 0xDC00 && *first < 0xE000;
        if (low)
            return fail(
                fmt::format("{}: \\u{:04x} without the first half, \\ud83d or the like, before it", kHalf, *first));
        if (!high) {
            at_ += 6;
            return true;
        }
        const auto second = at_ + 6 < text_.size() ? unit(at_ + 6) : std::nullopt;
        if (!second || *second < 0xDC00 || *second >= 0xE000)
            return fail(
                fmt::format("{}: \\u{:04x} without the second half after it; a text was cut within a "
                            "character, as an emoji is",
                            kHalf, *first));
        at_ += 12;
        return true;
    }

    const std::string_view text_;
    const size_t depth_;
    size_t at_ = 0;
    std::optional<JsonFault> fault_;
};

}  // namespace

std::optional<JsonFault> find_json_fault(std::string_view text, size_t depth) {
    return Reader(text, depth).read();
}

std::string JsonFault::message(std::string_view text) const {
    const std::string_view before = text.substr(0, byte);
    const auto line = std::ranges::count(before, '\n') + 1;
    const size_t newline = before.rfind('\n');
    const std::string_view last = before.substr(newline == std::string_view::npos ? 0 : newline + 1);
    const auto column =
        std::ranges::count_if(last, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }) + 1;
    return fmt::format("{} (line {}, column {}, byte {})", what, line, column, byte);
}

}  // namespace tessera::server
