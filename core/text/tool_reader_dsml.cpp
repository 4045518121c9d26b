// DeepSeek V3.2. Between the bars of the model:
//   <|DSML|function_calls>
//   <|DSML|invoke name="NAME">
//   <|DSML|parameter name="KEY" string="true">TEXT</|DSML|parameter>
//   <|DSML|parameter name="KEY" string="false">JSON</|DSML|parameter>
//   </|DSML|invoke>
//   </|DSML|function_calls>
// Parameters become the members of one JSON object, spaced as Python writes JSON.
#include "core/text/json_text.hpp"
#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <array>

namespace tessera::text {
namespace {

#define TSR_DSML "\uff5cDSML\uff5c"

// V4 has another name for the block.
constexpr std::array<std::string_view, 6> kBegins = {
    "\n\n<" TSR_DSML "function_calls>", "\n<" TSR_DSML "function_calls>", "<" TSR_DSML "function_calls>",
    "\n\n<" TSR_DSML "tool_calls>",     "\n<" TSR_DSML "tool_calls>",     "<" TSR_DSML "tool_calls>"};
constexpr std::array<std::string_view, 2> kCallsEnds = {"</" TSR_DSML "function_calls>", "</" TSR_DSML "tool_calls>"};
constexpr std::string_view kInvoke = "<" TSR_DSML "invoke name=\"";
constexpr std::string_view kInvokeEnd = "</" TSR_DSML "invoke>";
constexpr std::string_view kParameter = "<" TSR_DSML "parameter name=\"";
constexpr std::string_view kParameterEnd = "</" TSR_DSML "parameter>";
constexpr std::string_view kText = "\" string=\"true\">";
constexpr std::string_view kJson = "\" string=\"false\">";

class DsmlReader final : public ToolReader {
  public:
    explicit DsmlReader(bool v4) : v4_(v4) {}

    std::span<const std::string_view> begins() const override { return std::span(kBegins).subspan(v4_ ? 3 : 0, 3); }
    bool in_reasoning() const override { return true; }
    void start(size_t) override {
        calls_ = 0;
        state_ = State::kBetween;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        switch (state_) {
            case State::kBetween:
                return between(text, over);
            case State::kName:
                return name(text, over, sink);
            case State::kParameters:
                return parameters(text, over, sink);
            case State::kKey:
                return key(text, over, sink);
            case State::kValue:
                return value(text, over, sink);
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kBetween, kName, kParameters, kKey, kValue };

    Progress between(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && over && calls_ > 0) return {Result::kEnd};
        const Match invoke = match(text, kInvoke, over);
        if (invoke == Match::kYes) return begin_attribute(State::kName, kInvoke.size());
        const Match end = calls_ > 0 ? match(text, kCallsEnds[v4_ ? 1 : 0], over) : Match::kNo;
        if (end == Match::kYes) return {Result::kEnd, kCallsEnds[v4_ ? 1 : 0].size()};
        return {invoke == Match::kMaybe || end == Match::kMaybe ? Result::kWait : Result::kLeave};
    }

    Progress begin_attribute(State state, size_t bytes) {
        attribute_.clear();
        state_ = state;
        return {Result::kGoOn, bytes};
    }
    // Bytes of the attribute at the start of the text, which it takes.
    size_t attribute(std::string_view text) {
        const size_t length = std::min(text.find_first_of("\"<\n"), text.size());
        attribute_ += text.substr(0, length);
        return length;
    }

    Progress name(std::string_view text, bool over, CallSink& sink) {
        if (const size_t length = attribute(text); length > 0) return {Result::kGoOn, length};
        const Match end = match(text, "\">", over);
        if (end == Match::kMaybe) return {Result::kWait};
        const std::string_view name = without_space(attribute_);
        if (end == Match::kNo || name.empty()) return {Result::kLeave};
        sink.begin_call(name);
        ++calls_;
        values_ = 0;
        state_ = State::kParameters;
        return {Result::kCertain, 2};
    }

    Progress parameters(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && over) return {Result::kEnd};
        const Match parameter = match(text, kParameter, over);
        if (parameter == Match::kYes) return begin_attribute(State::kKey, kParameter.size());
        const Match end = match(text, kInvokeEnd, over);
        if (end == Match::kYes) {
            sink.arguments(values_ == 0 ? "{}" : "}");
            state_ = State::kBetween;
            return {Result::kCertain, kInvokeEnd.size()};
        }
        return {parameter == Match::kMaybe || end == Match::kMaybe ? Result::kWait : Result::kLeave};
    }

    Progress key(std::string_view text, bool over, CallSink& sink) {
        if (const size_t length = attribute(text); length > 0) return {Result::kGoOn, length};
        const Match as_text = match(text, kText, over);
        const Match as_json = match(text, kJson, over);
        if (as_text == Match::kMaybe || as_json == Match::kMaybe) return {Result::kWait};
        is_text_ = as_text == Match::kYes;
        if (!is_text_ && as_json == Match::kNo) return {Result::kLeave};
        std::string start = values_ == 0 ? "{\"" : ", \"";
        append_json_characters(start, attribute_);
        start += is_text_ ? "\": \"" : "\": ";
        sink.arguments(start);
        ++values_;
        state_ = State::kValue;
        return {Result::kCertain, (is_text_ ? kText : kJson).size()};
    }

    Progress value(std::string_view text, bool over, CallSink& sink) {
        const std::array<std::string_view, 1> ends = {kParameterEnd};
        const MarkerPlace place = find_marker(text, ends, over);
        if (is_text_) {
            std::string escaped;
            append_json_characters(escaped, text.substr(0, place.before));
            sink.arguments(escaped);
        } else {
            sink.arguments(text.substr(0, place.before));
        }
        if (!place.found)
            return {over ? Result::kEnd : place.before > 0 ? Result::kCertain : Result::kWait, place.before};
        if (is_text_) sink.arguments("\"");
        state_ = State::kParameters;
        return {Result::kCertain, place.before + kParameterEnd.size()};
    }

    const bool v4_;
    State state_ = State::kBetween;
    std::string attribute_;  // the name or key being read
    bool is_text_ = false;   // what the parameter says of its value
    uint32_t calls_ = 0;
    size_t values_ = 0;  // of this call
};

}  // namespace

std::unique_ptr<ToolReader> make_dsml_reader(bool v4) {
    return std::make_unique<DsmlReader>(v4);
}

}  // namespace tessera::text
