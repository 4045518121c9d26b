#include "apps/structure/answer_grammar.hpp"

#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/json_schema.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::structure {
namespace {

using text::TokenType;

// A terminal: "/.../".
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

// Before anything is made of what would be too large in any case.
void check_bytes(std::string_view what, size_t bytes) {
    constexpr size_t kMostBytes = 1 << 20;
    if (bytes > kMostBytes) fail(TSR_INVALID_ARGUMENT, "{} {} bytes; at most {} are accepted", what, bytes, kMostBytes);
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

// Whether tessera-constrain takes the token for text.
bool is_text(const text::Tokenizer& tokenizer, text::Token token) {
    const TokenType type = tokenizer.type(token);
    return (type == TokenType::kNormal || type == TokenType::kByte || type == TokenType::kUserDefined) &&
           !tokenizer.ends_generation(token);
}

// The longest token at the beginning of the text that is none of text.
text::Token special_at(std::string_view text, const text::Tokenizer& tokenizer) {
    constexpr size_t kLongest = 64;
    for (size_t length = std::min(text.size(), kLongest); length > 1; --length) {
        const text::Token token = tokenizer.find(text.substr(0, length));
        if (token != text::kNoToken && !is_text(tokenizer, token)) return token;
    }
    return text::kNoToken;
}

// Any text up to a marker, and the marker.
std::string text_until(std::string_view name, std::string_view marker, const text::Tokenizer& tokenizer) {
    if (special_at(marker, tokenizer) != text::kNoToken)
        return fmt::format("{}: /(?s:.*)/ {}\n", name, lark_markers(marker, tokenizer));
    return fmt::format("{}[lazy]: /(?s:.*){}/\n", name, quoted_for_regex(marker));
}

std::string channels(const Body& body, const text::ReplySyntax& syntax, const text::Tokenizer& tokenizer) {
    if (syntax.begins_in_reasoning || syntax.content_begun)
        fail(TSR_UNSUPPORTED, "a message that has been begun cannot be held to a grammar");
    return fmt::format(
        "start: thoughts? {} body\n"
        "thoughts: {} /(?s:.*)/ {}\n",
        body.has_header ? std::string() : lark_markers("<|channel|>final<|message|>", tokenizer),
        lark_markers("<|channel|>analysis<|message|>", tokenizer),
        lark_markers("<|end|><|start|>assistant", tokenizer));
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

Body schema_body(const boost::json::value& schema) {
    return {fmt::format("body: %json {}\n", schema_rule(schema))};
}

Body schema_body(std::string_view schema) {
    return {fmt::format("body: %json {}\n", schema_grammar(schema).text)};
}

Body any_object_body() {
    return schema_body(any_object());
}

Body regex_body(std::string_view pattern) {
    check_bytes("the pattern has", pattern.size());
    // All of the answer is matched in any case.
    if (pattern.starts_with('^')) pattern.remove_prefix(1);
    if (pattern.ends_with('$') && !pattern.ends_with("\\$")) pattern.remove_suffix(1);
    return {fmt::format("body: BODY\nBODY: {}\n", lark_regex(translate_pattern(pattern)))};
}

Body choice_body(std::span<const std::string> choices) {
    size_t bytes = 0;
    for (const std::string& choice : choices) bytes += choice.size();
    check_bytes("the choices have", bytes);
    std::string all;
    for (const std::string& choice : choices) all += (all.empty() ? "" : "|") + quoted_for_regex(choice);
    return {fmt::format("body: BODY\nBODY: {}\n", lark_regex(all))};
}

GrammarText answer_grammar(const Body& body) {
    return {GrammarKind::kLark, "start: body\n" + body.rules};
}

GrammarText answer_grammar(const Body& body, const text::ReplySyntax& syntax, const text::Tokenizer& tokenizer) {
    std::string begin;
    if (syntax.framing == text::ReplyFraming::kChannels) {
        begin = channels(body, syntax, tokenizer);
    } else if (!syntax.reasoning) {
        begin = "start: body\n";
    } else {
        begin = syntax.begins_in_reasoning ? std::string("start: thoughts BLANK? body\n")
                                           : fmt::format("start: (BLANK? {} thoughts BLANK?)? body\n",
                                                         lark_markers(syntax.reasoning_begin, tokenizer));
        begin += text_until("thoughts", syntax.reasoning_end, tokenizer) + "BLANK: /[\\n]{1,4}/\n";
    }
    return {GrammarKind::kLark, begin + body.rules};
}

}  // namespace tessera::structure
