// A name, a mark, and arguments as JSON, which are passed on as they are: brackets are counted to find their end.
#include "core/text/call_body.hpp"

#include <algorithm>
#include <string>

namespace tessera::text {
namespace {

constexpr std::string_view kSolarName = "<|tool_call:name|>", kSolarArguments = "<|tool_call:args|>";
constexpr std::string_view kMistralArguments = "[ARGS]", kMistralId = "[CALL_ID]";

enum class Naming : uint8_t { kKimi, kFunctionary, kMistral, kSolar };

// functions.NAME:0
std::string_view kimi_name(std::string_view name) {
    if (name.starts_with("functions.")) name.remove_prefix(10);
    const size_t colon = name.rfind(':');
    if (colon != name.npos && colon + 1 < name.size() && name.find_first_not_of("0123456789", colon + 1) == name.npos)
        name = name.substr(0, colon);
    return name;
}

class NamedBody final : public CallBody {
  public:
    NamedBody(Naming naming, std::string_view separator, std::string_view end)
        : naming_(naming), separator_(separator), end_(end), list_(end) {}

    void begin() override {
        state_ = State::kName;
        name_.clear();
        value_.begin();
    }
    void restrict_to(const ToolNames* names) override {
        names_ = names;
        list_.restrict_to(names);
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        switch (state_) {
            case State::kList:
                return list_.read(text, over, sink);
            case State::kName:
                return name(text, over);
            case State::kId:
                return id(text, over);
            case State::kBefore:
                return before(text, over, sink);
            case State::kArguments:
                return arguments(text, over, sink);
            case State::kAfterArguments:
                return after_arguments(text, over);
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kName, kId, kBefore, kArguments, kAfterArguments, kList };

    Progress name(std::string_view text, bool over) {
        if (name_.empty())
            if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (const size_t length = std::min(text.find_first_of("<>[{}\"\n\r\t"), text.size()); length > 0) {
            name_ += text.substr(0, length);
            return {Result::kGoOn, length};
        }
        if (text.empty()) return {Result::kWait};
        if (naming_ == Naming::kSolar) {
            const Match id = match(text, kSolarName, over);
            if (id == Match::kYes) {
                name_.clear();
                return {Result::kGoOn, kSolarName.size()};
            }
            if (id == Match::kMaybe && match(text, separator_, over) != Match::kYes) return {Result::kWait};
        }
        const Match separator = match(text, separator_, over);
        if (separator == Match::kYes) return go(State::kBefore, separator_.size());
        if (naming_ == Naming::kMistral) {
            if (text.front() == '{') return go(State::kBefore, 0);
            const Match id = match(text, kMistralId, over);
            if (id == Match::kYes) return go(State::kId, kMistralId.size());
            // The older way, which models of the newer one write now and then.
            if (name_.empty() && text.front() == '[' && id == Match::kNo && separator == Match::kNo) {
                list_.begin();
                return go(State::kList, 0);
            }
            if (id == Match::kMaybe) return {Result::kWait};
        }
        if (separator == Match::kMaybe) return {Result::kWait};
        // Breaks before the separator.
        const size_t spaces = name_.empty() ? 0 : json_spaces(text);
        if (spaces == 0) return {Result::kLeave};
        name_ += text.substr(0, spaces);
        return {Result::kGoOn, spaces};
    }

    Progress id(std::string_view text, bool over) {
        const size_t length = std::min(text.find_first_of("[{\n"), text.size());
        if (length > 0) return {Result::kGoOn, length};
        if (text.empty()) return {Result::kWait};
        if (text.front() == '{') return go(State::kBefore, 0);
        const Match found = match(text, kMistralArguments, over);
        if (found == Match::kYes) return go(State::kBefore, kMistralArguments.size());
        return {found == Match::kMaybe ? Result::kWait : Result::kLeave};
    }

    Progress before(std::string_view text, bool over, CallSink& sink) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {Result::kWait};
        std::string_view name = without_space(name_);
        if (naming_ == Naming::kKimi) name = kimi_name(name);
        if (name.empty() || name.find_first_of(" \n\r\t") != name.npos) return {Result::kLeave};
        const Match end = end_.empty() ? Match::kNo : match(text, end_, over);
        const Match nothing = match(text, "null", over);
        const Match object = match(text, "\"{", over);
        if (end == Match::kMaybe || nothing == Match::kMaybe || object == Match::kMaybe) return {Result::kWait};
        const bool begins =
            text.front() == '{' || text.front() == '[' || object == Match::kYes || nothing == Match::kYes;
        if ((end == Match::kNo && !begins) || !may_call(name)) return {Result::kLeave};
        sink.begin_call(name);
        if (end == Match::kYes) {
            sink.arguments("{}");
            return {Result::kEnd};
        }
        if (nothing == Match::kYes) {
            sink.arguments("{}");
            return {Result::kEnd, 4};
        }
        state_ = State::kArguments;
        return {Result::kCertain};
    }

    Progress arguments(std::string_view text, bool over, CallSink& sink) {
        const auto [status, bytes] = value_.read(text, end_, over);
        sink.arguments(text.substr(0, bytes));
        switch (status) {
            case ArgumentsEnd::Status::kMark:
                return {Result::kEnd, bytes};
            case ArgumentsEnd::Status::kClosed:
                if (end_.empty()) return {Result::kEnd, bytes};
                state_ = State::kAfterArguments;
                return {Result::kCertain, bytes};
            case ArgumentsEnd::Status::kMaybeMark:
                return {bytes > 0 ? Result::kCertain : Result::kWait, bytes};
            case ArgumentsEnd::Status::kOpen:
                break;
        }
        return {over ? Result::kEnd : bytes == 0 ? Result::kWait : Result::kCertain, bytes};
    }

    // Another object before the end mark is passed on, too.
    Progress after_arguments(std::string_view text, bool over) {
        constexpr size_t kMostSpaces = 64;
        const size_t spaces = std::min(text.find_first_not_of(" \n\r\t,;"), text.size());
        if (spaces == text.size() && spaces <= kMostSpaces && !over) return {Result::kWait};
        if (spaces == text.size() || spaces > kMostSpaces || text[spaces] != '{') return {Result::kEnd};
        value_.begin();
        return go(State::kArguments, 0);
    }

    Progress go(State state, size_t bytes) {
        state_ = state;
        return {Result::kGoOn, bytes};
    }

    const Naming naming_;
    const std::string_view separator_, end_;
    JsonListBody list_;
    State state_ = State::kName;
    std::string name_;
    ArgumentsEnd value_;
};

// [{NAME: OBJECT}, ...], or one such object. Members but the first of an object are calls, too.
class KeyedBody final : public CallBody {
  public:
    explicit KeyedBody(std::string_view end) : end_(end) {}

    void begin() override {
        state_ = State::kOpen;
        any_ = in_list_ = false;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (state_ == State::kArguments) {
            const auto [status, bytes] = value_.read(text, end_, over);
            sink.arguments(text.substr(0, bytes));
            if (status == ArgumentsEnd::Status::kClosed) return go(State::kAfterMember, bytes, Result::kCertain);
            if (status == ArgumentsEnd::Status::kMark) return {Result::kEnd, bytes};
            if (status == ArgumentsEnd::Status::kOpen && over) return {Result::kEnd, bytes};
            return {bytes == 0 ? Result::kWait : Result::kCertain, bytes};
        }
        if (state_ == State::kName) return name(text);
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {over && any_ ? Result::kEnd : Result::kWait};
        const char c = text.front();
        switch (state_) {
            case State::kOpen:
                if (c == '[' && !in_list_) {
                    in_list_ = true;
                    return {Result::kGoOn, 1};
                }
                if (c == ']' && in_list_ && any_) return {Result::kEnd, 1};
                return c == '{' ? go(State::kMember, 1) : Progress{Result::kLeave};
            case State::kMember:
                if (c != '"') return {Result::kLeave};
                quotes_.begin();
                quotes_.open();
                name_.clear();
                return go(State::kName, 1);
            case State::kColon:
                return c == ':' ? go(State::kValue, 1) : Progress{Result::kLeave};
            case State::kValue: {
                const Match nothing = match(text, "null", over), object = match(text, "\"{", over);
                if (nothing == Match::kMaybe || object == Match::kMaybe) return {Result::kWait};
                if ((c != '{' && nothing == Match::kNo && object == Match::kNo) || !may_call(name_))
                    return {Result::kLeave};
                sink.begin_call(name_);
                any_ = true;
                if (nothing == Match::kYes) {
                    sink.arguments("{}");
                    return go(State::kAfterMember, 4, Result::kCertain);
                }
                value_.begin();
                return go(State::kArguments, 0, Result::kCertain);
            }
            case State::kAfterMember:
                if (c == ',') return go(State::kMember, 1);
                // A model may forget a bracket.
                return c == '}' ? go(State::kAfterObject, 1) : go(State::kAfterObject, 0);
            case State::kAfterObject:
                if (c == ',') return go(State::kOpen, 1);
                return {Result::kEnd, static_cast<size_t>(c == ']' && in_list_ ? 1 : 0)};
            case State::kName:
            case State::kArguments:
                break;
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kOpen, kMember, kName, kColon, kValue, kArguments, kAfterMember, kAfterObject };

    Progress go(State state, size_t bytes, Result result = Result::kGoOn) {
        state_ = state;
        return {result, bytes};
    }
    Progress name(std::string_view text) {
        const size_t bytes = quotes_.skip(text);
        name_ += text.substr(0, bytes);
        if (quotes_.quoted()) return {bytes == 0 ? Result::kWait : Result::kGoOn, bytes};
        name_.pop_back();
        const auto name = json_characters(name_);
        if (!name || name->empty()) return {Result::kLeave};
        name_ = *name;
        return go(State::kColon, bytes);
    }

    const std::string_view end_;
    State state_ = State::kOpen;
    JsonQuotes quotes_;  // of the name
    ArgumentsEnd value_;
    std::string name_;
    bool any_ = false, in_list_ = false;
};

}  // namespace

std::unique_ptr<CallBody> make_kimi_body(std::string_view end) {
    return std::make_unique<NamedBody>(Naming::kKimi, "<|tool_call_argument_begin|>", end);
}
std::unique_ptr<CallBody> make_functionary_body(std::string_view end) {
    return std::make_unique<NamedBody>(Naming::kFunctionary, ">", end);
}
std::unique_ptr<CallBody> make_solar_body(std::string_view end) {
    return std::make_unique<NamedBody>(Naming::kSolar, kSolarArguments, end);
}
std::unique_ptr<CallBody> make_keyed_body(std::string_view end) {
    return std::make_unique<KeyedBody>(end);
}
std::unique_ptr<CallBody> make_mistral_body() {
    return std::make_unique<NamedBody>(Naming::kMistral, kMistralArguments, "");
}

}  // namespace tessera::text
