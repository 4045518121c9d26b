#include "core/text/jinja/lexer.hpp"

#include "core/base/error.hpp"
#include "core/text/python_text.hpp"
#include "core/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace tessera::text::jinja {
namespace {

using Kind = Lexeme::Kind;

bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
// Beyond ASCII, most of what is not a name is not used at all.
bool is_name(char c) {
    return static_cast<unsigned char>(c) >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           is_digit(c);
}

}  // namespace

std::string with_plain_lines(std::string_view program) {
    std::string out;
    out.reserve(program.size());
    for (size_t i = 0; i < program.size(); ++i) {
        if (program[i] == '\r') {
            out += '\n';
            if (i + 1 < program.size() && program[i + 1] == '\n') ++i;
        } else {
            out += program[i];
        }
    }
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

namespace {

class Lexer {
  public:
    explicit Lexer(std::string_view program) : program_(program), rest_(program) {}

    std::vector<Lexeme> lex() {
        while (!rest_.empty()) {
            read_text();
            if (rest_.empty()) break;
            if (rest_.starts_with("{#")) {
                skip_comment();
            } else if (const size_t length = raw_tag(rest_, "raw"); length > 0) {
                read_raw(length);
            } else {
                read_tag();
            }
        }
        add(Kind::kEnd, "");
        return std::move(out_);
    }

  private:
    [[noreturn]] void refuse(const char* what) const { fail(TSR_UNSUPPORTED, "line {}: {}", line_, what); }

    size_t place() const { return program_.size() - rest_.size(); }
    void add(Kind kind, std::string text, size_t length = 0) {
        out_.push_back({kind, std::move(text), line_, place(), place() + length});
    }
    void skip(size_t length) {
        line_ += static_cast<uint32_t>(std::ranges::count(rest_.substr(0, length), '\n'));
        rest_.remove_prefix(length);
    }
    char at(size_t i) const { return i < rest_.size() ? rest_[i] : '\0'; }

    // Up to the next tag, without what the tags around it trim.
    void read_text() {
        size_t end = 0;
        while (end < rest_.size() &&
               !(rest_[end] == '{' && (at(end + 1) == '{' || at(end + 1) == '%' || at(end + 1) == '#')))
            ++end;
        std::string_view text = rest_.substr(0, end);
        const char tag = at(end + 1), mark = at(end + 2);
        if (end < rest_.size() && mark == '-') {
            text = python_strip(text, false, true);
        } else if (end < rest_.size() && mark != '+' && tag != '{') {
            const size_t line = text.rfind('\n') + 1;  // 0 without one
            if ((line > 0 || line_begins_) && python_strip(text.substr(line), true, false).empty())
                text = text.substr(0, line);
        }
        const bool any = end > 0;
        if (!text.empty()) add(Kind::kText, std::string(text));
        if (any) line_begins_ = rest_[end - 1] == '\n';
        skip(end);
    }

    // After a tag: what its end trims.
    void trim_after(bool dash, bool line_break) {
        size_t length = 0;
        if (dash) {
            length = rest_.size() - python_strip(rest_, true, false).size();
        } else if (line_break && at(0) == '\n') {
            length = 1;
        }
        line_begins_ = length > 0 && rest_[length - 1] == '\n';
        skip(length);
    }

    void skip_comment() {
        const size_t end = rest_.find("#}", 2);
        if (end == std::string_view::npos) refuse("a comment that does not end");
        const char mark = end > 2 ? rest_[end - 1] : '\0';
        skip(end + 2);
        trim_after(mark == '-', mark != '+');
    }

    // Bytes of the tag {% word %} at the start of the text; 0: it is another.
    static size_t raw_tag(std::string_view text, std::string_view word) {
        if (!text.starts_with("{%")) return 0;
        size_t at = 2;
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        const auto skip_spaces = [&] {
            while (at < text.size() && is_blank(text[at])) ++at;
        };
        skip_spaces();
        if (!text.substr(at).starts_with(word)) return 0;
        at += word.size();
        skip_spaces();
        if (at < text.size() && (text[at] == '-' || (text[at] == '+' && word == "endraw"))) ++at;
        return text.substr(at).starts_with("%}") ? at + 2 : 0;
    }

    void read_raw(size_t length) {
        const bool dash = rest_[length - 3] == '-';
        skip(length);
        if (dash) skip(rest_.size() - python_strip(rest_, true, false).size());
        size_t end = rest_.find("{%");
        while (end != rest_.npos && raw_tag(rest_.substr(end), "endraw") == 0) end = rest_.find("{%", end + 1);
        if (end == rest_.npos) refuse("raw text that does not end");
        const size_t tag = raw_tag(rest_.substr(end), "endraw");
        std::string_view text = rest_.substr(0, end);
        const char before = rest_[end + 2], after = rest_[end + tag - 3];
        if (before == '-') {
            text = python_strip(text, false, true);
        } else if (before != '+') {
            const size_t line = text.rfind('\n') + 1;
            if (line > 0 && python_strip(text.substr(line), true, false).empty()) text = text.substr(0, line);
        }
        if (!text.empty()) add(Kind::kText, std::string(text));
        skip(end + tag);
        trim_after(after == '-', after != '+');
    }

    void read_tag() {
        const bool block = rest_[1] == '%';
        add(block ? Kind::kBlockBegin : Kind::kPrintBegin, "");
        skip(at(2) == '-' || at(2) == '+' ? 3 : 2);
        const std::string_view end = block ? "%}" : "}}";
        std::string brackets;
        while (true) {
            size_t spaces = 0;
            while (is_blank(at(spaces))) ++spaces;
            skip(spaces);
            if (rest_.empty()) refuse("a tag that does not end");
            if (brackets.empty()) {
                const bool dash = at(0) == '-' && rest_.substr(1).starts_with(end);
                const bool plus = block && at(0) == '+' && rest_.substr(1).starts_with(end);
                if (dash || plus || rest_.starts_with(end)) {
                    add(block ? Kind::kBlockEnd : Kind::kPrintEnd, "", dash || plus ? 3 : 2);
                    skip(dash || plus ? 3 : 2);
                    trim_after(dash, block && !plus);
                    return;
                }
            }
            read_lexeme(brackets);
        }
    }

    void read_lexeme(std::string& brackets) {
        const char c = rest_.front();
        size_t length = 1;
        if (c == '\'' || c == '"') return read_string(c);
        if (is_digit(c)) return read_number();
        if (is_name(c)) {
            while (is_name(at(length))) ++length;
            add(Kind::kName, std::string(rest_.substr(0, length)), length);
            return skip(length);
        }
        constexpr std::array<std::string_view, 22> symbols = {"==", "!=", "<=", ">=", "//", "**", "<", ">",
                                                              "=",  "+",  "-",  "*",  "/",  "%",  "~", "(",
                                                              ")",  "[",  "]",  ".",  ",",  "|"};
        for (const std::string_view symbol : symbols) {
            if (!rest_.starts_with(symbol)) continue;
            bracket(brackets, c);
            add(Kind::kSymbol, std::string(symbol), symbol.size());
            return skip(symbol.size());
        }
        if (c != '{' && c != '}' && c != ':' && c != ';') refuse("a character that is not part of an expression");
        bracket(brackets, c);
        add(Kind::kSymbol, std::string(1, c), 1);
        skip(1);
    }

    // Digits with underscores between them.
    size_t digits_at(size_t at_, const char* digits) const {
        const std::string_view known = digits;
        size_t length = 0;
        while (true) {
            const size_t mark = length > 0 && at(at_ + length) == '_' ? 1 : 0;
            const char c = at(at_ + length + mark);
            if (c == '\0' || known.find(c) == known.npos) return length;
            length += mark + 1;
        }
    }

    void read_number() {
        constexpr const char* decimal = "0123456789";
        const char kind = static_cast<char>(at(1) | 0x20);
        const int base = at(0) != '0' ? 10 : kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
        if (base != 10) {
            const size_t first = at(2) == '_' ? 3 : 2;
            const size_t length = first + digits_at(first, base == 16  ? "0123456789abcdefABCDEF"
                                                           : base == 8 ? "01234567"
                                                                       : "01");
            std::string digits(rest_.substr(first, length - first));
            std::erase(digits, '_');
            uint64_t number = 0;
            const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
            if (length == first || read.ec != std::errc()) refuse("a number of a kind that is not known");
            add(Kind::kInteger, std::to_string(number), length);
            return skip(length);
        }
        size_t length = digits_at(0, decimal);
        bool fraction = false;
        if (at(length) == '.' && is_digit(at(length + 1))) {
            fraction = true;
            length += 1 + digits_at(length + 1, decimal);
        }
        if ((at(length) | 0x20) == 'e') {
            const size_t sign = at(length + 1) == '+' || at(length + 1) == '-' ? 1 : 0;
            if (const size_t power = digits_at(length + 1 + sign, decimal); power > 0) {
                fraction = true;
                length += 1 + sign + power;
            }
        }
        // A member by its number, as in a.0.1, has no fraction.
        if (fraction && !out_.empty() && out_.back().kind == Kind::kSymbol && out_.back().text == ".") {
            fraction = false;
            length = digits_at(0, decimal);
        }
        std::string digits(rest_.substr(0, length));
        std::erase(digits, '_');
        if (!fraction) {
            const size_t zeros = digits.find_first_not_of('0');
            // Python has no other number that starts with a zero.
            if (zeros != 0 && zeros != digits.npos) refuse("a number that starts with zeros");
            if (zeros == digits.npos) digits = "0";
        }
        add(fraction ? Kind::kFraction : Kind::kInteger, std::move(digits), length);
        skip(length);
    }

    void bracket(std::string& brackets, char c) const {
        if (c == '(' || c == '[' || c == '{') brackets += c;
        if (c != ')' && c != ']' && c != '}') return;
        if (brackets.empty() || brackets.back() != (c == ')' ? '(' : c == ']' ? '[' : '{'))
            refuse("brackets that do not match");
        brackets.pop_back();
    }

    void read_string(char quote) {
        std::string text;
        size_t i = 1;
        for (; i < rest_.size() && rest_[i] != quote; ++i) {
            if (rest_[i] != '\\') {
                text += rest_[i];
                continue;
            }
            i += read_escape(i + 1, text);
        }
        if (i >= rest_.size()) refuse("a text that does not end");
        add(Kind::kString, std::move(text), i + 1);
        skip(i + 1);
    }

    // What follows a backslash, as in Python; returns its length.
    size_t read_escape(size_t at_, std::string& text) const {
        constexpr std::string_view names = "abfnrtv\\'\"", characters = "\a\b\f\n\r\t\v\\'\"";
        const char c = at(at_);
        if (const size_t found = names.find(c); found != names.npos && c != '\0') {
            text += characters[found];
            return 1;
        }
        if (c == '\n') return 1;
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (c >= '0' && c <= '7') {
            uint32_t code = 0;
            size_t length = 0;
            for (; length < 3 && at(at_ + length) >= '0' && at(at_ + length) <= '7'; ++length)
                code = code * 8 + static_cast<uint32_t>(at(at_ + length) - '0');
            utf8_append(text, code);
            return length;
        }
        if (c == 'N') refuse("an escape in a text that is not known");
        if (digits == 0) {
            text += '\\';
            return 0;
        }
        uint32_t code = 0;
        for (size_t i = 1; i <= digits; ++i) {
            const char digit = at(at_ + i);
            const char lower = static_cast<char>(digit | 0x20);
            if (!is_digit(digit) && (lower < 'a' || lower > 'f')) refuse("an escape in a text that is not complete");
            code = code * 16 + static_cast<uint32_t>(is_digit(digit) ? digit - '0' : lower - 'a' + 10);
        }
        if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) refuse("an escape in a text that is no character");
        utf8_append(text, code);
        return 1 + digits;
    }

    const std::string_view program_;
    std::string_view rest_;
    std::vector<Lexeme> out_;
    uint32_t line_ = 1;
    bool line_begins_ = true;  // before rest_, as far as the last tag
};

}  // namespace

std::vector<Lexeme> lex(std::string_view program) {
    return Lexer(program).lex();
}

}  // namespace tessera::text::jinja
