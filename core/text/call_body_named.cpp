// A name, a mark, and arguments as JSON, which are passed on as they are: brackets are counted to find their end.
#include "core/text/call_body.hpp"

#include <algorithm>
#include <string>

namespace tessera::text {
namespace {

constexpr std::string_view kMistralArguments = "[ARGS]", kMistralId = "[CALL_ID]";

enum class Naming : uint8_t { kKimi, kFunctionary, kMistral };

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
        depth_ = 0;
        quoted_ = escaped_ = false;
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
        }
        return {Result::kLeave};
    }

  private:
    enum class State : uint8_t { kName, kId, kBefore, kArguments, kList };

    Progress name(std::string_view text, bool over) {
        if (name_.empty())
            if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (const size_t length = std::min(text.find_first_of("<>[{}\"\n\r\t"), text.size()); length > 0) {
            name_ += text.substr(0, length);
            return {Result::kGoOn, length};
        }
        if (text.empty()) return {Result::kWait};
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
        if (end == Match::kMaybe) return {Result::kWait};
        if (end == Match::kNo && text.front() != '{' && text.front() != '[') return {Result::kLeave};
        sink.begin_call(name);
        if (end == Match::kYes) {
            sink.arguments("{}");
            return {Result::kEnd};
        }
        state_ = State::kArguments;
        return {Result::kCertain};
    }

    Progress arguments(std::string_view text, bool over, CallSink& sink) {
        for (size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            if (quoted_) {
                if (c == '"' && !escaped_) quoted_ = false;
                escaped_ = c == '\\' && !escaped_;
                continue;
            }
            if (!end_.empty() && c == end_.front()) {
                // Brackets that were not closed.
                const Match end = match(text.substr(i), end_, over);
                if (end != Match::kNo) {
                    sink.arguments(text.substr(0, i));
                    if (end == Match::kYes) return {Result::kEnd, i};
                    return {i > 0 ? Result::kCertain : Result::kWait, i};
                }
            }
            quoted_ = c == '"';
            if (c == '{' || c == '[') ++depth_;
            if ((c == '}' || c == ']') && --depth_ == 0) {
                sink.arguments(text.substr(0, i + 1));
                return {Result::kEnd, i + 1};
            }
        }
        sink.arguments(text);
        return {over ? Result::kEnd : text.empty() ? Result::kWait : Result::kCertain, text.size()};
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
    size_t depth_ = 0;
    bool quoted_ = false, escaped_ = false;
};

}  // namespace

std::unique_ptr<CallBody> make_kimi_body(std::string_view end) {
    return std::make_unique<NamedBody>(Naming::kKimi, "<|tool_call_argument_begin|>", end);
}
std::unique_ptr<CallBody> make_functionary_body(std::string_view end) {
    return std::make_unique<NamedBody>(Naming::kFunctionary, ">", end);
}
std::unique_ptr<CallBody> make_mistral_body() {
    return std::make_unique<NamedBody>(Naming::kMistral, kMistralArguments, "");
}

}  // namespace tessera::text
