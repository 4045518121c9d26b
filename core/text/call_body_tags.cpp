// Calls whose names and values stand between tags.
#include "core/text/call_body.hpp"
#include "core/text/literal_json.hpp"
#include "core/text/python_json.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace tessera::text {
namespace {

struct Tags {
    std::string_view function, name_end;  // empty: the name stands between the marks of the call
    std::string_view parameter, key_end;
    std::string_view value, value_end;  // empty: the value follows the end of the key
    std::string_view function_end;      // empty: that of the call
    std::string_view break_value_end;   // not empty: a value has a line break of its own at both ends
    std::string_view json_key_end;      // not empty: it ends the key of JSON, and key_end that of a text
};
constexpr Tags kGlm = {
    .parameter = "<arg_key>", .key_end = "</arg_key>", .value = "<arg_value>", .value_end = "</arg_value>"};
constexpr Tags kFunctionTags = {.function = "<function=",
                                .name_end = ">",
                                .parameter = "<parameter=",
                                .key_end = ">",
                                .value_end = "</parameter>",
                                .function_end = "</function>",
                                .break_value_end = "\n</parameter>"};
constexpr Tags kInvokeTags = {.function = "<invoke name=\"",
                              .name_end = "\">",
                              .parameter = "<parameter name=\"",
                              .key_end = "\">",
                              .value_end = "</parameter>",
                              .function_end = "</invoke>"};
constexpr Tags kDsmlTags = {.function = "<" TSR_DSML "invoke name=\"",
                            .name_end = "\">",
                            .parameter = "<" TSR_DSML "parameter name=\"",
                            .key_end = "\" string=\"true\">",
                            .value_end = "</" TSR_DSML "parameter>",
                            .function_end = "</" TSR_DSML "invoke>",
                            .json_key_end = "\" string=\"false\">"};

// Whether a value may be JSON or one of Python's that is no text, as far as it is there. `seen`: bytes of it for which
// that was so. `spaces`: those at its beginning, as far as they are known.
bool may_be_value(std::string_view raw, size_t seen, size_t& spaces) {
    spaces += json_spaces(raw.substr(spaces));
    if (spaces == raw.size()) return true;
    const char c = raw[spaces];
    if (c == '[' || c == '{') return true;
    if (c == '-' || (c >= '0' && c <= '9'))
        return raw.find_first_not_of("0123456789.eE+- \n\r\t", std::max(seen, spaces)) == raw.npos;
    constexpr std::array<std::string_view, 8> words = {"true",  "false", "null", "True",
                                                       "False", "None",  "NaN",  "Infinity"};
    constexpr size_t longest = 9;  // and what follows it
    if (raw.find_first_not_of(" \n\r\t", std::max(seen, spaces + longest)) != raw.npos) return false;
    const std::string_view word = without_space(raw.substr(spaces, longest));
    return std::ranges::any_of(words, [&](std::string_view one) { return one.starts_with(word); });
}

class TagsBody final : public CallBody {
  public:
    TagsBody(const Tags& tags, std::string_view end, std::shared_ptr<const TextParameters> texts)
        : tags_(tags), end_(end), texts_(std::move(texts)) {}

    void begin() override {
        state_ = tags_.function.empty() ? State::kName : State::kFunction;
        word_.clear();
        any_ = false;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        switch (state_) {
            case State::kFunction:
                return function(text, over);
            case State::kName:
                return name(text, over, sink);
            case State::kParameters:
                return parameters(text, over, sink);
            case State::kKey:
                return key(text, over);
            case State::kValueMark:
                return value_mark(text, over);
            case State::kBreak:
                return line_break(text, over);
            case State::kValue:
                return value(text, over, sink);
            case State::kArriving:
                return arriving_value(text, over, sink);
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kFunction, kName, kParameters, kKey, kValueMark, kBreak, kValue, kArriving };
    // What is known of a value before its end.
    enum class ValueKind : uint8_t { kAny, kText, kJson };

    Progress go(State state, size_t bytes, Result result = Result::kGoOn) {
        state_ = state;
        return {result, bytes};
    }
    Progress begin_word(State state, size_t bytes) {
        word_.clear();
        return go(state, bytes);
    }
    // Bytes of a name or key at the start of the text, which it takes.
    size_t word(std::string_view text) {
        const size_t length = std::min(text.find_first_of("<>\"{\n"), text.size());
        word_ += text.substr(0, length);
        return length;
    }
    static bool any_maybe(std::initializer_list<Match> found) {
        return std::ranges::find(found, Match::kMaybe) != found.end();
    }
    Match match_mark(std::string_view text, std::string_view mark, bool over) const {
        return mark.empty() ? Match::kNo : match(text, mark, over);
    }

    Progress function(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {over && any_ ? Result::kEnd : Result::kWait};
        const Match found = match(text, tags_.function, over);
        if (found == Match::kYes) return begin_word(State::kName, tags_.function.size());
        if (found == Match::kMaybe) return {Result::kWait};
        return {any_ ? Result::kEnd : Result::kLeave};
    }

    Progress name(std::string_view text, bool over, CallSink& sink) {
        if (const size_t length = word(text); length > 0) return {Result::kGoOn, length};
        if (text.empty()) return {Result::kWait};
        size_t bytes = tags_.name_end.size();
        if (tags_.function.empty()) {
            if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
            const Match parameter = match(text, tags_.parameter, over), end = match(text, end_, over);
            if (any_maybe({parameter, end})) return {Result::kWait};
            if (parameter == Match::kNo && end == Match::kNo) return {Result::kLeave};
        } else {
            const Match end = match(text, tags_.name_end, over);
            if (end == Match::kMaybe) return {Result::kWait};
            if (end == Match::kNo) return {Result::kLeave};
        }
        name_ = without_space(word_);
        if (name_.empty() || name_.find_first_of(" \r\t") != name_.npos) return {Result::kLeave};
        sink.begin_call(name_);
        any_ = true;
        values_ = 0;
        return go(State::kParameters, bytes, Result::kCertain);
    }

    void close(CallSink& sink) { sink.arguments(values_ == 0 ? "{}" : "}"); }

    Progress parameters(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && !over) return {Result::kWait};
        const Match parameter = match(text, tags_.parameter, over);
        if (parameter == Match::kYes) return begin_word(State::kKey, tags_.parameter.size());
        const Match function_end = match_mark(text, tags_.function_end, over), end = match(text, end_, over);
        // A model may forget the end of a function.
        const Match next = match_mark(text, tags_.function, over);
        if (function_end == Match::kYes) {
            close(sink);
            return go(State::kFunction, tags_.function_end.size(), Result::kCertain);
        }
        if (next == Match::kYes) {
            close(sink);
            return go(State::kFunction, 0, Result::kCertain);
        }
        if (end == Match::kYes || text.empty()) {
            close(sink);
            return {Result::kEnd};
        }
        return {any_maybe({parameter, function_end, end, next}) ? Result::kWait : Result::kLeave};
    }

    Progress key(std::string_view text, bool over) {
        if (const size_t length = word(text); length > 0) return {Result::kGoOn, length};
        const Match end = match(text, tags_.key_end, over), json_end = match_mark(text, tags_.json_key_end, over);
        if (any_maybe({end, json_end})) return {Result::kWait};
        if (end == Match::kNo && json_end == Match::kNo) return {Result::kLeave};
        key_ = without_space(word_);
        seen_ = spaces_ = 0;
        if (json_end == Match::kYes) {
            kind_ = ValueKind::kJson;
            return go(State::kValueMark, tags_.json_key_end.size());
        }
        const bool is_text = !tags_.json_key_end.empty() || (texts_ && texts_->contains({name_, key_}));
        kind_ = is_text ? ValueKind::kText : ValueKind::kAny;
        return go(State::kValueMark, tags_.key_end.size());
    }

    Progress value_mark(std::string_view text, bool over) {
        if (tags_.value.empty()) return go(State::kBreak, 0);
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        const Match mark = match(text, tags_.value, over);
        if (mark == Match::kYes) return go(State::kBreak, tags_.value.size());
        return {mark == Match::kMaybe ? Result::kWait : Result::kLeave};
    }

    Progress line_break(std::string_view text, bool over) {
        if (tags_.break_value_end.empty()) return go(State::kValue, 0);
        if (text.empty() && !over) return {Result::kWait};
        return go(State::kValue, text.starts_with('\n') ? 1 : 0);
    }

    // From here what was read is certain: nothing but the value's own end ends it.
    void begin_value(CallSink& sink) {
        std::string start = values_ == 0 ? "{\"" : ", \"";
        append_json_characters(start, key_);
        sink.arguments(start + "\": ");
        ++values_;
    }
    MarkerPlace find_value_end(std::string_view text, bool over) const {
        const std::array<std::string_view, 2> ends = {tags_.value_end, tags_.break_value_end};
        return find_marker(text, std::span(ends).first(tags_.break_value_end.empty() ? 1 : 2), over);
    }
    size_t value_end_bytes(size_t which) const {
        return which == 0 ? tags_.value_end.size() : tags_.break_value_end.size();
    }

    Progress value(std::string_view text, bool over, CallSink& sink) {
        if (kind_ != ValueKind::kAny) return begin_arriving(sink);
        MarkerPlace place = find_value_end(text.substr(seen_), over);
        place.before += seen_;
        const std::string_view raw = text.substr(0, place.before);
        if (!place.found && !may_be_value(raw, seen_, spaces_)) {
            kind_ = ValueKind::kText;
            return begin_arriving(sink);
        }
        if (!place.found && !over) {
            seen_ = place.before;
            return {Result::kWait};
        }
        begin_value(sink);
        sink.arguments(place.found ? bare_value_as_json(raw) : std::string(raw));
        if (!place.found) return {Result::kEnd, text.size()};
        return go(State::kParameters, place.before + value_end_bytes(place.which), Result::kCertain);
    }

    // A value of a known kind is passed on while it arrives.
    Progress begin_arriving(CallSink& sink) {
        begin_value(sink);
        if (kind_ == ValueKind::kText) sink.arguments("\"");
        return go(State::kArriving, 0, Result::kCertain);
    }
    Progress arriving_value(std::string_view text, bool over, CallSink& sink) {
        const MarkerPlace place = find_value_end(text, over);
        const std::string_view raw = text.substr(0, place.before);
        std::string escaped;
        if (kind_ == ValueKind::kText) append_json_characters(escaped, raw);
        sink.arguments(kind_ == ValueKind::kText ? escaped : raw);
        if (!place.found)
            return {over ? Result::kEnd : place.before > 0 ? Result::kCertain : Result::kWait, place.before};
        if (kind_ == ValueKind::kText) sink.arguments("\"");
        return go(State::kParameters, place.before + value_end_bytes(place.which), Result::kCertain);
    }

    const Tags& tags_;
    const std::string_view end_;
    const std::shared_ptr<const TextParameters> texts_;
    State state_ = State::kName;
    bool any_ = false;        // a function was passed on
    std::string word_;        // the name or key being read
    std::string name_, key_;  // the last that are complete
    size_t values_ = 0;       // of this function
    ValueKind kind_ = ValueKind::kAny;
    size_t seen_ = 0;    // of a value that may be no text, without its end
    size_t spaces_ = 0;  // at its beginning
};

}  // namespace

std::string bare_value_as_json(std::string_view raw) {
    if (const auto value = parse_python_json(raw); value && value->kind != PythonJson::Kind::kText)
        return std::string(without_space(raw));
    const std::string_view word = without_space(raw);
    if (!word.empty() &&
        (word.front() == '[' || word.front() == '{' || word == "True" || word == "False" || word == "None"))
        if (auto json = python_literal_as_json(word)) return *std::move(json);
    std::string text = "\"";
    append_json_characters(text, raw);
    return text + '"';
}

std::unique_ptr<CallBody> make_glm_body(std::string_view end, std::shared_ptr<const TextParameters> texts) {
    return std::make_unique<TagsBody>(kGlm, end, std::move(texts));
}
std::unique_ptr<CallBody> make_function_tags_body(std::string_view end, std::shared_ptr<const TextParameters> texts) {
    return std::make_unique<TagsBody>(kFunctionTags, end, std::move(texts));
}
std::unique_ptr<CallBody> make_invoke_tags_body(std::string_view end, std::shared_ptr<const TextParameters> texts) {
    return std::make_unique<TagsBody>(kInvokeTags, end, std::move(texts));
}
std::unique_ptr<CallBody> make_dsml_body(std::string_view end) {
    return std::make_unique<TagsBody>(kDsmlTags, end, nullptr);
}

}  // namespace tessera::text
