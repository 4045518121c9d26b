// MiniMax-M3's calls: tags that are named like keys, within one another where values are objects or lists.
#include "core/text/call_body.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tessera::text {
namespace {

constexpr std::string_view kInvoke = "<invoke name=\"", kInvokeEnd = "</invoke>", kItem = "item";
constexpr size_t kDeepestNesting = 200;

class NestedTagsBody final : public CallBody {
  public:
    NestedTagsBody(std::string_view mark, std::shared_ptr<const TextParameters> texts)
        : mark_(mark), texts_(std::move(texts)) {}

    void begin() override {
        state_ = State::kFunction;
        any_ = false;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        switch (state_) {
            case State::kFunction:
                return function(text, over);
            case State::kName:
                return name(text, over, sink);
            case State::kUndecided:
                return undecided(text, over, sink);
            case State::kValue:
                return value(text, over, sink);
            case State::kText:
                return known_text(text, over, sink);
            case State::kTag:
                return tag(text, over, sink);
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kFunction, kName, kUndecided, kValue, kText, kTag };
    // What a tag holds, as far as it was read.
    enum class Kind : uint8_t { kOpen, kObject, kList };
    struct Level {
        std::string key;
        Kind kind = Kind::kOpen;
    };

    Progress go(State state, size_t bytes, Result result = Result::kGoOn) {
        state_ = state;
        return {result, bytes};
    }

    // Between functions. The mark before a tag is one token, which a model may forget.
    Progress function(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {over && any_ ? Result::kEnd : Result::kWait};
        for (const std::string& begin : {std::string(mark_) + std::string(kInvoke), std::string(kInvoke)}) {
            const Match found = match(text, begin, over);
            if (found == Match::kMaybe) return {Result::kWait};
            if (found == Match::kNo) continue;
            name_.clear();
            return go(State::kName, begin.size());
        }
        return {any_ ? Result::kEnd : Result::kLeave};
    }

    Progress name(std::string_view text, bool over, CallSink& sink) {
        const size_t length = std::min(text.find_first_of("<>\"{\n"), text.size());
        if (length > 0) {
            name_ += text.substr(0, length);
            return {Result::kGoOn, length};
        }
        const Match end = match(text, "\">", over);
        if (end == Match::kMaybe) return {Result::kWait};
        name_ = std::string(without_space(name_));
        if (end == Match::kNo || name_.empty() || name_.find_first_of(" \r\t") != name_.npos || !may_call(name_))
            return {Result::kLeave};
        // Without the mark of calls it may stand in a sentence.
        if (names_) return go(State::kUndecided, 2);
        return certain_call(2, sink);
    }
    Progress certain_call(size_t bytes, CallSink& sink) {
        sink.begin_call(name_);
        any_ = true;
        levels_.assign(1, {"", Kind::kOpen});
        raw_.clear();
        return go(State::kValue, bytes, Result::kCertain);
    }
    // A call if a tag follows.
    Progress undecided(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        const Match tag = match(text, std::string(mark_) + '<', over);
        if (tag == Match::kYes) return certain_call(0, sink);
        return {tag == Match::kMaybe ? Result::kWait : Result::kLeave};
    }

    // What stands before the next tag: white space between tags, or a value.
    Progress value(std::string_view text, bool over, CallSink& sink) {
        const std::array<std::string_view, 1> marks = {mark_};
        const MarkerPlace place = find_marker(text, marks, over);
        raw_ += text.substr(0, place.before);
        if (!place.found) {
            if (over) {
                end_value(sink, true);
                return {Result::kEnd, place.before};
            }
            return {place.before > 0 ? Result::kCertain : Result::kWait, place.before};
        }
        tag_.clear();
        return go(State::kTag, place.before + mark_.size(), Result::kCertain);
    }

    // A value that the schema calls a text is passed on while it arrives.
    Progress known_text(std::string_view text, bool over, CallSink& sink) {
        const std::array<std::string_view, 1> marks = {mark_};
        const MarkerPlace place = find_marker(text, marks, over);
        std::string escaped;
        append_json_characters(escaped, text.substr(0, place.before));
        sink.arguments(escaped);
        if (!place.found)
            return {over ? Result::kEnd : place.before > 0 ? Result::kCertain : Result::kWait, place.before};
        sink.arguments("\"");
        is_text_ = true;
        tag_.clear();
        return go(State::kTag, place.before + mark_.size(), Result::kCertain);
    }

    // The text of a tag after its mark, up to its bracket.
    Progress tag(std::string_view text, bool over, CallSink& sink) {
        constexpr size_t kLongest = 1024;
        const size_t close = text.find('>');
        const size_t bytes = close == text.npos ? text.size() : close + 1;
        tag_ += text.substr(0, bytes);
        if (close == text.npos && tag_.size() <= kLongest) {
            if (bytes > 0) return {Result::kCertain, bytes};
            return {over ? Result::kEnd : Result::kWait};
        }
        std::string_view whole = tag_;
        if (close == text.npos || !whole.starts_with('<') || whole.size() < 3) return {Result::kLeave, bytes};
        whole = whole.substr(1, whole.size() - 2);
        if (tag_ == kInvokeEnd) {
            while (levels_.size() > 1) close_level(sink);
            sink.arguments(levels_.front().kind == Kind::kOpen ? "{}" : "}");
            is_text_ = false;
            raw_.clear();
            return go(State::kFunction, bytes, Result::kCertain);
        }
        if (whole.starts_with('/')) {
            close_tag(without_space(whole.substr(1)), sink);
        } else if (!open_tag(without_space(whole), sink)) {
            return {Result::kLeave, bytes};
        }
        const bool begins_text =
            !whole.starts_with('/') && levels_.size() == 2 && texts_ && texts_->contains({name_, levels_.back().key});
        if (begins_text) sink.arguments("\"");
        return go(begins_text ? State::kText : State::kValue, bytes, Result::kCertain);
    }
    bool open_tag(std::string_view key, CallSink& sink) {
        Level& parent = levels_.back();
        if (levels_.size() > kDeepestNesting || key.empty()) return false;
        const bool first = parent.kind == Kind::kOpen;
        if (first) parent.kind = key == kItem && levels_.size() > 1 ? Kind::kList : Kind::kObject;
        std::string json = first ? (parent.kind == Kind::kList ? "[" : "{") : ", ";
        if (parent.kind == Kind::kObject) {
            json += '"';
            append_json_characters(json, key);
            json += "\": ";
        }
        sink.arguments(json);
        raw_.clear();
        is_text_ = false;
        levels_.push_back({std::string(key), Kind::kOpen});
        return true;
    }
    // Closes what was not closed before it. Another name than that of the innermost tag, which holds no tags, closes
    // that one; any other tag that nothing opened is dropped.
    void close_tag(std::string_view key, CallSink& sink) {
        const auto at =
            std::find_if(levels_.rbegin(), levels_.rend() - 1, [&](const Level& level) { return level.key == key; });
        if (at == levels_.rend() - 1) {
            if (levels_.size() > 1 && levels_.back().kind == Kind::kOpen) close_level(sink);
            return;
        }
        const auto depth = static_cast<size_t>(levels_.rend() - at);
        while (levels_.size() >= depth) close_level(sink);
    }
    void close_level(CallSink& sink) {
        end_value(sink, false);
        levels_.pop_back();
    }
    // `cut`: the answer is over.
    void end_value(CallSink& sink, bool cut) {
        const Kind kind = levels_.back().kind;
        if (kind == Kind::kOpen && levels_.size() > 1 && !is_text_) sink.arguments(bare_value_as_json(raw_));
        if (kind != Kind::kOpen && !cut) sink.arguments(kind == Kind::kList ? "]" : "}");
        raw_.clear();
        is_text_ = false;
    }

    const std::string_view mark_;
    const std::shared_ptr<const TextParameters> texts_;
    State state_ = State::kFunction;
    bool any_ = false;      // a function was passed on
    bool is_text_ = false;  // the value of the innermost tag was passed on
    std::string name_;
    std::string raw_;            // of the innermost tag
    std::string tag_;            // being read
    std::vector<Level> levels_;  // of open tags; the first is the function
};

}  // namespace

std::unique_ptr<CallBody> make_nested_tags_body(std::string_view mark, std::shared_ptr<const TextParameters> texts) {
    return std::make_unique<NestedTagsBody>(mark, std::move(texts));
}

}  // namespace tessera::text
