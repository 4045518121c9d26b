#include "core/text/call_body.hpp"

namespace tessera::text {

void JsonObjectBody::begin() {
    call_ = JsonCall(strict_);
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

void JsonListBody::begin_in_list() {
    begin();
    state_ = State::kItem;
}

JsonListBody::Progress JsonListBody::read(std::string_view text, bool over, CallSink& sink) {
    if (state_ == State::kOne) return object_.read(text, over, sink);
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
            break;
    }
    return {Result::kLeave};
}

}  // namespace tessera::text
