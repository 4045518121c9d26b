// DeepSeek V3, R1 (arguments in a fenced block after the type and the name) and V3.1 (name and arguments alone):
//   <|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>NAME\n```json\nARGUMENTS\n```<|tool_call_end|>\n
//   <|tool_call_begin|>...<|tool_call_end|><|tool_calls_end|>
//   <|tool_calls_begin|><|tool_call_begin|>NAME<|tool_sep|>ARGUMENTS<|tool_call_end|>...<|tool_calls_end|>
// with the model's own bars and underscores. Of V3.2 and V4: call_body_tags.cpp.
#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <array>

namespace tessera::text {
namespace {

#define TSR_CALL_END "<\uff5ctool\u2581call\u2581end\uff5c>"
#define TSR_CALLS_END "<\uff5ctool\u2581calls\u2581end\uff5c>"

constexpr std::string_view kCallBegin = "<\uff5ctool\u2581call\u2581begin\uff5c>";
constexpr std::string_view kNameBegin = "<\uff5ctool\u2581sep\uff5c>";
constexpr std::string_view kCallsEnd = TSR_CALLS_END;
constexpr std::string_view kFunction = "function";
constexpr std::string_view kFence = "\n```json\n";
constexpr std::array<std::string_view, 2> kBegins = {"<\uff5ctool\u2581calls\u2581begin\uff5c>", kCallBegin};
// What ends arguments, behind the quote that begins a string in them; a model may forget the end of the call before the
// end of all calls, or the newline.
constexpr std::array<std::string_view, 9> kFencedEnds = {
    "\"",         "\n```" TSR_CALL_END,  "```" TSR_CALL_END,  "\n```\n" TSR_CALL_END,
    TSR_CALL_END, "\n```" TSR_CALLS_END, "```" TSR_CALLS_END, "\n```\n" TSR_CALLS_END,
    TSR_CALLS_END};
constexpr std::array<std::string_view, 3> kPlainEnds = {"\"", TSR_CALL_END, TSR_CALLS_END};

class DeepSeekReader final : public ToolReader {
  public:
    explicit DeepSeekReader(bool fenced) : fenced_(fenced) {}

    std::span<const std::string_view> begins() const override { return kBegins; }
    bool in_reasoning() const override { return true; }
    size_t start(size_t marker) override {
        calls_ = 0;
        state_ = marker == 0 ? State::kBetween : first();
        name_.clear();
        return kBegins.at(marker).size();
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        switch (state_) {
            case State::kBetween:
                return between(text, over);
            case State::kType:
                return literal(text, over, kFunction, State::kSeparator);
            case State::kSeparator:
                return literal(text, over, kNameBegin, State::kName);
            case State::kName:
                return name(text, over);
            case State::kBefore:
                return before(text, over, sink);
            case State::kArguments:
                return arguments(text, over, sink);
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kBetween, kType, kSeparator, kName, kBefore, kArguments };
    State first() const { return fenced_ ? State::kType : State::kName; }

    Progress between(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && over && calls_ > 0) return {Result::kEnd};
        switch (match(text, kCallBegin, over)) {
            case Match::kYes:
                state_ = first();
                name_.clear();
                return {Result::kGoOn, kCallBegin.size()};
            case Match::kMaybe:
                return {Result::kWait};
            case Match::kNo:
                break;
        }
        if (calls_ == 0) return {Result::kLeave};
        switch (match(text, kCallsEnd, over)) {
            case Match::kYes:
                return {Result::kEnd, kCallsEnd.size()};
            case Match::kMaybe:
                return {Result::kWait};
            case Match::kNo:
                break;
        }
        return {Result::kLeave};
    }

    Progress literal(std::string_view text, bool over, std::string_view expected, State next) {
        switch (match(text, expected, over)) {
            case Match::kYes:
                state_ = next;
                return {Result::kGoOn, expected.size()};
            case Match::kMaybe:
                return {Result::kWait};
            case Match::kNo:
                break;
        }
        return {Result::kLeave};
    }

    Progress name(std::string_view text, bool over) {
        const std::string_view end = fenced_ ? kFence : kNameBegin;
        const size_t length = std::min(text.find_first_of("<\n`"), text.size());
        if (length > 0) {
            name_ += text.substr(0, length);
            return {Result::kGoOn, length};
        }
        switch (match(text, end, over)) {
            case Match::kMaybe:
                return {Result::kWait};
            case Match::kNo:
                return {Result::kLeave};
            case Match::kYes:
                break;
        }
        if (without_space(name_).empty()) return {Result::kLeave};
        state_ = State::kBefore;
        return {Result::kGoOn, end.size()};
    }

    // Arguments that do not begin as an object make it no call.
    Progress before(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        bool maybe = false, begins = over && text.empty();
        for (const std::string_view one :
             {std::string_view("{"), std::string_view("\"{"), std::string_view("null"), std::string_view("```"),
              std::string_view(TSR_CALL_END), std::string_view(TSR_CALLS_END)}) {
            const Match found = match(text, one, over);
            begins |= found == Match::kYes;
            maybe |= found == Match::kMaybe;
        }
        if (!begins) return {maybe ? Result::kWait : Result::kLeave};
        sink.begin_call(without_space(name_));
        ++calls_;
        quotes_.begin();
        state_ = State::kArguments;
        return {Result::kCertain};
    }

    Progress arguments(std::string_view text, bool over, CallSink& sink) {
        if (quotes_.quoted()) {
            const size_t bytes = quotes_.skip(text);
            sink.arguments(text.substr(0, bytes));
            if (bytes > 0) return {Result::kCertain, bytes};
            return {over ? Result::kEnd : Result::kWait};
        }
        const std::span<const std::string_view> ends =
            fenced_ ? std::span<const std::string_view>(kFencedEnds) : std::span<const std::string_view>(kPlainEnds);
        const MarkerPlace place = find_marker(text, ends, over);
        if (place.found && place.which == 0) {
            quotes_.open();
            sink.arguments(text.substr(0, place.before + 1));
            return {Result::kCertain, place.before + 1};
        }
        std::string_view value = text.substr(0, place.before);
        if (over && !place.found && fenced_)
            for (const std::string_view fence : {"\n```", "\n```\n"})
                if (value.ends_with(fence)) value.remove_suffix(fence.size());
        sink.arguments(value);
        if (!place.found)
            return {over ? Result::kEnd : place.before > 0 ? Result::kCertain : Result::kWait, place.before};
        const std::string_view end = ends[place.which];
        state_ = State::kBetween;
        return {end.ends_with(kCallsEnd) ? Result::kEnd : Result::kCertain, place.before + end.size()};
    }

    const bool fenced_;
    State state_ = State::kBetween;
    std::string name_;
    JsonQuotes quotes_;  // of the arguments
    uint32_t calls_ = 0;
};

}  // namespace

std::unique_ptr<ToolReader> make_deepseek_reader(bool fenced) {
    return std::make_unique<DeepSeekReader>(fenced);
}

}  // namespace tessera::text
