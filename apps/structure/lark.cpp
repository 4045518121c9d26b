#include "apps/structure/lark.hpp"

#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::structure {
namespace {

using text::TokenType;

// Whether tessera-constrain takes the token for text.
bool is_plain_text(const text::Tokenizer& tokenizer, text::Token token) {
    const TokenType type = tokenizer.type(token);
    return (type == TokenType::kNormal || type == TokenType::kByte || type == TokenType::kUserDefined) &&
           !tokenizer.ends_generation(token);
}

// The longest token at the beginning of the text that is none of text.
text::Token special_at(std::string_view text, const text::Tokenizer& tokenizer) {
    constexpr size_t kLongest = 64;
    for (size_t length = std::min(text.size(), kLongest); length > 1; --length) {
        const text::Token token = tokenizer.find(text.substr(0, length));
        if (token != text::kNoToken && !is_plain_text(tokenizer, token)) return token;
    }
    return text::kNoToken;
}

}  // namespace

std::string lark_text(std::string_view text) {
    return text::json_string(text);
}

std::string lark_markers(std::string_view text, const text::Tokenizer& tokenizer) {
    std::string out, plain;
    const auto end_plain = [&] {
        if (!plain.empty()) out += (out.empty() ? "" : " ") + lark_text(plain);
        plain.clear();
    };
    while (!text.empty()) {
        const text::Token token = special_at(text, tokenizer);
        if (token == text::kNoToken) {
            plain += text[0];
            text.remove_prefix(1);
            continue;
        }
        end_plain();
        out += fmt::format("{}<[{}]>", out.empty() ? "" : " ", token);
        text.remove_prefix(tokenizer.spelling(token).size());
    }
    end_plain();
    return out;
}

std::string_view plain_begin(std::string_view text, const text::Tokenizer& tokenizer) {
    for (size_t at = 0; at < text.size(); ++at)
        if (special_at(text.substr(at), tokenizer) != text::kNoToken) return text.substr(0, at);
    return text;
}

Expression lark_until(const std::string& terminal, std::string_view marker, const std::string& upper,
                      const text::Tokenizer& tokenizer) {
    const std::string_view plain = plain_begin(marker, tokenizer);
    return {fmt::format("{} {}", upper, lark_markers(marker.substr(plain.size()), tokenizer)),
            plain.empty() ? fmt::format("{}: {}\n", upper, terminal)
                          : fmt::format("{}: ({}) {}\n", upper, terminal, lark_text(plain))};
}

std::string lark_regex(std::string_view pattern) {
    std::string out = "/";
    for (size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        if (c == '\\' && i + 1 < pattern.size()) {
            out += c;
            out += pattern[++i];
        } else if (c == '/') {
            out += "\\/";
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\r') {
            out += "\\r";
        } else {
            out += c;
        }
    }
    return out + "/";
}

std::string quoted_for_regex(std::string_view text) {
    constexpr std::string_view kSyntax = R"(\^$.|?*+()[]{}/#&-~)";
    std::string out;
    for (const char c : text) {
        if (kSyntax.find(c) != kSyntax.npos) out += '\\';
        out += c;
    }
    return out;
}

std::string lark_without(std::span<const std::string> texts) {
    std::string all;
    for (const std::string& one : texts) all += (all.empty() ? "" : "|") + quoted_for_regex(one);
    constexpr std::string_view any = "/(?s:.*)/";
    return all.empty() ? std::string(any) : fmt::format("{} & ~/(?s:.*)(?:{})(?s:.*)/", any, all);
}

}  // namespace tessera::structure
