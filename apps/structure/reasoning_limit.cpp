#include "apps/structure/reasoning_limit.hpp"

#include "apps/structure/answer_grammar.hpp"
#include "core/base/text.hpp"
#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::structure {
namespace {

using text::Token;

constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::string_view kMessage = "<|message|>";
constexpr size_t kLongestBegin = 512;  // bytes before the marker that reasoning begins with

// The tokens of a marker; with control tokens where the vocabulary has them.
std::vector<Token> tokens_of(std::string_view marker, const text::Tokenizer& tokenizer) {
    std::vector<Token> tokens = tokenizer.encode(marker, {.add_special = false, .parse_special = true});
    std::string spelt;
    for (const Token token : tokens) spelt += tokenizer.bytes(token);
    if (spelt == marker) return tokens;
    // Some vocabularies put a space before a text.
    tokens.clear();
    while (!marker.empty()) {
        size_t length = marker.size();
        Token token = tokenizer.find(marker);
        while (token == text::kNoToken && length > 1) token = tokenizer.find(marker.substr(0, --length));
        if (token == text::kNoToken) return {};
        tokens.push_back(token);
        marker.remove_prefix(length);
    }
    return tokens;
}

class ReasoningConstraint final : public session::TokenConstraint {
  public:
    ReasoningConstraint(std::unique_ptr<session::TokenConstraint> inner, const text::ReplySyntax& syntax,
                        const text::Tokenizer& tokenizer, ReasoningLimit limit)
        : inner_(std::move(inner)), syntax_(syntax), tokenizer_(tokenizer), limit_(std::move(limit)) {
        const bool channels = syntax_.framing != text::ReplyFraming::kMarkers;
        state_ = !syntax_.reasoning            ? State::kOver
                 : syntax_.begins_in_reasoning ? State::kReasoning
                 : channels                    ? State::kHeader
                                               : State::kBefore;
        if (channels) {
            const std::string_view next = message_marks(syntax_.framing).next;
            ends_ = {std::string(next.substr(0, next.find("<|start|>")))};
        } else {
            ends_ = {syntax_.reasoning_end};
            // Of some models a call ends reasoning.
            if (const auto reader = text::make_tool_reader(syntax_); reader && reader->in_reasoning())
                for (std::string& one : call_markers(syntax_)) ends_.push_back(std::move(one));
        }
    }

    bool wait(std::chrono::steady_clock::time_point until) override { return !inner_ || inner_->wait(until); }

    std::span<const int32_t> forced() override {
        if (closing_.empty() && is_due()) closing_ = closing_tokens();
        if (!closing_.empty() && is_allowed(closing_.front())) return closing_;
        return inner_ ? inner_->forced() : std::span<const int32_t>();
    }

    session::TokenMask allowed() override { return inner_ ? inner_->allowed() : session::TokenMask(); }

    void accept(std::span<const int32_t> tokens) override {
        for (const Token token : tokens) {
            if (!closing_.empty()) {
                if (closing_.front() == token)
                    closing_.erase(closing_.begin());
                else
                    closing_.clear();
            }
            follow(token);
        }
        if (inner_) inner_->accept(tokens);
    }

  private:
    enum class State : uint8_t { kBefore, kHeader, kReasoning, kOver };

    bool is_due() const {
        if (state_ != State::kReasoning) return false;
        const bool reached = count_ >= limit_.tokens || (limit_.end && limit_.end->load(std::memory_order_relaxed));
        return reached && is_utf8(tail_);
    }

    bool is_allowed(Token token) const {
        if (!inner_) return true;
        const session::TokenMask mask = inner_->allowed();
        const auto bit = static_cast<size_t>(token);
        return mask.empty() || (bit / 32 < mask.size() && (mask[bit / 32] >> bit % 32 & 1));
    }

    std::vector<Token> closing_tokens() {
        if (syntax_.framing == text::ReplyFraming::kMarkers) return tokens_of(syntax_.reasoning_end, tokenizer_);
        // The next message may be a call; one that reasons again is followed by the last.
        const bool last = std::exchange(closed_, true) && !inner_;
        const MessageMarks marks = message_marks(syntax_.framing);
        return tokens_of(std::string(marks.next) + std::string(last ? marks.content : ""), tokenizer_);
    }

    void follow(Token token) {
        if (state_ == State::kOver) return;
        tail_ += tokenizer_.bytes(token);
        if (state_ == State::kReasoning) ++count_;
        while (step()) {
        }
    }

    // True: the state has changed, and what is left may change it again.
    bool step() {
        switch (state_) {
            case State::kBefore: {
                const size_t begin = std::min(tail_.find_first_not_of(kWhitespace), tail_.size());
                const std::string_view rest = std::string_view(tail_).substr(begin);
                if (rest.starts_with(syntax_.reasoning_begin))
                    return change(State::kReasoning, begin + syntax_.reasoning_begin.size());
                if (!std::string_view(syntax_.reasoning_begin).starts_with(rest)) return change(State::kOver, 0);
                return tail_.size() > kLongestBegin && change(State::kOver, 0);
            }
            case State::kHeader: {
                const size_t message = tail_.find(kMessage);
                if (message == tail_.npos) return tail_.size() > kLongestBegin && change(State::kOver, 0);
                const std::string_view marked = message_marks(syntax_.framing).reasoning;
                const std::string_view mark = marked.substr(0, marked.size() - kMessage.size());
                const bool reasons = std::string_view(tail_).substr(0, message).find(mark) != tail_.npos;
                return change(reasons ? State::kReasoning : State::kOver, message + kMessage.size());
            }
            case State::kReasoning: {
                size_t longest = 1;
                for (const std::string& end : ends_) {
                    if (const size_t at = tail_.find(end); at != tail_.npos)
                        return change(syntax_.framing == text::ReplyFraming::kMarkers ? State::kOver : State::kHeader,
                                      at + end.size());
                    longest = std::max(longest, end.size());
                }
                // What may be the beginning of a marker, and of a character.
                constexpr size_t kCharacter = 4;
                size_t kept = std::min(tail_.size(), longest + kCharacter);
                while (kept < tail_.size() && (tail_[tail_.size() - kept] & 0xc0) == 0x80) --kept;
                tail_.erase(0, tail_.size() - kept);
                return false;
            }
            case State::kOver:
                break;
        }
        return false;
    }

    bool change(State state, size_t read) {
        state_ = state;
        tail_.erase(0, read);
        return state != State::kOver;
    }

    const std::unique_ptr<session::TokenConstraint> inner_;
    const text::ReplySyntax syntax_;
    const text::Tokenizer& tokenizer_;
    const ReasoningLimit limit_;
    State state_;
    std::vector<std::string> ends_;
    std::string tail_;  // of the text, as far as it is not decided
    uint32_t count_ = 0;
    bool closed_ = false;         // a message of reasoning has been ended
    std::vector<Token> closing_;  // tokens of the marker that are left
};

}  // namespace

uint32_t reasoning_tokens(std::optional<int64_t> budget, uint64_t answer, bool demanded) {
    if (budget && *budget < 0) budget.reset();
    const uint64_t half = answer / 2;
    uint64_t tokens = ReasoningLimit::kNone;
    if (budget && (!demanded || static_cast<uint64_t>(*budget) < answer))
        tokens = static_cast<uint64_t>(*budget);
    else if (demanded)
        tokens = half;
    return static_cast<uint32_t>(std::min<uint64_t>(tokens, ReasoningLimit::kNone));
}

bool can_end_reasoning(const text::ReplySyntax& syntax, const text::Tokenizer& tokenizer) {
    if (syntax.framing == text::ReplyFraming::kMarkers) return !tokens_of(syntax.reasoning_end, tokenizer).empty();
    const MessageMarks marks = message_marks(syntax.framing);
    return !tokens_of(std::string(marks.next) + std::string(marks.content), tokenizer).empty();
}

std::unique_ptr<session::TokenConstraint> limit_reasoning(std::unique_ptr<session::TokenConstraint> inner,
                                                          const text::ReplySyntax& syntax,
                                                          const text::Tokenizer& tokenizer, ReasoningLimit limit) {
    return std::make_unique<ReasoningConstraint>(std::move(inner), syntax, tokenizer, std::move(limit));
}

}  // namespace tessera::structure
