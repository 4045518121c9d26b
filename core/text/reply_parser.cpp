#include "core/text/reply_parser.hpp"

#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tessera::text {

MarkerPlace find_marker(std::string_view text, std::span<const std::string_view> markers, bool over) {
    for (size_t i = 0; i < text.size(); ++i) {
        bool maybe = false;
        for (size_t m = 0; m < markers.size(); ++m) {
            if (text[i] != markers[m].front()) continue;
            const Match found = match(text.substr(i), markers[m], over);
            if (found == Match::kYes) return {i, true, m};
            maybe |= found == Match::kMaybe;
        }
        if (maybe) return {i, false, 0};
    }
    return {text.size(), false, 0};
}

size_t JsonQuotes::skip(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
        if (escaped_) {
            escaped_ = false;
        } else if (text[i] == '\\') {
            escaped_ = true;
        } else if (text[i] == '"') {
            quoted_ = false;
            return i + 1;
        }
    }
    return text.size();
}

std::unique_ptr<ToolReader> make_tool_reader(const ReplySyntax& syntax) {
    switch (syntax.tools) {
        case ToolSyntax::kNone:
        case ToolSyntax::kChannels:
            return nullptr;
        case ToolSyntax::kDeepSeekV3:
            return make_deepseek_reader(true);
        case ToolSyntax::kDeepSeekV31:
            return make_deepseek_reader(false);
        case ToolSyntax::kLlama3:
            return make_llama_reader();
        default:
            return make_marked_reader(syntax);
    }
}

// Appends to the events of one push, joining those that belong together.
class ReplyParser::Output final : public CallSink {
  public:
    Output(std::vector<ReplyEvent>& events, uint32_t& calls) : events_(events), first_(events.size()), calls_(calls) {}

    void add(ReplyKind kind, std::string_view text, uint32_t call = 0) {
        if (text.empty()) return;
        if (events_.size() > first_ && events_.back().kind == kind && events_.back().call == call) {
            events_.back().text += text;
        } else {
            events_.push_back({kind, std::string(text), call});
        }
    }
    void begin_call(std::string_view name) override {
        events_.push_back({ReplyKind::kToolCall, std::string(name), calls_});
        ++calls_;
    }
    void arguments(std::string_view text) override { add(ReplyKind::kToolArguments, text, calls_ - 1); }

  private:
    std::vector<ReplyEvent>& events_;
    size_t first_;
    uint32_t& calls_;
};

ReplyParser::ReplyParser(ReplySyntax syntax)
    : syntax_(std::move(syntax)), tools_(make_tool_reader(syntax_)), quotes_(std::make_unique<JsonQuotes>()) {
    if (syntax_.reasoning_begin.empty() || syntax_.reasoning_end.empty()) syntax_.reasoning = false;
    content_started_ = syntax_.content_begun;
    if (syntax_.framing == ReplyFraming::kChannels) {
        message_ = syntax_.begins_in_reasoning ? ReplyKind::kReasoning : ReplyKind::kContent;
        state_ = syntax_.begins_in_reasoning || syntax_.content_begun ? State::kMessage : State::kHeader;
        return;
    }
    state_ = !syntax_.reasoning            ? State::kContent
             : syntax_.begins_in_reasoning ? State::kReasoningStart
                                           : State::kStart;
}
ReplyParser::~ReplyParser() = default;
ReplyParser::ReplyParser(ReplyParser&&) noexcept = default;
ReplyParser& ReplyParser::operator=(ReplyParser&&) noexcept = default;

void ReplyParser::push(std::string_view text, std::vector<ReplyEvent>& events) {
    input_ += text;
    run(false, events);
}

void ReplyParser::finish(std::vector<ReplyEvent>& events) {
    run(true, events);
}

void ReplyParser::run(bool over, std::vector<ReplyEvent>& events) {
    Output output(events, calls_);
    while (step(over, output)) {
    }
    input_.erase(0, begin_);
    at_ -= begin_;
    begin_ = 0;
}

// Whether there may be more to do.
bool ReplyParser::step(bool over, Output& output) {
    switch (state_) {
        case State::kStart:
            return step_start(over);
        case State::kReasoningStart:
            return step_reasoning_start(over);
        case State::kReasoning:
            return step_reasoning(over, output);
        case State::kAfterReasoning:
            while (at_ < input_.size() && input_[at_] == '\n') ++at_;
            begin_ = at_;
            if (at_ == input_.size()) return false;
            state_ = State::kContent;
            return true;
        case State::kContent:
            return step_content(over, output);
        case State::kCalls:
            return step_calls(over, output);
        case State::kHeader:
            return step_header(over, output);
        case State::kMessage:
            return step_message(over, output);
    }
    return false;
}

// <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>, of which parts may be
// missing.
bool ReplyParser::step_header(bool over, Output& output) {
    constexpr std::array<std::string_view, 6> begins = {"<|start|>",     "<|channel|>", "<|message|>",
                                                        "<|constrain|>", " to=",        "assistant"};
    constexpr std::string_view end = "<|message|>";
    constexpr size_t kLongest = 512;
    if (rest().empty()) return false;
    bool is_header = false, may_be = false;
    for (const std::string_view begin : begins) {
        const Match found = match(rest(), begin, over);
        is_header |= found == Match::kYes;
        may_be |= found == Match::kMaybe;
    }
    if (!is_header && may_be) return false;
    const size_t at = is_header ? rest().find(end) : std::string_view::npos;
    if (is_header && at == std::string_view::npos && !over && rest().size() < kLongest) return false;
    state_ = State::kMessage;
    message_ = ReplyKind::kContent;
    if (at == std::string_view::npos || at > kLongest) {
        // No header: content, of which no part is taken for one.
        const std::string_view text = is_header ? rest().substr(0, 1) : std::string_view();
        output.add(ReplyKind::kContent, text);
        at_ += text.size();
        begin_ = at_;
        return true;
    }
    const std::string_view header = rest().substr(0, at);
    constexpr std::string_view recipient = "to=functions.";
    if (const size_t to = header.find(recipient); to != header.npos && syntax_.tools != ToolSyntax::kNone) {
        const std::string_view name = header.substr(to + recipient.size());
        if (const size_t length = std::min(name.find_first_of(" <\n\t"), name.size()); length > 0) {
            output.begin_call(name.substr(0, length));
            message_ = ReplyKind::kToolArguments;
            arguments_begun_ = false;
            quotes_->begin();
        }
    } else if (header.find("analysis") != header.npos) {
        message_ = ReplyKind::kReasoning;
    }
    at_ += at + end.size();
    begin_ = at_;
    return true;
}

bool ReplyParser::step_message(bool over, Output& output) {
    constexpr std::array<std::string_view, 5> ends = {"<|end|>", "<|return|>", "<|call|>", "<|start|>", "\""};
    const bool json = message_ == ReplyKind::kToolArguments;
    MarkerPlace place;
    if (json && quotes_->quoted()) {
        place.before = quotes_->skip(rest());
    } else {
        place = find_marker(rest(), std::span(ends).first(json ? 5 : 4), over);
        if (place.found && place.which == 4) {
            quotes_->open();
            place = {.before = place.before + 1};
        }
    }
    const std::string_view text = rest().substr(0, place.before);
    if (message_ == ReplyKind::kToolArguments) {
        output.arguments(text);
        arguments_begun_ |= !text.empty();
    } else {
        write(message_ == ReplyKind::kReasoning ? State::kReasoning : State::kContent, text, output);
    }
    at_ += place.before;
    begin_ = at_;
    if (!place.found && at_ < input_.size() && text.size() > 0) return true;
    const bool ended = place.found || (over && at_ == input_.size());
    if (ended && message_ == ReplyKind::kToolArguments && !std::exchange(arguments_begun_, true))
        output.arguments("{}");
    if (!place.found) return false;
    newlines_ = 0;
    // The start of the next message is part of its header.
    if (ends[place.which] != "<|start|>") at_ += ends[place.which].size();
    begin_ = at_;
    state_ = State::kHeader;
    return true;
}

bool ReplyParser::step_start(bool over) {
    while (at_ < input_.size() && is_json_space(input_[at_])) ++at_;
    switch (match(rest(), syntax_.reasoning_begin, over)) {
        case Match::kMaybe:
            return false;
        case Match::kYes:
            at_ += syntax_.reasoning_begin.size();
            begin_ = at_;
            state_ = State::kReasoningStart;
            return true;
        case Match::kNo:
            break;
    }
    at_ = begin_;
    state_ = State::kContent;
    return true;
}

// Some models write the marker again that their prompt ended with.
bool ReplyParser::step_reasoning_start(bool over) {
    while (at_ < input_.size() && input_[at_] == '\n') ++at_;
    begin_ = at_;
    if (syntax_.begins_in_reasoning) {
        switch (match(rest(), syntax_.reasoning_begin, over)) {
            case Match::kMaybe:
                return false;
            case Match::kYes:
                at_ += syntax_.reasoning_begin.size();
                begin_ = at_;
                syntax_.begins_in_reasoning = false;
                return true;
            case Match::kNo:
                break;
        }
    } else if (at_ == input_.size() && !over) {
        return false;
    }
    state_ = State::kReasoning;
    return true;
}

bool ReplyParser::step_reasoning(bool over, Output& output) {
    std::array<std::string_view, 8> markers{syntax_.reasoning_end};
    size_t count = 1;
    if (tools_ && tools_->in_reasoning())
        for (const std::string_view one : tools_->begins())
            if (count < markers.size()) markers[count++] = one;
    const MarkerPlace place = find_marker(rest(), std::span(markers).first(count), over);
    write(State::kReasoning, rest().substr(0, place.before), output);
    at_ += place.before;
    begin_ = at_;
    if (!place.found) {
        if (over && at_ == input_.size()) {
            output.add(ReplyKind::kReasoning, std::string(std::exchange(newlines_, 0), '\n'));
        }
        return false;
    }
    if (place.which == 0) {
        newlines_ = 0;
        at_ += syntax_.reasoning_end.size();
        begin_ = at_;
        state_ = State::kAfterReasoning;
    } else {
        begin_calls(State::kReasoning, place.which - 1, markers[place.which].size());
    }
    return true;
}

bool ReplyParser::step_content(bool over, Output& output) {
    if (!tools_ || calls_excluded_) {
        write(State::kContent, rest(), output);
        begin_ = at_ = input_.size();
        return false;
    }
    if (!content_started_) {
        size_t spaces = 0;
        while (at_ + spaces < input_.size() && is_json_space(input_[at_ + spaces])) ++spaces;
        const auto markers = tools_->begins_at_start();
        for (size_t at = 0; at <= spaces; ++at) {
            bool maybe = false;
            for (size_t m = 0; m < markers.size(); ++m) {
                const Match found = match(rest().substr(at), markers[m], over);
                if (found == Match::kNo) continue;
                maybe |= found == Match::kMaybe;
                if (found != Match::kYes) continue;
                output.add(ReplyKind::kContent, rest().substr(0, at));
                at_ += at;
                begin_ = at_;
                begin_calls(State::kContent, m, markers[m].size());
                return true;
            }
            if (!maybe) continue;
            output.add(ReplyKind::kContent, rest().substr(0, at));
            at_ += at;
            begin_ = at_;
            return false;
        }
    }
    const auto markers = tools_->begins();
    MarkerPlace place = find_marker(rest(), markers, over);
    if (syntax_.content_or_calls && !std::ranges::all_of(rest().substr(0, place.before), is_json_space))
        place = {.before = rest().size()};
    write(State::kContent, rest().substr(0, place.before), output);
    at_ += place.before;
    begin_ = at_;
    if (!place.found) return false;
    begin_calls(State::kContent, place.which, markers[place.which].size());
    return true;
}

void ReplyParser::begin_calls(State outer, size_t marker, size_t length) {
    tools_->start(marker);
    outer_ = outer;
    marker_length_ = length;
    at_ += length;
    certain_ = false;
    state_ = State::kCalls;
}

bool ReplyParser::step_calls(bool over, Output& output) {
    using Result = ToolReader::Result;
    const ToolReader::Progress progress = tools_->read(rest(), over, output);
    at_ += progress.bytes;
    switch (progress.result) {
        case Result::kGoOn:
            return true;
        case Result::kWait:
            if (!over) return false;
            break;
        case Result::kCertain:
        case Result::kEnd:
            begin_ = at_;
            certain_ = true;
            newlines_ = 0;
            content_started_ = true;
            if (progress.result == Result::kEnd) state_ = State::kContent;
            return true;
        case Result::kLeave:
            break;
    }
    at_ = begin_;
    state_ = State::kContent;
    if (certain_) return true;
    write(outer_, std::string_view(input_).substr(at_, marker_length_), output);
    at_ += marker_length_;
    begin_ = at_;
    state_ = outer_;
    return true;
}

void ReplyParser::write(State state, std::string_view text, Output& output) {
    if (state == State::kContent) {
        const bool begins = !std::ranges::all_of(text, is_json_space);
        content_started_ |= begins;
        calls_excluded_ |= begins && syntax_.content_or_calls;
        output.add(ReplyKind::kContent, text);
        return;
    }
    // Newlines at the end wait for what follows.
    const size_t end = text.find_last_not_of('\n') + 1;
    if (end > 0) {
        output.add(ReplyKind::kReasoning, std::string(std::exchange(newlines_, 0), '\n'));
        output.add(ReplyKind::kReasoning, text.substr(0, end));
    }
    newlines_ += text.size() - end;
}

}  // namespace tessera::text
