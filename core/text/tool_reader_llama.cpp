// Llama 3.1 and later: the answer is the call, {"name": NAME, "parameters": OBJECT}, or a token says that one follows.
#include "core/text/call_body.hpp"
#include "core/text/tool_reader.hpp"

#include <array>

namespace tessera::text {
namespace {

class LlamaReader final : public ToolReader {
  public:
    explicit LlamaReader(const ReplySyntax& syntax)
        : names_(syntax.exact ? nullptr : syntax.names), function_(make_functionary_body(kFunctionEnd)) {
        function_->restrict_to(names_.get());
    }

    std::span<const std::string_view> begins() const override { return std::span(kBegins).first(names_ ? 2 : 1); }
    std::span<const std::string_view> begins_at_start() const override {
        if (names_) return kBegins;
        return kExact;
    }
    size_t start(size_t marker) override {
        separated_ = false;
        const std::string_view mark = begins_at_start()[marker];
        if (mark == kFunction) {
            state_ = State::kFunction;
            function_->begin();
            return mark.size();
        }
        begin_call();
        return mark == kTag ? mark.size() : 0;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (state_ == State::kBetween) return between(text, over);
        if (state_ == State::kFunctionEnd) return function_end(text, over);
        CallBody& body = state_ == State::kFunction ? *function_ : object_;
        const Progress progress = body.read(text, over, sink);
        if (progress.result != Result::kEnd) return progress;
        state_ = state_ == State::kFunction ? State::kFunctionEnd : State::kBetween;
        return {Result::kCertain, progress.bytes};
    }

  private:
    enum class State : uint8_t { kBetween, kObject, kFunction, kFunctionEnd };
    static constexpr std::string_view kTag = "<|python_tag|>", kFunction = "<function=", kFunctionEnd = "</function>";
    // With the other way to write calls that the model card shows, which the templates do not mention.
    static constexpr std::array<std::string_view, 3> kBegins = {kTag, kFunction, "{"};
    static constexpr std::array<std::string_view, 2> kExact = {kTag, "{"};

    void begin_call() {
        state_ = State::kObject;
        object_.begin();
    }

    Progress function_end(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        const Match end = match(text, kFunctionEnd, over);
        if (end == Match::kMaybe) return {over ? Result::kEnd : Result::kWait};
        state_ = State::kBetween;
        return {Result::kCertain, end == Match::kYes ? kFunctionEnd.size() : 0};
    }

    // Calls may be separated by semicolons.
    Progress between(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && over) return {separated_ ? Result::kLeave : Result::kEnd};
        if (text.empty()) return {Result::kWait};
        if (text.front() == ';' && !separated_) {
            separated_ = true;
            return {Result::kGoOn, 1};
        }
        const Match tag = match(text, kTag, over), function = names_ ? match(text, kFunction, over) : Match::kNo;
        if (tag == Match::kMaybe || function == Match::kMaybe) return {Result::kWait};
        if (function == Match::kYes) {
            state_ = State::kFunction;
            function_->begin();
            return {Result::kGoOn, kFunction.size()};
        }
        if (tag == Match::kNo && text.front() != '{') return {Result::kLeave};
        separated_ = false;
        begin_call();
        return {Result::kGoOn, tag == Match::kYes ? kTag.size() : 0};
    }

    const std::shared_ptr<const ToolNames> names_;
    JsonObjectBody object_{true, ""};
    const std::unique_ptr<CallBody> function_;
    State state_ = State::kBetween;
    bool separated_ = false;
};

}  // namespace

std::unique_ptr<ToolReader> make_llama_reader(const ReplySyntax& syntax) {
    return std::make_unique<LlamaReader>(syntax);
}

}  // namespace tessera::text
