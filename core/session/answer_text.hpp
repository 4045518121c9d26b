// The text of an answer as its request is shown it: as it comes, and token by token.
#pragma once

#include "core/session/generation.hpp"
#include "core/text/detokenizer.hpp"

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::session {

// Calls the request's callbacks, and sets has_new_line and seconds of the answer. One thread.
class AnswerText {
  public:
    // All outlive this; `arrived`: from when the answer's seconds count.
    AnswerText(const text::Tokenizer& tokenizer, Request& request, Answer& answer,
               std::chrono::steady_clock::time_point arrived)
        : request_(request), answer_(answer), arrived_(arrived), detokenizer_(tokenizer, request.show_control) {}

    // A token of the answer, with its probabilities.
    void push(Token token, const TokenProbabilities& probabilities);
    // The token that ended it, as text alone.
    void push_end(Token token);
    // The rest, once: what might have begun a stop string, and bytes that are no character.
    void finish();

  private:
    // Tokens whose text waits until it is known not to begin a stop string, and text that is known but whose token is
    // not complete. With on_token alone.
    struct Unshown {
        Token token;
        std::string text;
        bool incomplete;  // ends within a character
        TokenProbabilities probabilities;
    };

    void show(std::string_view text);
    void show_known(std::string_view text);
    void show_tokens(bool last);

    Request& request_;
    Answer& answer_;
    const std::chrono::steady_clock::time_point arrived_;
    text::StreamingDetokenizer detokenizer_;
    std::deque<Unshown> unshown_;
    std::string known_;
    std::string text_;  // of the last token
};

}  // namespace tessera::session
