// functionary 3.2: parts of an answer, each after the name of who it is for: >>>all\nCONTENT>>>NAME\nJSON. The prompt
// ends with the first >>>.
#include "core/text/call_body.hpp"
#include "core/text/tool_reader.hpp"

#include <algorithm>

namespace tessera::text {
namespace {

constexpr std::string_view kMark = ">>>", kAll = "all", kNull = "null";

class RecipientReader final : public ToolReader {
  public:
    explicit RecipientReader(const ReplySyntax& syntax) : names_(syntax.names) {
        begins_.emplace_back(kMark);
        if (!syntax.names) return;
        starts_.reserve(syntax.names->size());
        for (const std::string& name : *syntax.names) starts_.push_back(name + "\n");
        for (const std::string& one : starts_) begins_.push_back(one);
    }

    std::span<const std::string_view> begins() const override { return std::span(begins_).first(1); }
    std::span<const std::string_view> begins_at_start() const override { return begins_; }
    size_t start(size_t marker) override {
        begin_name();
        return marker == 0 ? kMark.size() : 0;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        switch (state_) {
            case State::kName:
                return name(text);
            case State::kBefore:
                return before(text, over, sink);
            case State::kArguments: {
                using Status = ArgumentsEnd::Status;
                const auto [status, bytes] = value_.read(text, kMark, over);
                sink.arguments(text.substr(0, bytes));
                if (status == Status::kClosed || status == Status::kMark) {
                    state_ = State::kBetween;
                    return {Result::kCertain, bytes};
                }
                if (status == Status::kOpen && over) return {Result::kEnd, bytes};
                return {bytes == 0 ? Result::kWait : Result::kCertain, bytes};
            }
            case State::kBetween:
                return between(text, over);
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kName, kBefore, kArguments, kBetween };

    void begin_name() {
        state_ = State::kName;
        name_.clear();
    }
    Progress name(std::string_view text) {
        constexpr size_t kLongest = 256;
        const size_t length = std::min(text.find_first_of("\n{}<>\"\t "), text.size());
        name_ += text.substr(0, length);
        if (length > 0 && name_.size() <= kLongest) return {Result::kGoOn, length};
        if (text.empty()) return {Result::kWait};
        if (text.front() != '\n' || name_.empty()) return {Result::kLeave};
        if (name_ == kAll) return {Result::kDrop, 1};
        if (names_ && !names_->contains(name_)) return {Result::kLeave};
        state_ = State::kBefore;
        return {Result::kGoOn, 1};
    }
    Progress before(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && !over) return {Result::kWait};
        // No arguments: only where the answer ends.
        const Match null = null_arguments(text, over), object = match(text, "\"{", over);
        if (null == Match::kMaybe || object == Match::kMaybe) return {Result::kWait};
        const bool nothing = text.empty() || null == Match::kYes;
        if (!nothing && text.front() != '{' && object == Match::kNo) return {Result::kLeave};
        sink.begin_call(name_);
        if (nothing) sink.arguments("{}");
        value_.begin();
        state_ = nothing ? State::kBetween : State::kArguments;
        return {Result::kCertain, text.empty() || !nothing ? 0 : kNull.size()};
    }
    // Whether the arguments are null, with the next recipient or the end of the answer after them.
    static Match null_arguments(std::string_view text, bool over) {
        const Match null = match(text, kNull, over);
        if (null != Match::kYes) return null;
        constexpr size_t kMostSpaces = 64;
        text.remove_prefix(kNull.size());
        const size_t spaces = json_spaces(text);
        if (spaces > kMostSpaces) return Match::kNo;
        if (spaces == text.size()) return over ? Match::kYes : Match::kMaybe;
        return match(text.substr(spaces), kMark, over);
    }
    Progress between(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {over ? Result::kEnd : Result::kWait};
        if (text.front() == '{') {
            // Another object for the same recipient.
            value_.begin();
            state_ = State::kArguments;
            return {Result::kGoOn};
        }
        const Match next = match(text, kMark, over);
        if (next == Match::kMaybe) return {Result::kWait};
        if (next == Match::kNo) return {Result::kLeave};
        begin_name();
        return {Result::kGoOn, kMark.size()};
    }

    const std::shared_ptr<const ToolNames> names_;
    std::vector<std::string> starts_;
    std::vector<std::string_view> begins_;
    State state_ = State::kName;
    std::string name_;
    ArgumentsEnd value_;
};

}  // namespace

std::unique_ptr<ToolReader> make_recipient_reader(const ReplySyntax& syntax) {
    return std::make_unique<RecipientReader>(syntax);
}

}  // namespace tessera::text
