#include "core/text/call_body.hpp"

namespace tessera::text {

size_t JsonEnd::read(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted_) {
            if (c == '"' && !escaped_) quoted_ = false;
            escaped_ = c == '\\' && !escaped_;
        } else if (c == '"') {
            quoted_ = true;
        } else if (c == '{' || c == '[') {
            ++depth_;
        } else if ((c == '}' || c == ']') && depth_ > 0 && --depth_ == 0) {
            closed_ = true;
            return i + 1;
        }
    }
    return text.size();
}

ArgumentsEnd::Progress ArgumentsEnd::read(std::string_view text, std::string_view mark, bool over) {
    if (!begun_ && !text.empty()) {
        begun_ = true;
        is_text_ = text.front() == '"';
        if (is_text_) {
            text_.open();
            const Progress rest = read(text.substr(1), mark, over);
            return {rest.status, rest.bytes + 1};
        }
    }
    if (is_text_) {
        const size_t bytes = text_.skip(text);
        return {text_.quoted() ? Status::kOpen : Status::kClosed, bytes};
    }
    size_t at = 0;
    while (at < text.size()) {
        const size_t stop = mark.empty() ? text.npos : text.find(mark.front(), at);
        at += value_.read(text.substr(at, stop == text.npos ? stop : stop - at));
        if (value_.closed()) return {Status::kClosed, at};
        if (at >= text.size()) break;
        const Match found = value_.in_string() ? Match::kNo : match(text.substr(at), mark, over);
        if (found != Match::kNo) return {found == Match::kYes ? Status::kMark : Status::kMaybeMark, at};
        value_.read(text.substr(at, 1));
        ++at;
    }
    return {Status::kOpen, text.size()};
}

void JsonObjectBody::begin() {
    // Of a call without its mark nothing but a call may be read.
    call_ = JsonCall(strict_ || names_, names_);
    told_ = false;
}

JsonObjectBody::Progress JsonObjectBody::read(std::string_view text, bool over, CallSink& sink) {
    if (told_ && !call_.in_string() && !end_.empty() && !text.empty()) {
        const Match end = match(text, end_, over);
        if (end == Match::kMaybe) return {Result::kWait};
        if (end == Match::kYes) return {Result::kEnd};
    }
    if (text.empty()) return {over && told_ ? Result::kEnd : Result::kWait};
    // As far as what may be the end of the call.
    const size_t stop = end_.empty() ? text.npos : text.find(end_.front(), 1);
    const JsonCall::Progress progress = call_.read(text.substr(0, stop));
    if (call_.certain()) {
        if (!told_) sink.begin_call(call_.name());
        told_ = true;
        sink.arguments(call_.take_arguments());
    }
    if (progress.status == JsonCall::Status::kClosed) return {Result::kEnd, progress.bytes};
    if (progress.status == JsonCall::Status::kBad) {
        // What was read before it is told.
        if (told_ && progress.bytes > 0) return {Result::kCertain, progress.bytes};
        return {Result::kLeave};
    }
    return {told_ ? Result::kCertain : Result::kGoOn, progress.bytes};
}

void JsonListBody::begin() {
    state_ = State::kOpen;
    object_open_ = any_ = false;
}

// Another object may follow without a mark of its own.
JsonListBody::Progress JsonListBody::after_one(std::string_view text, bool over) {
    constexpr size_t kMostSpaces = 64;
    size_t spaces = json_spaces(text);
    if (spaces < text.size() && (text[spaces] == ',' || text[spaces] == ';'))
        spaces += 1 + json_spaces(text.substr(spaces + 1));
    if (spaces < text.size() && spaces <= kMostSpaces && text[spaces] == '{') {
        state_ = State::kOne;
        object_.begin();
        return {Result::kGoOn, spaces};
    }
    const bool may_follow = spaces == text.size() && spaces <= kMostSpaces && !over;
    return {may_follow ? Result::kWait : Result::kEnd};
}

EitherBody::Progress EitherBody::read(std::string_view text, bool over, CallSink& sink) {
    if (!chosen_) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {Result::kWait};
        chosen_ = text.front() == '<' ? tags_.get() : &json_;
        chosen_->begin();
    }
    return chosen_->read(text, over, sink);
}

void JsonListBody::begin_in_list() {
    begin();
    state_ = State::kItem;
}

JsonListBody::Progress JsonListBody::read(std::string_view text, bool over, CallSink& sink) {
    if (state_ == State::kOne) {
        const Progress progress = object_.read(text, over, sink);
        if (progress.result != Result::kEnd || (over && progress.bytes == text.size())) return progress;
        state_ = State::kAfterOne;
        return {Result::kCertain, progress.bytes};
    }
    if (state_ == State::kAfterOne) return after_one(text, over);
    if (state_ == State::kItem && object_open_) {
        const Progress progress = object_.read(text, over, sink);
        if (progress.result != Result::kEnd) return progress;
        object_open_ = false;
        any_ = true;
        state_ = State::kAfter;
        return {Result::kCertain, progress.bytes};
    }
    if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
    if (text.empty()) return {over && any_ ? Result::kEnd : Result::kWait};
    const char c = text.front();
    switch (state_) {
        case State::kOpen:
            if (c == '[') {
                begin_in_list();
                return {Result::kGoOn, 1};
            }
            if (c != '{') return {Result::kLeave};
            state_ = State::kOne;
            object_.begin();
            return {Result::kGoOn};
        case State::kItem:
            if (c != '{') return {Result::kLeave};
            object_open_ = true;
            object_.begin();
            return {Result::kGoOn};
        case State::kAfter:
            if (c == ']') return {Result::kEnd, 1};
            if (c == ',') {
                state_ = State::kItem;
                return {Result::kGoOn, 1};
            }
            // A model may forget the bracket.
            return {Result::kEnd};
        case State::kOne:
        case State::kAfterOne:
            break;
    }
    return {Result::kLeave};
}

}  // namespace tessera::text
