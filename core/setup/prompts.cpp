#include "core/setup/prompts.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/text/vocabulary_from_gguf.hpp"

#include <algorithm>

namespace tessera {
namespace {

text::ChatTemplate find_template(const gguf::GgufFile& file, const ChatWriter::Chosen& chosen) {
    if (chosen.text) return text::ChatTemplate::of_program(*chosen.text);
    if (chosen.name) return text::ChatTemplate::by_name(*chosen.name);
    const auto program = file.metadata().find_string("tokenizer.chat_template");
    if (!program) {
        fail(TSR_NOT_FOUND, Notice(fmt::format("{}: the file has no chat template", file.metadata().source()),
                                   {{AdviceCode::kNameTemplate, ""}, {AdviceCode::kRawPrompt, ""}}));
    }
    return text::ChatTemplate::of_program(*program);
}

// Blanks and line breaks, of which some vocabularies have several in a token: those are no marks of a template.
bool is_blank(std::string_view spelling) {
    constexpr std::string_view blank = "\u2581";  // as SentencePiece has it
    while (!spelling.empty()) {
        const size_t length = spelling.starts_with(blank) ? blank.size() : 1;
        if (length == 1 && std::string_view(" \t\r\n").find(spelling.front()) == std::string_view::npos) return false;
        spelling.remove_prefix(length);
    }
    return true;
}

std::string spelling(const text::Tokenizer& tokenizer, text::Token token) {
    return token == text::kNoToken ? "" : std::string(tokenizer.spelling(token));
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.find_first_not_of(" \t") != std::string_view::npos) lines.emplace_back(line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::unique_ptr<text::Tokenizer> make_tokenizer(const gguf::GgufFile& file) {
    auto tokenizer = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(file.metadata()));
    for (const std::string& note : tokenizer->notes()) log().warn("{}", note);
    return tokenizer;
}

std::vector<text::Token> tokens_to_continue(const text::Tokenizer& tokenizer, std::string_view text, bool parse_special,
                                            bool add_bos, size_t most) {
    std::vector<text::Token> tokens =
        tokenizer.encode(text, {.add_special = add_bos, .parse_special = parse_special, .most_tokens = most});
    if (add_bos && tokenizer.adds_eos() && tokens.size() > 1 && tokens.back() == tokenizer.eos()) tokens.pop_back();
    return tokens;
}

ChatWriter::ChatWriter(const gguf::GgufFile& file, const text::Tokenizer& tokenizer, const Chosen& chosen)
    : tokenizer_(tokenizer), template_(find_template(file, chosen)) {
    for (const text::PythonMember& one : chosen.variables)
        if (!text::is_free_variable(one.key) || !template_.reads(one.key))
            fail(TSR_INVALID_ARGUMENT, "{} has no variable '{}' that could be set", template_.title(),
                 printable(one.key, 60));
    options_.variables = chosen.variables;
    options_.bos = spelling(tokenizer, tokenizer.bos());
    options_.eos = spelling(tokenizer, tokenizer.eos());
    options_.thinking = chosen.thinking;
    for (const text::Token token : tokenizer.encode(template_.markers(), {.add_special = false})) {
        const bool whole = tokenizer.type(token) == text::TokenType::kUserDefined;
        if (whole && !is_blank(tokenizer.spelling(token))) markers_.push_back(token);
    }
    for (size_t i = 0; i < tokenizer.size(); ++i) {
        const auto token = static_cast<text::Token>(i);
        if (tokenizer.type(token) == text::TokenType::kUserDefined && text::acts_as_control(tokenizer.spelling(token)))
            markers_.push_back(token);
    }
    std::ranges::sort(markers_);
    markers_.erase(std::ranges::unique(markers_).begin(), markers_.end());
}

text::WrittenChat ChatWriter::write(std::span<const text::ChatMessage> messages,
                                    const text::ChatOptions& options) const {
    return template_.write(messages, options);
}

text::WrittenChat ChatWriter::write_continued(std::span<const text::ChatMessage> messages,
                                              const text::ChatOptions& options) const {
    return template_.write_continued(messages, options);
}

std::vector<text::Token> ChatWriter::tokens(const text::WrittenChat& chat, size_t begin, size_t most) const {
    std::vector<text::TextRange> contents;
    for (const text::TextRange& range : chat.contents) {
        if (range.end > begin) contents.push_back({std::max(range.begin, begin) - begin, range.end - begin});
    }
    return tokenizer_.encode(std::string_view(chat.text).substr(begin), {.add_special = false,
                                                                         .parse_special = true,
                                                                         .plain = contents,
                                                                         .not_in_plain = markers_,
                                                                         .most_tokens = most});
}

}  // namespace tessera
