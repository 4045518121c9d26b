// Calls of which each stands between two marks, perhaps all of them in a section that has marks, too. Hermes, as Qwen
// writes it:
//   <tool_call>\n{"name": NAME, "arguments": VALUE}\n</tool_call>\n<tool_call>...
#include "core/text/call_body.hpp"
#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace tessera::text {
namespace {

// What begins calls of a model that forgets their mark, or writes another one. Only functions of the request are called
// so.
struct OtherBegin {
    std::string text;
    bool anywhere;  // where a line begins with it; else only where an answer does
    bool in_body;   // a part of the body; else a mark in the place of the right one
};

struct CallMarks {
    // What begins all calls, and ends them; empty: nothing does.
    std::string_view section, section_end;
    std::string_view call;
    std::string_view end;  // empty: the body ends itself
    size_t breaks = 2;     // line breaks before `call` that are not part of the content
    bool in_reasoning = false;
    bool in_body = false;                         // `call` is a part of the body
    std::vector<std::string_view> sections = {};  // also begin all calls
    std::vector<OtherBegin> others = {};
    std::string_view other_end = {};  // written in the place of `end`
};

class MarkedReader final : public ToolReader {
  public:
    MarkedReader(CallMarks marks, std::unique_ptr<CallBody> body, std::shared_ptr<const ToolNames> names)
        : marks_(std::move(marks)), body_(std::move(body)), names_(std::move(names)) {
        add_with_breaks(std::string(marks_.call), {.in_body = marks_.in_body});
        if (!marks_.section.empty()) add(std::string(marks_.section), {.section = true});
        for (const std::string_view one : marks_.sections) add(std::string(one), {.section = true});
        for (const OtherBegin& one : marks_.others)
            if (one.anywhere) add_with_breaks(one.text, {.in_body = one.in_body, .restricted = true}, 1);
        anywhere_ = texts_.size();
        for (const bool anywhere : {true, false}) {
            for (const OtherBegin& one : marks_.others)
                if (one.anywhere == anywhere) add(one.text, {.in_body = one.in_body, .restricted = true});
            if (anywhere) after_call_ = texts_.size();
        }
        begins_.assign(texts_.begin(), texts_.end());
    }

    std::span<const std::string_view> begins() const override { return std::span(begins_).first(anywhere_); }
    std::span<const std::string_view> begins_at_start() const override { return begins_; }
    bool in_reasoning() const override { return marks_.in_reasoning; }
    size_t start(size_t marker) override {
        any_ = false;
        const Begin& begin = kinds_[marker];
        if (begin.section) {
            state_ = State::kBetween;
            return texts_[marker].size();
        }
        begin_call(begin.restricted);
        return begin.in_body ? begin.breaks : texts_[marker].size();
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
    struct Begin {
        bool in_body = false, restricted = false, section = false;
        size_t breaks = 0;
    };

    void add(std::string text, Begin begin) {
        texts_.push_back(std::move(text));
        kinds_.push_back(begin);
    }
    void add_with_breaks(const std::string& text, Begin begin, size_t least = 0) {
        for (size_t breaks = marks_.breaks + 1; breaks-- > least;) {
            begin.breaks = breaks;
            add(std::string(breaks, '\n') + text, begin);
        }
    }
    void begin_call(bool restricted) {
        state_ = State::kBody;
        body_->restrict_to(restricted ? names_.get() : nullptr);
        body_->begin();
    }

    // Brackets that nothing opened, and quotes, before the mark that ends the call.
    Match match_end(std::string_view text, bool over, size_t& bytes) const {
        constexpr size_t kMostStray = 16;
        const size_t stray = std::min(text.find_first_not_of("}]\" \n\t"), text.size());
        Match all = Match::kNo;
        for (const std::string_view end : {marks_.end, marks_.other_end}) {
            for (const size_t before : {size_t{0}, stray <= kMostStray ? stray : 0}) {
                const Match found = end.empty() ? Match::kNo : match(text.substr(before), end, over);
                if (found == Match::kYes) {
                    bytes = before + end.size();
                    return found;
                }
                if (found == Match::kMaybe) all = found;
            }
        }
        return all;
    }

    Progress between(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {!over ? Result::kWait : any_ ? Result::kEnd : Result::kLeave};
        size_t end_bytes = 0;
        const Match end = state_ == State::kEnd ? match_end(text, over, end_bytes) : Match::kNo;
        if (end == Match::kYes) {
            state_ = State::kBetween;
            return {Result::kCertain, end_bytes};
        }
        bool maybe = end == Match::kMaybe;
        for (size_t i = 0; i < after_call_; ++i) {
            if (kinds_[i].breaks > 0 || kinds_[i].section) continue;
            const Match call = match(text, begins_[i], over);
            maybe |= call == Match::kMaybe;
            if (call != Match::kYes) continue;
            begin_call(kinds_[i].restricted);
            return {Result::kGoOn, kinds_[i].in_body ? 0 : begins_[i].size()};
        }
        const Match section_end =
            any_ && !marks_.section_end.empty() ? match(text, marks_.section_end, over) : Match::kNo;
        if (section_end == Match::kYes) return {Result::kEnd, marks_.section_end.size()};
        maybe |= section_end == Match::kMaybe;
        return {maybe ? Result::kWait : Result::kLeave};
    }

    const CallMarks marks_;
    const std::unique_ptr<CallBody> body_;
    const std::shared_ptr<const ToolNames> names_;
    // Of all that begins calls. Before anywhere_: wherever it stands; before after_call_: also right after a call; the
    // rest: only where an answer begins with it.
    std::vector<std::string> texts_;
    std::vector<Begin> kinds_;  // of these
    std::vector<std::string_view> begins_;
    size_t anywhere_ = 0, after_call_ = 0;
    State state_ = State::kBetween;
    bool any_ = false;  // a call was read
};

constexpr std::string_view kMiniMaxM3Mark = "]<]minimax[>[";

// How models of this syntax write calls without their mark.
void add_others(CallMarks& marks, const ReplySyntax& syntax) {
    if (!syntax.names || syntax.exact) return;
    const auto add = [&](std::string_view text, bool anywhere, bool in_body) {
        marks.others.push_back({std::string(text), anywhere, in_body});
    };
    const auto at_start = [&](std::string_view text) { add(text, false, true); };
    const auto anywhere = [&](std::string_view text) { add(text, true, true); };
    const auto mark = [&](std::string_view text, bool wherever) { add(text, wherever, false); };
    const auto named = [&](std::string_view before, std::string_view after) {
        for (const std::string& name : *syntax.names) at_start(std::string(before) + name + std::string(after));
    };
    switch (syntax.tools) {
        case ToolSyntax::kHermes:
            anywhere("<function=");
            mark("<tools>", false);
            marks.other_end = "</tools>";
            [[fallthrough]];
        case ToolSyntax::kMiniMaxM1:
            at_start("{");
            break;
        case ToolSyntax::kGranite:
            mark("<tool_call>", false);
            marks.other_end = "</tool_call>";
            [[fallthrough]];
        case ToolSyntax::kNemotron:
        case ToolSyntax::kApriel:
        case ToolSyntax::kCommandR:
        case ToolSyntax::kGigaChat:
        case ToolSyntax::kGigaChat31:
        case ToolSyntax::kFireFunction:
            at_start("[{");
            at_start("{");
            break;
        case ToolSyntax::kMistral:
        case ToolSyntax::kMistralNamed:
            at_start("[{");
            named("", "[ARGS]");
            break;
        case ToolSyntax::kQwenXml:
        case ToolSyntax::kSeedXml:
            anywhere("<function=");
            break;
        case ToolSyntax::kMiniMax:
            anywhere("<invoke name=\"");
            mark("<tool_calls>", true);
            marks.other_end = "</tool_calls>";
            break;
        case ToolSyntax::kMiniMaxM3:
            anywhere(std::string(kMiniMaxM3Mark) + "<invoke name=\"");
            break;
        case ToolSyntax::kMuse:
            anywhere("<atem:invoke name=\"");
            break;
        case ToolSyntax::kDeepSeekV32:
        case ToolSyntax::kDeepSeekV4:
            anywhere("<" TSR_DSML "invoke name=\"");
            break;
        case ToolSyntax::kKimiK3:
            anywhere("<|open|>call tool=\"");
            break;
        case ToolSyntax::kGemma:
            named("call:", "{");
            break;
        case ToolSyntax::kLfm2:
            named("[", "(");
            break;
        case ToolSyntax::kApertus:
            for (const std::string& name : *syntax.names) at_start("[{\"" + name + "\": {");
            break;
        case ToolSyntax::kGlm:
            named("", "\n<arg_key>");
            named("", "<arg_key>");
            break;
        default:
            break;
    }
}

}  // namespace

std::unique_ptr<ToolReader> make_marked_reader(const ReplySyntax& syntax) {
    const auto& texts = syntax.texts;
    CallMarks marks;
    std::unique_ptr<CallBody> body;
    const auto json_between = [&](std::string_view call, std::string_view end) {
        marks = {.call = call, .end = end};
        body = std::make_unique<JsonListBody>(end);
    };
    const auto either = [&](std::unique_ptr<CallBody> tags) -> std::unique_ptr<CallBody> {
        return std::make_unique<EitherBody>(marks.end, std::move(tags));
    };
    switch (syntax.tools) {
        case ToolSyntax::kHermes:
            json_between("<tool_call>", "</tool_call>");
            if (!syntax.exact) body = either(make_function_tags_body(marks.end, texts));
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
        case ToolSyntax::kMiniMaxM1:
            json_between("<tool_calls>", "</tool_calls>");
            break;
        case ToolSyntax::kGigaChat31:
            json_between("<|function_call|>", "");
            break;
        case ToolSyntax::kApertus:
            marks = {.call = "<|tools_prefix|>", .end = "<|tools_suffix|>"};
            body = make_keyed_body(marks.end);
            break;
        case ToolSyntax::kSolar:
            marks = {.section = "<|tool_calls|>",
                     .section_end = "<|calls|>",
                     .call = "<|tool_call:begin|>",
                     .end = "<|tool_call:end|>",
                     .in_reasoning = true,
                     .sections = {"<|begin|>assistant<|tool_calls|>"}};
            body = make_solar_body(marks.end);
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
            // Some answers have the other spelling.
            marks.sections = {"<|tool_call_section_begin|>"};
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
            if (!syntax.exact) body = either(std::move(body));
            break;
        case ToolSyntax::kSeedXml:
            marks = {.call = "<seed:tool_call>", .end = "</seed:tool_call>"};
            body = make_function_tags_body(marks.end, texts);
            break;
        case ToolSyntax::kMiniMax:
            marks = {.call = "<minimax:tool_call>", .end = "</minimax:tool_call>"};
            body = make_invoke_tags_body(marks.end, texts);
            break;
        case ToolSyntax::kMiniMaxM3:
            marks = {.call = "]<]minimax[>[<tool_call>", .end = "]<]minimax[>[</tool_call>"};
            body = make_nested_tags_body(kMiniMaxM3Mark, texts);
            break;
        case ToolSyntax::kMuse:
            marks = {.call = "<atem:function_calls>", .end = "</atem:function_calls>"};
            body = make_atem_body(marks.end, texts);
            break;
        case ToolSyntax::kMiniCpm:
            marks = {.call = "<function name=\"", .in_body = true};
            body = make_param_tags_body(texts);
            break;
        case ToolSyntax::kHunyuan:
            marks = {.section = "<tool_calls>",
                     .section_end = "</tool_calls>",
                     .call = "<tool_call>",
                     .end = "</tool_call>"};
            body = make_hunyuan_body(false, marks.end, marks.section_end, texts);
            break;
        case ToolSyntax::kHunyuanOpen:
            marks = {.section = "<tool_calls:opensource>",
                     .section_end = "</tool_calls:opensource>",
                     .call = "<tool_call:opensource>",
                     .end = "</tool_call:opensource>"};
            body = make_hunyuan_body(true, marks.end, marks.section_end, texts);
            break;
        case ToolSyntax::kKimiK3:
            marks = {.call = "<|open|>tools<|sep|>", .end = "<|close|>tools<|sep|>", .in_reasoning = true};
            body = make_kimi_k3_body(marks.end);
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
        case ToolSyntax::kRecipient:
        case ToolSyntax::kChannels:
            return nullptr;
    }
    add_others(marks, syntax);
    return std::make_unique<MarkedReader>(std::move(marks), std::move(body), syntax.names);
}

}  // namespace tessera::text
