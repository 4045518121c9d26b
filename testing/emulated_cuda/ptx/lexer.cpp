#include "lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace tessera::cuda::ptx {
namespace {

constexpr std::array<bool, 256> kInWord = [] {
    std::array<bool, 256> in{};
    for (int c = 0; c < 256; ++c)
        in[static_cast<size_t>(c)] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                     c == '_' || c == '.' || c == '$' || c == '%';
    return in;
}();

bool in_word(char c) {
    return kInWord[static_cast<unsigned char>(c)];
}

}  // namespace

Tokens::Tokens(std::string_view text, uint32_t line)
    : text_(text.substr(0, text.find('\0'))), line_(line), line_here_(line) {}

void Tokens::skip_comment() {
    const std::string_view rest = text_.substr(at_);
    const bool line = rest[1] == '/';
    const size_t end = line ? rest.find('\n') : rest.find("*/", 2);
    const size_t length = end == std::string_view::npos ? rest.size() : line ? end : end + 2;
    line_here_ += static_cast<uint32_t>(std::count(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(length), '\n'));
    at_ += length;
}

void Tokens::skip() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '\n') ++line_here_;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            ++at_;
        } else if (c == '/' && at_ + 1 < text_.size() && (text_[at_ + 1] == '/' || text_[at_ + 1] == '*')) {
            skip_comment();
        } else {
            return;
        }
    }
}

std::string_view Tokens::next() {
    skip();
    line_ = line_here_;
    if (at_ == text_.size()) return {};
    size_t end = at_ + 1;
    if (text_[at_] == '"') {
        end = std::min(text_.find('"', end), text_.size() - 1) + 1;
    } else if (in_word(text_[at_])) {
        // .L2::128B is one word
        while (end < text_.size() && (in_word(text_[end]) || text_.substr(end).starts_with("::")))
            end += in_word(text_[end]) ? 1 : 2;
    }
    const std::string_view token = text_.substr(at_, end - at_);
    at_ = end;
    return token;
}

std::string_view Tokens::peek() {
    const size_t at = at_;
    const uint32_t line = line_, line_here = line_here_;
    const std::string_view token = next();
    at_ = at;
    line_ = line;
    line_here_ = line_here;
    return token;
}

bool Tokens::accept(std::string_view wanted) {
    if (peek() != wanted) return false;
    next();
    return true;
}

void Tokens::expect(std::string_view wanted) {
    const std::string_view found = next();
    if (found != wanted)
        throw Error(line_, "expected \"" + std::string(wanted) + "\", found " +
                               (found.empty() ? "the end" : "\"" + std::string(found) + "\""));
}

void Tokens::skip_block() {
    const uint32_t from = line_;
    for (uint32_t depth = 1; at_ < text_.size();) {
        const char c = text_[at_];
        if (c == '/' || c == '"') {
            if (next().empty()) break;  // with the comments before it
            continue;
        }
        ++at_;
        if (c == '\n') ++line_here_;
        if (c == '{') ++depth;
        if (c == '}' && --depth == 0) return;
    }
    throw Error(from, "a { without its }");
}

bool read_integer(std::string_view text, uint64_t& value) {
    if (text.ends_with('U')) text.remove_suffix(1);
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    } else if (text.starts_with("0b") || text.starts_with("0B")) {
        base = 2;
        text.remove_prefix(2);
    } else if (text.size() > 1 && text[0] == '0') {
        base = 8;
        text.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace tessera::cuda::ptx
