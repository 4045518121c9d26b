#include "core/text/reply_parser.hpp"

#include "core/text/after_arguments.hpp"
#include "core/text/json_mender.hpp"
#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tessera::text {

// Of messages of ReplyFraming::kRecipients.
constexpr std::array<std::string_view, 3> kMessageEnds = {"<|start|>", "<|eom|>", "<|eot|>"};

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
            return make_llama_reader(syntax);
        case ToolSyntax::kRecipient:
            return make_recipient_reader(syntax);
        default:
            return make_marked_reader(syntax);
    }
}

// Appends to the events of one push, joining those that belong together.
class ReplyParser::Output final : public CallSink {
  public:
    Output(std::vector<ReplyEvent>& events, ReplyParser& parser)
        : events_(events), first_(events.size()), parser_(parser) {}

    void add(ReplyKind kind, std::string_view text, uint32_t call = 0) {
        if (text.empty()) return;
        if (kind != ReplyKind::kToolArguments) end_call();
        if (events_.size() > first_ && events_.back().kind == kind && events_.back().call == call) {
            events_.back().text += text;
        } else {
            events_.push_back({kind, std::string(text), call});
        }
    }
    void begin_call(std::string_view name) override {
        end_call();
        parser_.call_name_ = std::string(name);
        events_.push_back({ReplyKind::kToolCall, parser_.call_name_, parser_.calls_});
        ++parser_.calls_;
        parser_.call_open_ = true;
        parser_.mender_->begin();
        parser_.after_arguments_->begin();
        parser_.rest_is_content_ = false;
    }
    void arguments(std::string_view text) override {
        JsonMender& mender = *parser_.mender_;
        AfterArguments& after = *parser_.after_arguments_;
        std::string json;
        const auto pass_on = [&] { add(ReplyKind::kToolArguments, std::exchange(json, {}), parser_.calls_ - 1); };
        for (size_t i = 0; i < text.size(); ++i) {
            if (parser_.rest_is_content_) return add(ReplyKind::kContent, text.substr(i));
            const std::string_view c = text.substr(i, 1);
            if (!mender.complete()) {
                mender.read(c, json);
                continue;
            }
            const AfterArguments::Kind kind = after.read(c.front());
            if (kind == AfterArguments::Kind::kUndecided) continue;
            pass_on();
            const std::string rest = after.take();
            if (kind == AfterArguments::Kind::kCall) {
                begin_call(parser_.call_name_);
                mender.read(rest, json);
            } else {
                parser_.rest_is_content_ = true;
                add(ReplyKind::kContent, rest);
            }
        }
        pass_on();
    }
    // Nothing is added to the arguments of the last call.
    void end_call() {
        if (!std::exchange(parser_.call_open_, false)) return;
        std::string json;
        parser_.mender_->finish(json);
        add(ReplyKind::kToolArguments, json, parser_.calls_ - 1);
        add(ReplyKind::kContent, parser_.after_arguments_->take_at_end());
    }

  private:
    std::vector<ReplyEvent>& events_;
    size_t first_;
    ReplyParser& parser_;
};

ReplyParser::ReplyParser(ReplySyntax syntax)
    : syntax_(std::move(syntax)),
      tools_(make_tool_reader(syntax_)),
      quotes_(std::make_unique<JsonQuotes>()),
      mender_(std::make_unique<JsonMender>()),
      after_arguments_(std::make_unique<AfterArguments>()) {
    if (syntax_.reasoning_begin.empty() || syntax_.reasoning_end.empty()) syntax_.reasoning = false;
    content_started_ = syntax_.content_begun;
    std::erase(syntax_.content_marks, "");
    content_markers_.assign(syntax_.content_marks.begin(), syntax_.content_marks.end());
    if (tools_)
        for (const std::string_view one : tools_->begins()) content_markers_.push_back(one);
    if (syntax_.framing == ReplyFraming::kRecipients && syntax_.names && !syntax_.exact) {
        switches_.emplace_back(" to=user<|message|>");
        for (const std::string& name : *syntax_.names) switches_.push_back(" to=" + name + "<|message|>");
    }
    if (syntax_.framing != ReplyFraming::kMarkers) {
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
    Output output(events, *this);
    while (step(over, output)) {
    }
    if (over) output.end_call();
    input_.erase(0, begin_);
    at_ -= begin_;
    searched_ -= std::min(searched_, begin_);
    begin_ = 0;
}

// Whether there may be more to do.
bool ReplyParser::step(bool over, Output& output) {
    switch (state_) {
        case State::kStart:
            return step_start(over);
        case State::kMaybeReasoning:
            return step_maybe_reasoning(over);
        case State::kReasoningStart:
            return step_reasoning_start(over);
        case State::kReasoning:
            return step_reasoning(over, output);
        case State::kMaybeCalls:
            return step_maybe_calls(over, output);
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
// missing. ReplyFraming::kRecipients: <|start|>assistant to=NAME<|message|>
bool ReplyParser::step_header(bool over, Output& output) {
    constexpr std::array<std::string_view, 7> begins = {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>",
                                                        " to=",      "to=",         "assistant"};
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
    called_.clear();
    // Without a header nobody is addressed.
    calls_in_message_ = syntax_.framing == ReplyFraming::kRecipients && !syntax_.exact;
    message_begun_ = false;
    if (at == std::string_view::npos || at > kLongest) {
        // No header: content, of which no part is taken for one.
        const std::string_view text = is_header ? rest().substr(0, 1) : std::string_view();
        output.add(ReplyKind::kContent, text);
        at_ += text.size();
        begin_ = at_;
        return true;
    }
    take_header(rest().substr(0, at));
    at_ += at + end.size();
    begin_ = at_;
    return true;
}

void ReplyParser::take_header(std::string_view header) {
    constexpr std::string_view recipient = "to=", functions = "functions.";
    std::string_view name;
    if (const size_t to = header.find(recipient); to != header.npos) {
        name = header.substr(to + recipient.size());
        name = name.substr(0, std::min(name.find_first_of(" <\n\t"), name.size()));
    }
    if (syntax_.framing == ReplyFraming::kRecipients) {
        if (name == "self") message_ = ReplyKind::kReasoning;
        calls_in_message_ = !name.empty() && name != "self" && name != "user";
        return;
    }
    // Some leave out where the function is from.
    const bool known = syntax_.names && !syntax_.exact && syntax_.names->contains(name);
    if (syntax_.tools != ToolSyntax::kNone && (name.starts_with(functions) || known)) {
        if (name.starts_with(functions)) name.remove_prefix(functions.size());
        // "json", which says what the arguments are, may be glued to the name.
        constexpr std::string_view kind = "json";
        if (syntax_.names && !syntax_.exact && !syntax_.names->contains(name) && name.ends_with(kind) &&
            syntax_.names->contains(name.substr(0, name.size() - kind.size())))
            name.remove_suffix(kind.size());
        if (!name.empty()) {
            called_ = name;
            message_ = ReplyKind::kToolArguments;
            quotes_->begin();
            return;
        }
    }
    if (header.find("analysis") != header.npos) message_ = ReplyKind::kReasoning;
}

// A message to a function whose arguments have not begun: one that is no object is content. False: more has to come.
bool ReplyParser::decide_call(bool over, Output& output) {
    constexpr std::array<std::string_view, 4> ends = {"<|end|>", "<|return|>", "<|call|>", "<|start|>"};
    const size_t spaces = json_spaces(rest());
    const std::string_view text = rest().substr(spaces);
    bool ends_here = over && text.empty(), may_end = text.empty();
    for (const std::string_view end : ends) {
        const Match found = match(text, end, over);
        ends_here |= found == Match::kYes;
        may_end |= found == Match::kMaybe;
    }
    if (!ends_here && may_end) return false;
    if (ends_here || text.front() == '{' || text.front() == '"') {
        output.begin_call(called_);
        called_.clear();
        at_ += spaces;
        begin_ = at_;
    } else {
        called_.clear();
        message_ = ReplyKind::kContent;
    }
    return true;
}

std::span<const std::string_view> ReplyParser::markers_in_message() const {
    if (!tools_ || !calls_in_message_) return {};
    return tools_->begins();
}

bool ReplyParser::step_message(bool over, Output& output) {
    if (!called_.empty() && !decide_call(over, output)) return false;
    constexpr std::array<std::string_view, 5> all_ends = {"<|end|>", "<|return|>", "<|call|>", "<|start|>", "\""};
    if (!message_begun_ && !markers_in_message().empty()) {
        bool wait = false;
        if (find_call_at_start(State::kMessage, over, output, wait)) return true;
        if (wait) return false;
        message_begun_ = !std::ranges::all_of(rest(), is_json_space);
    }
    const bool json = message_ == ReplyKind::kToolArguments;
    std::vector<std::string_view> ends;
    if (syntax_.framing == ReplyFraming::kRecipients) {
        ends.assign(kMessageEnds.begin(), kMessageEnds.end());
    } else {
        ends.assign(all_ends.begin(), all_ends.begin() + 4);
    }
    // The model may begin the next message without an end of this one.
    if (message_ == ReplyKind::kReasoning)
        for (const std::string& one : switches_) ends.push_back(one);
    const size_t count = ends.size();
    if (json) ends.push_back(all_ends.back());
    for (const std::string_view one : markers_in_message()) ends.push_back(one);
    MarkerPlace place;
    if (json && quotes_->quoted()) {
        place.before = quotes_->skip(rest());
    } else {
        place = find_marker(rest(), ends, over);
        if (json && place.found && place.which == count) {
            output.arguments(rest().substr(0, place.before + 1));
            at_ += place.before + 1;
            begin_ = at_;
            // After the arguments it begins nothing.
            if (!mender_->complete()) quotes_->open();
            return true;
        }
    }
    const std::string_view text = rest().substr(0, place.before);
    if (message_ == ReplyKind::kToolArguments) {
        output.arguments(text);
    } else {
        write(message_ == ReplyKind::kReasoning ? State::kReasoning : State::kContent, text, output);
    }
    at_ += place.before;
    begin_ = at_;
    if (!place.found && at_ < input_.size() && text.size() > 0) return true;
    if (!place.found) return false;
    if (place.which >= count) {
        begin_calls(State::kMessage, place.which - count, ends[place.which].size());
        return true;
    }
    output.end_call();
    newlines_ = 0;
    // The start of the next message is part of its header.
    const std::string_view end = ends[place.which];
    if (end != "<|start|>" && !end.starts_with(' ')) at_ += end.size();
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
    // Reasoning that is empty may only be closed.
    switch (match(rest(), syntax_.reasoning_end, over)) {
        case Match::kMaybe:
            return false;
        case Match::kYes:
            at_ += syntax_.reasoning_end.size();
            begin_ = at_;
            state_ = State::kAfterReasoning;
            return true;
        case Match::kNo:
            break;
    }
    at_ = begin_;
    scanned_ = 0;
    state_ = syntax_.whole ? State::kMaybeReasoning : State::kContent;
    return true;
}

// Whether what reasoning ends with comes before any call: then all before it is reasoning.
bool ReplyParser::step_maybe_reasoning(bool over) {
    std::vector<std::string_view> markers = {syntax_.reasoning_end};
    if (tools_)
        for (const std::string_view one : tools_->begins()) markers.push_back(one);
    const MarkerPlace place = find_marker(rest().substr(scanned_), markers, over);
    scanned_ += place.before;
    if (!place.found && !over) return false;
    bool ends = place.found && place.which == 0;
    if (ends) {
        // In a sentence the mark is only mentioned.
        const std::string_view before = rest().substr(0, scanned_);
        const std::string_view after = rest().substr(scanned_ + syntax_.reasoning_end.size());
        const bool begins_line = before.empty() || before.ends_with('\n');
        if (!begins_line && after.empty() && !over) return false;
        ends = begins_line || after.empty() || after.starts_with('\n');
    }
    state_ = ends ? State::kReasoningStart : State::kContent;
    scanned_ = 0;
    return true;
}

// A call within reasoning is reasoning if more of that follows, and a call if the answer ends with it: a model may
// forget to close its reasoning.
bool ReplyParser::step_maybe_calls(bool over, Output& output) {
    const std::array<std::string_view, 1> end = {syntax_.reasoning_end};
    const MarkerPlace place = find_marker(rest().substr(scanned_), end, over);
    scanned_ += place.before;
    if (!place.found && !over) return false;
    if (place.found) {
        write(State::kReasoning, rest().substr(0, scanned_), output);
        at_ += scanned_;
        begin_ = at_;
        state_ = State::kReasoning;
        return true;
    }
    // The answer is over. It ends with calls if all that follows one of the markers is calls.
    constexpr size_t kMostTries = 16;
    const std::span<const std::string_view> calls = tools_->begins();
    size_t at = 0;
    for (size_t tries = 0; tries < kMostTries; ++tries) {
        const MarkerPlace next = find_marker(rest().substr(at), calls, true);
        if (!next.found) break;
        at += next.before;
        if (all_calls(rest().substr(at + calls[next.which].size()), next.which)) {
            write(State::kReasoning, rest().substr(0, at), output);
            at_ += at;
            begin_ = at_;
            begin_calls(State::kReasoning, next.which, calls[next.which].size());
            return true;
        }
        at += calls[next.which].size();
    }
    write(State::kReasoning, rest(), output);
    output.add(ReplyKind::kReasoning, std::string(std::exchange(newlines_, 0), '\n'));
    at_ = begin_ = input_.size();
    return false;
}

// Whether `text`, which is all that follows a marker, is calls.
bool ReplyParser::all_calls(std::string_view text, size_t marker) const {
    class Nothing final : public CallSink {
      public:
        void begin_call(std::string_view) override {}
        void arguments(std::string_view) override {}
    } nothing;
    const auto reader = make_tool_reader(syntax_);
    const std::string_view mark = reader->begins()[marker];
    const size_t again = mark.size() - reader->start(marker);
    std::string whole(mark.substr(mark.size() - again));
    whole += text;
    text = whole;
    for (;;) {
        const ToolReader::Progress progress = reader->read(text, true, nothing);
        text.remove_prefix(progress.bytes);
        if (progress.result == ToolReader::Result::kEnd) return std::ranges::all_of(text, is_json_space);
        if (progress.result == ToolReader::Result::kCertain || progress.result == ToolReader::Result::kGoOn) continue;
        return false;
    }
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
    std::vector<std::string_view> markers = {syntax_.reasoning_end};
    if (tools_ && (tools_->in_reasoning() || !syntax_.exact))
        for (const std::string_view one : tools_->begins()) markers.push_back(one);
    const MarkerPlace place = find_marker(rest(), markers, over);
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
    } else if (tools_->in_reasoning()) {
        begin_calls(State::kReasoning, place.which - 1, markers[place.which].size());
    } else {
        scanned_ = 0;
        state_ = State::kMaybeCalls;
    }
    return true;
}

// Calls that only white space precedes. True: they have begun; `wait`: they may.
bool ReplyParser::find_call_at_start(State outer, bool over, Output& output, bool& wait) {
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
            begin_calls(outer, m, markers[m].size());
            return true;
        }
        if (!maybe) continue;
        output.add(ReplyKind::kContent, rest().substr(0, at));
        at_ += at;
        begin_ = at_;
        wait = true;
        return false;
    }
    return false;
}

bool ReplyParser::step_content(bool over, Output& output) {
    if (at_begin_ && !content_started_ && !syntax_.content_begin.empty()) {
        const Match found = match(rest(), syntax_.content_begin, over);
        if (found == Match::kMaybe) return false;
        if (found == Match::kYes) {
            at_ += syntax_.content_begin.size();
            begin_ = at_;
            content_started_ = true;
        }
    }
    at_begin_ = false;
    const size_t marks = syntax_.content_marks.size();
    const bool calls = tools_ && !calls_excluded_;
    if (!calls && marks == 0) {
        write(State::kContent, rest(), output);
        begin_ = at_ = input_.size();
        return false;
    }
    if (calls && !content_started_) {
        bool wait = false;
        if (find_call_at_start(State::kContent, over, output, wait)) return true;
        if (wait) return false;
    }
    const std::span<const std::string_view> markers =
        std::span(content_markers_).first(calls ? content_markers_.size() : marks);
    MarkerPlace place = find_marker(rest(), markers, over);
    const bool starts = !std::ranges::all_of(rest().substr(0, place.before), is_json_space);
    if (syntax_.content_or_calls && starts && !calls_excluded_) {
        // From here on only marks of content are looked for.
        write(State::kContent, rest().substr(0, place.before), output);
        at_ += place.before;
        begin_ = at_;
        return true;
    }
    write(State::kContent, rest().substr(0, place.before), output);
    at_ += place.before;
    begin_ = at_;
    if (!place.found) return false;
    if (place.which < marks) {
        at_ += markers[place.which].size();
        begin_ = at_;
        return true;
    }
    begin_calls(State::kContent, place.which - marks, markers[place.which].size());
    return true;
}

void ReplyParser::begin_calls(State outer, size_t marker, size_t length) {
    outer_ = outer;
    marker_length_ = length;
    at_ += tools_->start(marker);
    certain_ = false;
    message_begun_ = true;
    state_ = State::kCalls;
}

// Sets searched_ to the end of the text before the next mark that ends the message, or before what may become one.
// Returns whether the mark is there: calls end before it, too.
bool ReplyParser::find_message_end(bool over) {
    if (syntax_.framing != ReplyFraming::kRecipients) {
        searched_ = input_.size();
        return false;
    }
    searched_ = std::max(searched_, at_);
    const MarkerPlace place = find_marker(std::string_view(input_).substr(searched_), kMessageEnds, over);
    searched_ += place.before;
    return place.found;
}

bool ReplyParser::step_calls(bool over, Output& output) {
    using Result = ToolReader::Result;
    const State after = syntax_.framing == ReplyFraming::kMarkers ? State::kContent : State::kMessage;
    const bool ends = find_message_end(over);
    const std::string_view text = rest().substr(0, searched_ - at_);
    const ToolReader::Progress progress = tools_->read(text, over || ends, output);
    at_ += progress.bytes;
    switch (progress.result) {
        case Result::kGoOn:
            return true;
        case Result::kWait:
            if (!over && !ends) return false;
            break;
        case Result::kCertain:
        case Result::kEnd:
            begin_ = at_;
            certain_ = true;
            newlines_ = 0;
            content_started_ = true;
            if (progress.result == Result::kEnd) state_ = after;
            return true;
        case Result::kDrop:
            begin_ = at_;
            content_started_ = true;
            state_ = after;
            return true;
        case Result::kLeave:
            break;
    }
    at_ = begin_;
    state_ = after;
    if (certain_) return true;
    write(outer_ == State::kReasoning ? outer_ : State::kContent, std::string_view(input_).substr(at_, marker_length_),
          output);
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
