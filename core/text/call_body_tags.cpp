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
    // Not empty: a value has a line break of its own at both ends.
    std::string_view break_value_end, break_function_end;
    std::string_view json_key_end;  // not empty: it ends the key of JSON, and key_end that of a text
    // Not empty: other attributes may follow a name or a key up to this; one of them may say the type of a value.
    std::string_view attributes_end;
    std::string_view whole, whole_end;  // not empty: all arguments as JSON stand between these
    std::string_view cdata, cdata_end;  // not empty: a text stands between these where it begins with the first
    bool in_sentences = false;          // `function` begins calls, and may be mentioned
};
constexpr Tags kGlm = {
    .parameter = "<arg_key>", .key_end = "</arg_key>", .value = "<arg_value>", .value_end = "</arg_value>"};
constexpr Tags kFunctionTags = {.function = "<function=",
                                .name_end = ">",
                                .parameter = "<parameter=",
                                .key_end = ">",
                                .value_end = "</parameter>",
                                .function_end = "</function>",
                                .break_value_end = "\n</parameter>",
                                .break_function_end = "\n</function>"};
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

constexpr Tags kHunyuan = {.name_end = "<tool_sep>",
                           .parameter = "<arg_key>",
                           .key_end = "</arg_key>",
                           .value = "<arg_value>",
                           .value_end = "</arg_value>"};
constexpr Tags kHunyuanOpen = {.name_end = "<tool_sep:opensource>",
                               .parameter = "<arg_key:opensource>",
                               .key_end = "</arg_key:opensource>",
                               .value = "<arg_value:opensource>",
                               .value_end = "</arg_value:opensource>"};
constexpr Tags kAtemTags = {.function = "<atem:invoke name=\"",
                            .name_end = "\">",
                            .parameter = "<atem:parameter name=\"",
                            .key_end = "\">",
                            .value_end = "</atem:parameter>",
                            .function_end = "</atem:invoke>"};
constexpr Tags kParamTags = {.function = "<function name=\"",
                             .name_end = "\">",
                             .parameter = "<param name=\"",
                             .key_end = "\">",
                             .value_end = "</param>",
                             .function_end = "</function>",
                             .cdata = "<![CDATA[",
                             .cdata_end = "]]></param>",
                             .in_sentences = true};
constexpr Tags kKimiK3 = {.function = "<|open|>call tool=\"",
                          .name_end = "\"",
                          .parameter = "<|open|>argument key=\"",
                          .key_end = "\"",
                          .value_end = "<|close|>argument<|sep|>",
                          .function_end = "<|close|>call<|sep|>",
                          .attributes_end = "<|sep|>",
                          .whole = "<|open|>json",
                          .whole_end = "<|close|>json<|sep|>"};

// An attribute's value: Kimi-K3 writes &amp; and &quot;.
std::string unescaped(std::string_view text) {
    std::string made;
    while (!text.empty()) {
        constexpr std::array<std::pair<std::string_view, char>, 2> known = {{{"&amp;", '&'}, {"&quot;", '"'}}};
        const auto* const found =
            std::ranges::find_if(known, [&](const auto& one) { return text.starts_with(one.first); });
        made += found == known.end() ? text.front() : found->second;
        text.remove_prefix(found == known.end() ? 1 : found->first.size());
    }
    return made;
}

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
    TagsBody(const Tags& tags, std::string_view end, std::shared_ptr<const TextParameters> texts,
             std::string_view section_end = {})
        : tags_(tags), end_(end), section_end_(section_end), texts_(std::move(texts)) {
        list_value_ends();
    }

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
            case State::kNameAttributes:
                return name_attributes(text, over, sink);
            case State::kKeyAttributes:
                return key_attributes(text, over);
            case State::kWholeAttributes:
                return whole_attributes(text, over);
            case State::kWhole:
                return whole(text, over, sink);
            case State::kUndecided:
                return undecided(text, over, sink);
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
    enum class State : uint8_t {
        kFunction,
        kName,
        kNameAttributes,
        kUndecided,
        kParameters,
        kKey,
        kKeyAttributes,
        kValueMark,
        kBreak,
        kValue,
        kArriving,
        kWholeAttributes,
        kWhole
    };
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
        const Match name_end = match_mark(text, tags_.name_end, over);
        if (tags_.function.empty() && name_end != Match::kYes) {
            if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
            const Match parameter = match(text, tags_.parameter, over), end = match(text, end_, over);
            if (any_maybe({parameter, end, name_end})) return {Result::kWait};
            if (parameter == Match::kNo && end == Match::kNo) return {Result::kLeave};
            bytes = 0;
        } else {
            if (name_end == Match::kMaybe) return {Result::kWait};
            if (name_end == Match::kNo) return {Result::kLeave};
        }
        if (!tags_.attributes_end.empty()) return go(State::kNameAttributes, bytes);
        return begin_call(bytes, sink);
    }
    Progress begin_call(size_t bytes, CallSink& sink) {
        name_ = tags_.attributes_end.empty() ? std::string(without_space(word_)) : unescaped(without_space(word_));
        if (name_.empty() || name_.find_first_of(" \r\t") != name_.npos || !may_call(name_)) return {Result::kLeave};
        // Without the mark of calls the name may stand in a sentence.
        if (names_ || tags_.in_sentences) return go(State::kUndecided, bytes);
        return certain_call(bytes, sink);
    }
    Progress certain_call(size_t bytes, CallSink& sink) {
        sink.begin_call(name_);
        any_ = true;
        values_ = 0;
        return go(State::kParameters, bytes, Result::kCertain);
    }
    // A call if what comes after a name follows.
    Progress undecided(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {Result::kWait};
        bool maybe = false;
        for (const std::string_view mark : {tags_.parameter, tags_.whole, tags_.function_end, end_}) {
            const Match found = match_mark(text, mark, over);
            if (found == Match::kYes) return certain_call(0, sink);
            maybe |= found == Match::kMaybe;
        }
        return {maybe ? Result::kWait : Result::kLeave};
    }

    // Bytes of attributes with what ends them; nothing: `maybe` says whether more may come.
    size_t attributes(std::string_view text, bool over, bool& maybe) const {
        constexpr size_t kLongest = 256;
        const std::array<std::string_view, 1> end = {tags_.attributes_end};
        const MarkerPlace place = find_marker(text.substr(0, kLongest), end, over);
        maybe = !place.found && !over && text.size() < kLongest;
        return place.found ? place.before + tags_.attributes_end.size() : 0;
    }
    Progress name_attributes(std::string_view text, bool over, CallSink& sink) {
        bool maybe = false;
        const size_t bytes = attributes(text, over, maybe);
        if (bytes == 0) return {maybe ? Result::kWait : Result::kLeave};
        return begin_call(bytes, sink);
    }
    Progress key_attributes(std::string_view text, bool over) {
        bool maybe = false;
        const size_t bytes = attributes(text, over, maybe);
        if (bytes == 0) return {maybe ? Result::kWait : Result::kLeave};
        const std::string_view written = text.substr(0, bytes);
        if (written.find("type=\"string\"") != written.npos) {
            kind_ = ValueKind::kText;
        } else if (written.find("type=\"") != written.npos) {
            kind_ = ValueKind::kAny;
        }
        return go(State::kValueMark, bytes);
    }
    Progress whole_attributes(std::string_view text, bool over) {
        bool maybe = false;
        const size_t bytes = attributes(text, over, maybe);
        if (bytes == 0) return {maybe ? Result::kWait : Result::kLeave};
        return go(State::kWhole, bytes);
    }
    Progress whole(std::string_view text, bool over, CallSink& sink) {
        const std::array<std::string_view, 1> end = {tags_.whole_end};
        const MarkerPlace place = find_marker(text, end, over);
        sink.arguments(text.substr(0, place.before));
        if (!place.found)
            return {over ? Result::kEnd : place.before > 0 ? Result::kCertain : Result::kWait, place.before};
        values_ = kWholeValues;
        return go(State::kParameters, place.before + tags_.whole_end.size(), Result::kCertain);
    }

    void close(CallSink& sink) {
        if (values_ != kWholeValues) sink.arguments(values_ == 0 ? "{}" : "}");
    }

    Progress parameters(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && !over) return {Result::kWait};
        const Match parameter = match(text, tags_.parameter, over);
        if (parameter == Match::kYes) return begin_word(State::kKey, tags_.parameter.size());
        const Match whole = values_ == 0 ? match_mark(text, tags_.whole, over) : Match::kNo;
        if (whole == Match::kYes) return go(State::kWholeAttributes, tags_.whole.size());
        const Match function_end = match_mark(text, tags_.function_end, over), end = match_mark(text, end_, over);
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
        const Match section_end = match_mark(text, section_end_, over);
        if (end == Match::kYes || section_end == Match::kYes || text.empty()) {
            close(sink);
            return {Result::kEnd};
        }
        return {any_maybe({parameter, function_end, end, section_end, next, whole}) ? Result::kWait : Result::kLeave};
    }

    Progress key(std::string_view text, bool over) {
        if (const size_t length = word(text); length > 0) return {Result::kGoOn, length};
        if (word_.empty() && !tags_.value.empty()) {
            // A model may write what begins a key twice.
            const Match again = match(text, tags_.parameter, over);
            if (again == Match::kYes) return {Result::kGoOn, tags_.parameter.size()};
            if (again == Match::kMaybe) return {Result::kWait};
        }
        const Match end = match(text, tags_.key_end, over), json_end = match_mark(text, tags_.json_key_end, over);
        if (any_maybe({end, json_end})) return {Result::kWait};
        if (end == Match::kNo && json_end == Match::kNo) return {Result::kLeave};
        key_ = tags_.attributes_end.empty() ? std::string(without_space(word_)) : unescaped(without_space(word_));
        seen_ = spaces_ = 0;
        in_cdata_ = false;
        if (json_end == Match::kYes) {
            kind_ = ValueKind::kJson;
            return go(State::kValueMark, tags_.json_key_end.size());
        }
        const bool is_text = !tags_.json_key_end.empty() || (texts_ && texts_->contains({name_, key_}));
        kind_ = is_text ? ValueKind::kText : ValueKind::kAny;
        return go(tags_.attributes_end.empty() ? State::kValueMark : State::kKeyAttributes, tags_.key_end.size());
    }

    Progress value_mark(std::string_view text, bool over) {
        if (tags_.value.empty()) return go(State::kBreak, 0);
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        const Match mark = match(text, tags_.value, over);
        if (mark == Match::kYes) return go(State::kBreak, tags_.value.size());
        // A model may write the end of a key twice, or forget what begins its value.
        const Match key_end = match(text, tags_.key_end, over);
        if (key_end == Match::kYes) return {Result::kGoOn, tags_.key_end.size()};
        if (mark == Match::kMaybe || key_end == Match::kMaybe) return {Result::kWait};
        if (text.empty() || text.front() == '<') return {Result::kLeave};
        return go(State::kBreak, 0);
    }

    Progress line_break(std::string_view text, bool over) {
        if (!tags_.cdata.empty()) {
            const Match cdata = match(text, tags_.cdata, over);
            if (cdata == Match::kMaybe) return {Result::kWait};
            if (cdata == Match::kYes) {
                in_cdata_ = true;
                kind_ = ValueKind::kText;
                return go(State::kValue, tags_.cdata.size());
            }
        }
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
    // Ends of a value: its mark, the same after a line break, and the end of the function, likewise, where a model
    // forgot the mark and the answer ends.
    MarkerPlace find_value_end(std::string_view text, bool over) const {
        if (in_cdata_) {
            const std::array<std::string_view, 1> end = {tags_.cdata_end};
            return find_marker(text, end, over);
        }
        for (size_t from = 0;;) {
            MarkerPlace place = find_marker(text.substr(from), value_ends_, over);
            place.before += from;
            if (!place.found || place.which < function_ends_) return place;
            const Match last = ends_answer(text.substr(place.before + value_ends_[place.which].size()), over);
            if (last == Match::kYes) return place;
            if (last == Match::kMaybe) return {.before = place.before};
            from = place.before + 1;
        }
    }
    void list_value_ends() {
        value_ends_ = {tags_.value_end};
        if (!tags_.break_value_end.empty()) value_ends_.push_back(tags_.break_value_end);
        function_ends_ = value_ends_.size();
        const std::string_view last = tags_.function_end.empty() ? end_ : tags_.function_end;
        if (!last.empty()) value_ends_.push_back(last);
        if (!tags_.break_function_end.empty()) value_ends_.push_back(tags_.break_function_end);
    }
    // Whether nothing but the end of the call follows, as far as it is there. It is short: what is long is a value.
    Match ends_answer(std::string_view text, bool over) const {
        constexpr size_t kMost = 64;
        if (text.size() > kMost) return Match::kNo;
        text.remove_prefix(json_spaces(text));
        for (const std::string_view end : {end_, section_end_}) {
            if (end.empty() || !text.starts_with(end)) continue;
            text.remove_prefix(end.size());
            text.remove_prefix(json_spaces(text));
        }
        if (!text.empty() && !end_.starts_with(text) && !section_end_.starts_with(text)) return Match::kNo;
        if (!over) return Match::kMaybe;
        return text.empty() ? Match::kYes : Match::kNo;
    }
    // What is read of it: the end of a function ends more than the value.
    size_t value_end_bytes(size_t which) const {
        if (in_cdata_) return tags_.cdata_end.size();
        return which < function_ends_ ? value_ends_[which].size() : which == function_ends_ ? 0 : 1;
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
        depth_ = 0;
        quotes_.begin();
        if (kind_ == ValueKind::kText) sink.arguments("\"");
        return go(State::kArriving, 0, Result::kCertain);
    }
    // JSON without brackets that would close more than the value.
    void append_within_value(std::string& json, std::string_view raw) {
        while (!raw.empty()) {
            size_t bytes = 1;
            if (quotes_.quoted()) {
                bytes = quotes_.skip(raw);
            } else if (raw.front() == '"') {
                quotes_.open();
            } else if (raw.front() == '{' || raw.front() == '[') {
                ++depth_;
            } else if (raw.front() == '}' || raw.front() == ']') {
                if (depth_ == 0) {
                    raw.remove_prefix(1);
                    continue;
                }
                --depth_;
            }
            json += raw.substr(0, bytes);
            raw.remove_prefix(bytes);
        }
    }
    Progress arriving_value(std::string_view text, bool over, CallSink& sink) {
        const MarkerPlace place = find_value_end(text, over);
        const std::string_view raw = text.substr(0, place.before);
        std::string json;
        if (kind_ == ValueKind::kText)
            append_json_characters(json, raw);
        else
            append_within_value(json, raw);
        sink.arguments(json);
        if (!place.found)
            return {over ? Result::kEnd : place.before > 0 ? Result::kCertain : Result::kWait, place.before};
        if (kind_ == ValueKind::kText) sink.arguments("\"");
        return go(State::kParameters, place.before + value_end_bytes(place.which), Result::kCertain);
    }

    static constexpr size_t kWholeValues = SIZE_MAX;  // of values_: the arguments were written as JSON

    const Tags& tags_;
    const std::string_view end_, section_end_;
    const std::shared_ptr<const TextParameters> texts_;
    std::vector<std::string_view> value_ends_;  // from function_ends_: those of the function
    size_t function_ends_ = 0;
    State state_ = State::kName;
    bool any_ = false;        // a function was passed on
    std::string word_;        // the name or key being read
    std::string name_, key_;  // the last that are complete
    size_t values_ = 0;       // of this function
    ValueKind kind_ = ValueKind::kAny;
    bool in_cdata_ = false;
    size_t seen_ = 0;    // of a value that may be no text, without its end
    size_t spaces_ = 0;  // at its beginning
    JsonQuotes quotes_;  // of a value that is JSON
    size_t depth_ = 0;   // of its brackets
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
std::unique_ptr<CallBody> make_hunyuan_body(bool open, std::string_view end, std::string_view section_end,
                                            std::shared_ptr<const TextParameters> texts) {
    return std::make_unique<TagsBody>(open ? kHunyuanOpen : kHunyuan, end, std::move(texts), section_end);
}
std::unique_ptr<CallBody> make_atem_body(std::string_view end, std::shared_ptr<const TextParameters> texts) {
    return std::make_unique<TagsBody>(kAtemTags, end, std::move(texts));
}
std::unique_ptr<CallBody> make_param_tags_body(std::shared_ptr<const TextParameters> texts) {
    return std::make_unique<TagsBody>(kParamTags, "", std::move(texts));
}
std::unique_ptr<CallBody> make_kimi_k3_body(std::string_view end) {
    return std::make_unique<TagsBody>(kKimiK3, end, nullptr);
}
std::unique_ptr<CallBody> make_dsml_body(std::string_view end) {
    return std::make_unique<TagsBody>(kDsmlTags, end, nullptr);
}

}  // namespace tessera::text
