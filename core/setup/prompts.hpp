// Prompts: from flags and files, through templates, to tokens.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/setup/settings.hpp"
#include "core/text/chat_template.hpp"
#include "core/text/tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The lines that are not blank.
std::vector<std::string> lines_of(std::string_view text);

// Logs what is wrong with the vocabulary and not needed.
std::unique_ptr<text::Tokenizer> make_tokenizer(const gguf::GgufFile& file);

// A text that the model is to continue: with BOS where the vocabulary asks for it and the text does not begin with it,
// unless `add_bos` is false; without EOS in any case. `most`: EncodeOptions::most_tokens.
std::vector<text::Token> tokens_to_continue(const text::Tokenizer& tokenizer, std::string_view text, bool parse_special,
                                            bool add_bos = true, size_t most = SIZE_MAX);

// Conversations of one model as tokens.
class ChatWriter {
  public:
    // `chosen`: of another template than the file's. Throws Error: TSR_NOT_FOUND or TSR_UNSUPPORTED with the names
    // known; TSR_INVALID_ARGUMENT for variables that the template does not read.
    struct Chosen {
        std::optional<std::string> name;  // of a built-in one
        std::optional<std::string> text;  // a Jinja program
        std::optional<bool> thinking;     // ChatOptions::thinking
        std::vector<text::PythonMember> variables = {};
    };
    ChatWriter(const gguf::GgufFile& file, const text::Tokenizer& tokenizer, const Chosen& chosen);
    ChatWriter(const gguf::GgufFile& file, const text::Tokenizer& tokenizer, const std::optional<std::string>& name)
        : ChatWriter(file, tokenizer, Chosen{name, {}, {}}) {}
    // As the settings say.
    ChatWriter(const gguf::GgufFile& file, const text::Tokenizer& tokenizer, const ModelSettings& settings)
        : ChatWriter(file, tokenizer,
                     Chosen{settings.chat_template, settings.chat_template_text, settings.thinking,
                            settings.template_variables}) {}

    const std::string& name() const noexcept { return template_.name(); }
    std::string title() const { return template_.title(); }
    bool can_think() const noexcept { return template_.can_think(); }
    bool has_efforts() const noexcept { return template_.has_efforts(); }
    // As ChatTemplate has them.
    text::ToolSyntax tool_syntax() const noexcept { return template_.tool_syntax(); }
    bool has_unread_calls() const noexcept { return template_.has_unread_calls(); }
    bool reads(std::string_view variable) const noexcept { return template_.reads(variable); }
    // What write() uses unless it is given others.
    const text::ChatOptions& options() const noexcept { return options_; }
    text::WrittenChat write(std::span<const text::ChatMessage> messages) const { return write(messages, options_); }
    text::WrittenChat write(std::span<const text::ChatMessage> messages, const text::ChatOptions& options) const;
    // As ChatTemplate::write_continued.
    text::WrittenChat write_continued(std::span<const text::ChatMessage> messages,
                                      const text::ChatOptions& options) const;
    // As ChatTemplate::fewest_bytes.
    uint64_t fewest_bytes(std::span<const text::ChatMessage> messages, const text::ChatOptions& options) const {
        return template_.fewest_bytes(messages, options);
    }
    // The tokens from byte `begin` of the text on. Control tokens in contents are text, and so are tokens that the
    // vocabulary has for text but templates of any family use as control tokens. `most`: EncodeOptions::most_tokens.
    std::vector<text::Token> tokens(const text::WrittenChat& chat, size_t begin = 0, size_t most = SIZE_MAX) const;

  private:
    const text::Tokenizer& tokenizer_;
    text::ChatTemplate template_;
    text::ChatOptions options_;
    std::vector<text::Token> markers_;
};

}  // namespace tessera
