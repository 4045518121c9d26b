#include "core/session/answer_text.hpp"

#include "core/base/seconds.hpp"

#include <utility>

namespace tessera::session {

void AnswerText::push(Token token, const TokenProbabilities& probabilities) {
    std::string text = detokenizer_.push(token);
    show(text);
    if (!request_.on_token) return;
    unshown_.push_back({token, std::move(text), detokenizer_.holds(), probabilities});
    known_ += text_;
    show_tokens(false);
}

void AnswerText::push_end(Token token) {
    show(detokenizer_.push(token));
    if (!request_.on_token) return;
    known_ += text_;
    show_tokens(false);
}

void AnswerText::finish() {
    if (!request_.stop.stopped()) {
        show(detokenizer_.finish());
        if (request_.on_token) {
            known_ += text_;
            show_tokens(false);
        }
        text_.clear();
        request_.stop.finish(text_);
        show_known(text_);
        known_ += text_;
    }
    // Behind a stop string tokens are left that nobody is shown.
    if (request_.on_token) show_tokens(true);
}

void AnswerText::show(std::string_view text) {
    text_.clear();
    request_.stop.push(text, text_);
    show_known(text_);
}

void AnswerText::show_known(std::string_view text) {
    answer_.has_new_line |= text.find('\n') != std::string_view::npos;
    if (!text.empty() && request_.on_text) request_.on_text(text);
}

// Gives out tokens whose text is known in full, those that share a character together; at the end of the text, `last`,
// all of them.
void AnswerText::show_tokens(bool last) {
    const auto give = [&](const ShownToken& token) {
        answer_.seconds = seconds_since(arrived_);
        request_.on_token(token, answer_);
    };
    std::string_view known = known_;
    while (!unshown_.empty()) {
        size_t count = 0, bytes = 0;
        do {
            bytes += unshown_[count].text.size();
        } while (unshown_[count++].incomplete && count < unshown_.size());
        if (bytes > known.size() || (unshown_[count - 1].incomplete && !last)) break;
        for (; count > 0; --count) {
            const Unshown& first = unshown_.front();
            give({first.token, known.substr(0, first.text.size()),
                  request_.probabilities ? &first.probabilities : nullptr});
            known.remove_prefix(first.text.size());
            unshown_.pop_front();
        }
    }
    if (last && !known.empty()) {
        give({{}, known});
        known = {};
    }
    known_.erase(0, known_.size() - known.size());
}

}  // namespace tessera::session
