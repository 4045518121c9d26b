// Tokens to text while they are being generated.
#pragma once

#include "core/text/tokenizer.hpp"

#include <string>

namespace tessera::text {

// Holds back bytes that do not end a character yet, so that everything it returns is valid UTF-8. One stream each; not
// for several threads at once.
class StreamingDetokenizer {
  public:
    // `tokenizer` must outlive this object.
    explicit StreamingDetokenizer(const Tokenizer& tokenizer, bool show_control = false)
        : tokenizer_(&tokenizer), show_control_(show_control) {}

    // The text that `token` completes, possibly none. Bytes that can never become a character are returned as U+FFFD.
    // Throws Error(TSR_INVALID_ARGUMENT) for a token outside the vocabulary; the stream can go on afterwards.
    std::string push(Token token);

    // Whether bytes of a character are held back.
    bool holds() const noexcept { return !held_.empty(); }

    // What was held back: U+FFFD if a character was begun, else nothing. The stream starts anew afterwards.
    std::string finish();

  private:
    const Tokenizer* tokenizer_;
    bool show_control_;
    std::string held_;  // at most three bytes between calls
};

}  // namespace tessera::text
