// Prompts: from flags and files, through templates, to tokens.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/setup/settings.hpp"
#include "core/text/chat_template.hpp"
#include "core/text/tokenizer.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The lines that are not blank.
std::vector<std::string> lines_of(std::string_view text);

std::unique_ptr<text::Tokenizer> make_tokenizer(const gguf::GgufFile& file);

// Conversations of one model as tokens.
class ChatWriter {
  public:
    // The template that is named, else the one of the file. Throws Error: TSR_NOT_FOUND or TSR_UNSUPPORTED with the
    // names known.
    ChatWriter(const gguf::GgufFile& file, const text::Tokenizer& tokenizer, const std::optional<std::string>& name);

    const std::string& name() const noexcept { return template_.name(); }
    std::string text(std::span<const text::ChatMessage> messages) const;
    std::vector<text::Token> tokens(std::string_view text) const;

  private:
    const text::Tokenizer& tokenizer_;
    text::ChatTemplate template_;
    text::ChatOptions options_;
};

}  // namespace tessera
