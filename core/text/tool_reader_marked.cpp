// Calls of which each stands between two marks, perhaps all of them in a section that has marks, too. Hermes, as Qwen
// writes it:
//   <tool_call>\n{"name": NAME, "arguments": VALUE}\n</tool_call>\n<tool_call>...
#include "core/text/call_body.hpp"
#include "core/text/tool_reader.hpp"

#include <array>

namespace tessera::text {
namespace {

struct CallMarks {
    // What begins all calls, and ends them; empty: nothing does.
    std::string_view section, section_end;
    std::string_view call;
    std::string_view end;  // empty: the body ends itself
    size_t breaks = 2;     // line breaks before `call` that are not part of the content
    bool in_reasoning = false;
};

class MarkedReader final : public ToolReader {
  public:
    MarkedReader(const CallMarks& marks, std::unique_ptr<CallBody> body) : marks_(marks), body_(std::move(body)) {
        for (size_t i = marks.breaks; i > 0; --i) breaks_.at(i - 1) = std::string(i, '\n') + std::string(marks.call);
        for (size_t i = marks.breaks; i > 0; --i) begins_.push_back(breaks_.at(i - 1));
        begins_.push_back(marks.call);
        if (!marks.section.empty()) begins_.push_back(marks.section);
    }

    std::span<const std::string_view> begins() const override { return begins_; }
    bool in_reasoning() const override { return marks_.in_reasoning; }
    void start(size_t marker) override {
        any_ = false;
        if (marker > marks_.breaks) {
            state_ = State::kBetween;
        } else {
            begin_call();
        }
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (state_ != State::kBody) return between(text, over);
        const Progress progress = body_->read(text, over, sink);
        if (progress.result != Result::kEnd) return progress;
        any_ = true;
        state_ = marks_.end.empty() ? State::kBetween : State::kEnd;
        return {Result::kCertain, progress.bytes};
    }

  private:
    enum class State : uint8_t { kBetween, kBody, kEnd };

    void begin_call() {
        state_ = State::kBody;
        body_->begin();
    }

    Progress between(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {!over ? Result::kWait : any_ ? Result::kEnd : Result::kLeave};
        const Match end = state_ == State::kEnd ? match(text, marks_.end, over) : Match::kNo;
        if (end == Match::kYes) {
            state_ = State::kBetween;
            return {Result::kCertain, marks_.end.size()};
        }
        const Match call = match(text, marks_.call, over);
        if (call == Match::kYes) {
            begin_call();
            return {Result::kGoOn, marks_.call.size()};
        }
        const Match section_end =
            any_ && !marks_.section_end.empty() ? match(text, marks_.section_end, over) : Match::kNo;
        if (section_end == Match::kYes) return {Result::kEnd, marks_.section_end.size()};
        const bool maybe = call == Match::kMaybe || end == Match::kMaybe || section_end == Match::kMaybe;
        return {maybe ? Result::kWait : Result::kLeave};
    }

    const CallMarks marks_;
    const std::unique_ptr<CallBody> body_;
    std::array<std::string, 2> breaks_;
    std::vector<std::string_view> begins_;
    State state_ = State::kBetween;
    bool any_ = false;  // a call was read
};

}  // namespace

std::unique_ptr<ToolReader> make_marked_reader(const ReplySyntax& syntax) {
    const auto& texts = syntax.texts;
    CallMarks marks;
    std::unique_ptr<CallBody> body;
    const auto json_between = [&](std::string_view call, std::string_view end) {
        marks = {.call = call, .end = end};
        body = std::make_unique<JsonListBody>(end);
    };
    switch (syntax.tools) {
        case ToolSyntax::kHermes:
            json_between("<tool_call>", "</tool_call>");
            marks.breaks = 1;
            break;
        case ToolSyntax::kGranite:
            json_between("<|tool_call|>", "");
            break;
        case ToolSyntax::kNemotron:
            json_between("<TOOLCALL>", "</TOOLCALL>");
            break;
        case ToolSyntax::kApriel:
            json_between("<tool_calls>", "</tool_calls>");
            break;
        case ToolSyntax::kCommandR:
            json_between("<|START_ACTION|>", "<|END_ACTION|>");
            break;
        case ToolSyntax::kGigaChat:
            json_between("<|message_sep|>\n\nfunction call<|role_sep|>\n", "");
            break;
        case ToolSyntax::kFireFunction:
            json_between("functools", "");
            break;
        case ToolSyntax::kActions:
            json_between("Action:\n```json\n", "```");
            break;
        case ToolSyntax::kKimi:
            marks = {.section = "<|tool_calls_section_begin|>",
                     .section_end = "<|tool_calls_section_end|>",
                     .call = "<|tool_call_begin|>",
                     .end = "<|tool_call_end|>",
                     .in_reasoning = true};
            body = make_kimi_body(marks.end);
            break;
        case ToolSyntax::kFunctionary:
            marks = {.call = "<function=", .end = "</function>"};
            body = make_functionary_body(marks.end);
            break;
        case ToolSyntax::kMistral:
        case ToolSyntax::kMistralNamed:
            marks = {.call = "[TOOL_CALLS]"};
            body = make_mistral_body();
            break;
        case ToolSyntax::kGlm:
            marks = {.call = "<tool_call>", .end = "</tool_call>"};
            body = make_glm_body(marks.end, texts);
            break;
        case ToolSyntax::kQwenXml:
            marks = {.call = "<tool_call>", .end = "</tool_call>"};
            body = make_function_tags_body(marks.end, texts);
            break;
        case ToolSyntax::kSeedXml:
            marks = {.call = "<seed:tool_call>", .end = "</seed:tool_call>"};
            body = make_function_tags_body(marks.end, texts);
            break;
        case ToolSyntax::kMiniMax:
            marks = {.call = "<minimax:tool_call>", .end = "</minimax:tool_call>"};
            body = make_invoke_tags_body(marks.end, texts);
            break;
        case ToolSyntax::kDeepSeekV32:
            marks = {
                .call = "<" TSR_DSML "function_calls>", .end = "</" TSR_DSML "function_calls>", .in_reasoning = true};
            body = make_dsml_body(marks.end);
            break;
        case ToolSyntax::kDeepSeekV4:
            marks = {.call = "<" TSR_DSML "tool_calls>", .end = "</" TSR_DSML "tool_calls>", .in_reasoning = true};
            body = make_dsml_body(marks.end);
            break;
        case ToolSyntax::kGemma:
            marks = {.call = "<|tool_call>", .end = "<tool_call|>"};
            body = make_gemma_body();
            break;
        case ToolSyntax::kLfm2:
            marks = {.call = "<|tool_call_start|>", .end = "<|tool_call_end|>"};
            body = make_python_body(marks.end);
            break;
        case ToolSyntax::kNone:
        case ToolSyntax::kDeepSeekV3:
        case ToolSyntax::kDeepSeekV31:
        case ToolSyntax::kLlama3:
        case ToolSyntax::kChannels:
            return nullptr;
    }
    return std::make_unique<MarkedReader>(marks, std::move(body));
}

}  // namespace tessera::text
