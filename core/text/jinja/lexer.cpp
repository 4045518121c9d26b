#include "core/text/jinja/lexer.hpp"

#include "core/base/error.hpp"
#include "core/text/utf8.hpp"

#include <algorithm>
#include <array>

namespace tessera::text::jinja {
namespace {

using Kind = Lexeme::Kind;

bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

// Jinja reads every line break as "\n", and drops one at the end.
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

class Lexer {
  public:
    explicit Lexer(std::string_view program) : program_(with_plain_lines(program)), rest_(program_) {}

    std::vector<Lexeme> lex() {
        while (!rest_.empty()) {
            read_text();
            if (rest_.empty()) break;
            if (rest_.starts_with("{#")) {
                skip_comment();
            } else {
                read_tag();
            }
        }
        add(Kind::kEnd, "");
        return std::move(out_);
    }

  private:
    [[noreturn]] void refuse(const char* what) const { fail(TSR_UNSUPPORTED, "line {}: {}", line_, what); }

    void add(Kind kind, std::string text) { out_.push_back({kind, std::move(text), line_}); }
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
            while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
        } else if (end < rest_.size() && mark != '+' && tag != '{') {
            size_t begin = text.size();
            while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t')) --begin;
            if (begin > 0 ? text[begin - 1] == '\n' : line_begins_) text = text.substr(0, begin);
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
            while (length < rest_.size() && is_space(rest_[length])) ++length;
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

    void read_tag() {
        const bool block = rest_[1] == '%';
        add(block ? Kind::kBlockBegin : Kind::kPrintBegin, "");
        skip(at(2) == '-' || at(2) == '+' ? 3 : 2);
        const std::string_view end = block ? "%}" : "}}";
        std::string brackets;
        while (true) {
            size_t spaces = 0;
            while (is_space(at(spaces))) ++spaces;
            skip(spaces);
            if (rest_.empty()) refuse("a tag that does not end");
            if (brackets.empty()) {
                const bool dash = at(0) == '-' && rest_.substr(1).starts_with(end);
                const bool plus = block && at(0) == '+' && rest_.substr(1).starts_with(end);
                if (dash || plus || rest_.starts_with(end)) {
                    add(block ? Kind::kBlockEnd : Kind::kPrintEnd, "");
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
        if (is_digit(c)) {
            while (is_digit(at(length)) || (at(length) == '_' && is_digit(at(length + 1)))) ++length;
            const bool fraction = at(length) == '.' && is_digit(at(length + 1));
            if (fraction)
                for (++length; is_digit(at(length));) ++length;
            if (is_name(at(length))) refuse("a number of a kind that is not known");
            std::string digits(rest_.substr(0, length));
            std::erase(digits, '_');
            add(fraction ? Kind::kFraction : Kind::kInteger, std::move(digits));
            return skip(length);
        }
        if (is_name(c)) {
            while (is_name(at(length))) ++length;
            add(Kind::kName, std::string(rest_.substr(0, length)));
            return skip(length);
        }
        constexpr std::array<std::string_view, 22> symbols = {"==", "!=", "<=", ">=", "//", "**", "<", ">",
                                                              "=",  "+",  "-",  "*",  "/",  "%",  "~", "(",
                                                              ")",  "[",  "]",  ".",  ",",  "|"};
        for (const std::string_view symbol : symbols) {
            if (!rest_.starts_with(symbol)) continue;
            bracket(brackets, c);
            add(Kind::kSymbol, std::string(symbol));
            return skip(symbol.size());
        }
        if (c != '{' && c != '}' && c != ':') refuse("a character that is not part of an expression");
        bracket(brackets, c);
        add(Kind::kSymbol, std::string(1, c));
        skip(1);
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
        add(Kind::kString, std::move(text));
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
        if (is_digit(c) || c == 'N') refuse("an escape in a text that is not known");
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

    const std::string program_;
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
