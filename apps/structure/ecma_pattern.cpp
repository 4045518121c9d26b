#include "apps/structure/ecma_pattern.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tessera::structure {
namespace {

// What \s is beside the ASCII blanks.
constexpr std::string_view kSpaces =
    R"(\t\n\x0b\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff})";

class Translator {
  public:
    explicit Translator(std::string_view pattern) : pattern_(pattern) {}

    std::string run() {
        while (at_ < pattern_.size()) term();
        return std::move(out_);
    }

  private:
    [[noreturn]] void refuse(std::string_view what) const {
        fail(TSR_INVALID_ARGUMENT, "the pattern '{}': {}, at '{}'", printable(pattern_, 60), what,
             printable(pattern_.substr(std::min(at_, pattern_.size())), 20));
    }

    bool takes(std::string_view text) {
        if (!pattern_.substr(at_).starts_with(text)) return false;
        at_ += text.size();
        return true;
    }

    char next() {
        if (at_ == pattern_.size()) refuse("it ends too early");
        return pattern_[at_++];
    }

    void term() {
        const char c = pattern_[at_];
        const bool after_term = std::exchange(after_term_, false);
        switch (c) {
            case '(':
                group();
                return;
            case '[':
                ++at_;
                char_class();
                break;
            case '\\':
                ++at_;
                out_ += escape(false);
                break;
            case '.':
                ++at_;
                out_ += R"([^\n\r\x{2028}\x{2029}])";
                break;
            case '*':
            case '+':
            case '?':
            case '{':
                if (!after_term) refuse("nothing is there to be repeated");
                repetition();
                return;
            case '}':
            case ']':
                refuse("it is not valid");
            case '|':
            case '^':
            case '$':
                out_ += c;
                ++at_;
                return;
            case ')':
                out_ += c;
                ++at_;
                break;
            default:
                out_ += c;
                ++at_;
                // The other bytes of the character.
                while (at_ < pattern_.size() && (pattern_[at_] & 0xc0) == 0x80) out_ += pattern_[at_++];
        }
        after_term_ = true;
    }

    void group() {
        for (const std::string_view look : {"(?=", "(?!", "(?<=", "(?<!"}) {
            if (pattern_.substr(at_).starts_with(look)) refuse("what looks ahead or behind cannot be held to");
        }
        if (takes("(?<") || takes("(?P<")) {
            while (next() != '>') {
            }
        } else if (!takes("(?:")) {
            ++at_;
            if (pattern_.substr(at_).starts_with('?')) refuse("it is not valid");
        }
        out_ += "(?:";
    }

    void repetition() {
        const size_t begin = at_;
        if (next() == '{') {
            const auto digits = [&] {
                const size_t first = at_;
                while (at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9') ++at_;
                return at_ - first;
            };
            if (digits() == 0) refuse("it is not valid");
            if (takes(",")) digits();
            if (!takes("}")) refuse("it is not valid");
        }
        out_ += pattern_.substr(begin, at_ - begin);
        takes("?");  // whether it prefers few changes nothing of what matches
    }

    static std::string code_point(uint32_t value) { return fmt::format("\\x{{{:x}}}", value); }

    uint32_t hexadecimal(size_t least, size_t most) {
        uint32_t value = 0;
        size_t count = 0;
        for (; count < most && at_ < pattern_.size(); ++count) {
            const char c = static_cast<char>(pattern_[at_] | 0x20);
            if (pattern_[at_] >= '0' && pattern_[at_] <= '9') {
                value = value * 16 + static_cast<uint32_t>(pattern_[at_] - '0');
            } else if (c >= 'a' && c <= 'f') {
                value = value * 16 + static_cast<uint32_t>(c - 'a' + 10);
            } else {
                break;
            }
            ++at_;
        }
        if (count < least) refuse("it is not valid");
        return value;
    }

    uint32_t unicode_escape() {
        if (takes("{")) {
            const uint32_t value = hexadecimal(1, 6);
            if (!takes("}") || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) refuse("it is no character");
            return value;
        }
        const uint32_t high = hexadecimal(4, 4);
        if (high < 0xd800 || high >= 0xe000) return high;
        if (high >= 0xdc00 || !takes("\\u")) refuse("it is half a character");
        const uint32_t low = hexadecimal(4, 4);
        if (low < 0xdc00 || low >= 0xe000) refuse("it is half a character");
        return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }

    // Behind the backslash. `single`: set to the character, if it is one.
    std::string escape(bool in_class, std::optional<uint32_t>* single = nullptr) {
        const auto one = [&](uint32_t value) {
            if (single) *single = value;
            return code_point(value);
        };
        const char c = next();
        switch (c) {
            case 'd':
                return "[0-9]";
            case 'D':
                return "[^0-9]";
            case 'w':
                return "[A-Za-z0-9_]";
            case 'W':
                return "[^A-Za-z0-9_]";
            case 's':
                return fmt::format("[{}]", kSpaces);
            case 'S':
                return fmt::format("[^{}]", kSpaces);
            case 't':
                return one('\t');
            case 'n':
                return one('\n');
            case 'v':
                return one('\v');
            case 'f':
                return one('\f');
            case 'r':
                return one('\r');
            case '0':
                return one(0);
            case 'x':
                return one(hexadecimal(2, 2));
            case 'u':
                return one(unicode_escape());
            case 'p':
            case 'P': {
                const size_t begin = at_;
                if (!takes("{")) refuse("it is not valid");
                while (next() != '}') {
                }
                return fmt::format("\\{}{}", c, pattern_.substr(begin, at_ - begin));
            }
            case 'b':
                if (in_class) return one('\b');
                [[fallthrough]];
            case 'B':
                refuse("borders of words cannot be held to");
            default:
                break;
        }
        if (c >= '1' && c <= '9') refuse("what refers back cannot be held to");
        constexpr std::string_view kSyntax = R"(^$\.*+?()[]{}|/-)";
        // Without the flag u more characters may be escaped, which stand for themselves.
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
        if (letter && kSyntax.find(c) == kSyntax.npos) refuse("an escape that is not known");
        return one(static_cast<unsigned char>(c));
    }

    // Behind the bracket.
    void char_class() {
        const bool negated = takes("^");
        if (takes("]")) {
            if (!negated) refuse("a class of no characters");
            out_ += "(?s:.)";
            return;
        }
        std::string made = negated ? "[^" : "[";
        while (!takes("]")) {
            std::optional<uint32_t> first, last;
            std::string item = class_item(first);
            if (first && pattern_.substr(at_).starts_with('-') && !pattern_.substr(at_).starts_with("-]")) {
                ++at_;
                class_item(last);
                if (!last || *last < *first) refuse("a range that is not valid");
                item += '-' + code_point(*last);
            }
            made += item;
        }
        out_ += made + ']';
    }

    std::string class_item(std::optional<uint32_t>& single) {
        if (takes("\\")) return escape(true, &single);
        const unsigned char c = static_cast<unsigned char>(next());
        const int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        uint32_t value = c < 0x80 ? c : c & (0x3fu >> more);
        for (int i = 0; i < more; ++i) value = value << 6 | (static_cast<unsigned char>(next()) & 0x3fu);
        single = value;
        return code_point(value);
    }

    const std::string_view pattern_;
    size_t at_ = 0;
    bool after_term_ = false;
    std::string out_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern) {
    // pydantic's Decimal, whose look-ahead only demands a digit.
    if (pattern == R"(^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$)") pattern = R"(^[+-]?(?:\d+\.?\d*|\.\d+)$)";
    if (!is_utf8(pattern)) fail(TSR_INVALID_ARGUMENT, "the pattern is not UTF-8");
    return Translator(pattern).run();
}

std::string whole_pattern(std::string_view translated) {
    constexpr std::string_view kAnything = "(?s:.*)";
    std::string made, part;
    bool begun = false, ended = false;
    const auto end_alternative = [&] {
        if (!made.empty()) made += '|';
        made += fmt::format("{}(?:{}){}", begun ? "" : kAnything, part, ended ? "" : kAnything);
        part.clear();
        begun = ended = false;
    };
    const auto refuse = [&] {
        fail(TSR_INVALID_ARGUMENT, "the pattern '{}': ^ or $ within it cannot be held to", printable(translated, 60));
    };
    size_t depth = 0;
    bool in_class = false;
    for (size_t i = 0; i < translated.size(); ++i) {
        const char c = translated[i];
        if (c == '|' && depth == 0 && !in_class) {
            end_alternative();
            continue;
        }
        if (!in_class && c == '^') {
            if (depth > 0 || !part.empty() || begun) refuse();
            begun = true;
            continue;
        }
        if (!in_class && c == '$') {
            if (depth > 0 || ended) refuse();
            ended = true;
            continue;
        }
        if (ended) refuse();
        part += c;
        if (c == '\\') {
            if (i + 1 < translated.size()) part += translated[++i];
        } else if (in_class) {
            in_class = c != ']';
        } else if (c == '[') {
            in_class = true;
        } else if (c == '(') {
            ++depth;
        } else if (c == ')') {
            if (depth == 0) refuse();
            --depth;
        }
    }
    end_alternative();
    return made;
}

}  // namespace tessera::structure
