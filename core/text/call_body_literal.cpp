// Calls whose arguments are written as Python or Gemma writes values.
#include "core/text/call_body.hpp"
#include "core/text/literal_json.hpp"

#include <algorithm>
#include <string>

namespace tessera::text {
namespace {

// Reads the arguments of one call behind the bracket that opens them.
class LiteralArguments {
  public:
    explicit LiteralArguments(LiteralSyntax syntax) : literal_(syntax) {}

    void begin() { literal_.begin_arguments(); }
    // kEnd: they are closed.
    CallBody::Progress read(std::string_view text, bool over, CallSink& sink) {
        using Result = ToolReader::Result;
        std::string json;
        const auto [status, bytes] = literal_.read(text, over, json);
        sink.arguments(json);
        if (status == LiteralJson::Status::kClosed) return {Result::kEnd, bytes};
        if (bytes > 0) return {Result::kCertain, bytes};
        if (status == LiteralJson::Status::kBad) return {Result::kLeave};
        return {over ? Result::kEnd : Result::kWait};
    }

  private:
    LiteralJson literal_;
};

// Bytes of a name at the start of the text.
size_t name_length(std::string_view text) {
    return std::min(text.find_first_of(" \n\r\t<>{}[](),=\"'"), text.size());
}

class GemmaBody final : public CallBody {
  public:
    void begin() override {
        state_ = State::kCall;
        name_.clear();
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (state_ == State::kArguments) return arguments_.read(text, over, sink);
        if (const size_t spaces = json_spaces(text); spaces > 0 && name_.empty()) return {Result::kGoOn, spaces};
        if (text.empty()) return {Result::kWait};
        if (state_ == State::kCall) {
            constexpr std::string_view word = "call:";
            const Match found = match(text, word, over);
            if (found != Match::kYes) return {found == Match::kMaybe ? Result::kWait : Result::kLeave};
            state_ = State::kName;
            return {Result::kGoOn, word.size()};
        }
        if (const size_t length = name_length(text); length > 0) {
            name_ += text.substr(0, length);
            return {Result::kGoOn, length};
        }
        if (name_.empty() || text.front() != '{' || !may_call(name_)) return {Result::kLeave};
        sink.begin_call(name_);
        arguments_.begin();
        state_ = State::kArguments;
        return {Result::kCertain, 1};
    }

  private:
    enum class State : uint8_t { kCall, kName, kArguments };

    LiteralArguments arguments_{LiteralSyntax::kGemma};
    State state_ = State::kCall;
    std::string name_;
};

class PythonBody final : public CallBody {
  public:
    explicit PythonBody(std::string_view end) : list_(end) {}

    void begin() override {
        state_ = State::kOpen;
        name_.clear();
        any_ = false;
    }
    void restrict_to(const ToolNames* names) override {
        names_ = names;
        list_.restrict_to(names);
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (state_ == State::kList) return list_.read(text, over, sink);
        if (state_ == State::kArguments) {
            const Progress progress = arguments_.read(text, over, sink);
            if (progress.result != Result::kEnd) return progress;
            state_ = State::kAfter;
            return {Result::kCertain, progress.bytes};
        }
        if (const size_t spaces = json_spaces(text); spaces > 0 && name_.empty()) return {Result::kGoOn, spaces};
        if (text.empty()) return {over && any_ ? Result::kEnd : Result::kWait};
        const char c = text.front();
        if (state_ == State::kOpen) {
            if (c != '[') return {Result::kLeave};
            return go(State::kFirst, 1);
        }
        if (state_ == State::kFirst && c == '{') {
            list_.begin_in_list();
            return go(State::kList, 0);
        }
        if (state_ == State::kAfter) {
            if (c == ']') return {Result::kEnd, 1};
            return go(State::kName, c == ',' ? 1 : 0);
        }
        if (any_ && name_.empty() && c == ']') return {Result::kEnd, 1};
        state_ = State::kName;
        if (const size_t length = name_length(text); length > 0) {
            name_ += text.substr(0, length);
            return {Result::kGoOn, length};
        }
        if (name_.empty() || c != '(' || !may_call(name_)) return {Result::kLeave};
        sink.begin_call(name_);
        name_.clear();
        any_ = true;
        arguments_.begin();
        return go(State::kArguments, 1, Result::kCertain);
    }

  private:
    enum class State : uint8_t { kOpen, kFirst, kName, kArguments, kAfter, kList };

    Progress go(State state, size_t bytes, Result result = Result::kGoOn) {
        state_ = state;
        return {result, bytes};
    }

    LiteralArguments arguments_{LiteralSyntax::kPython};
    JsonListBody list_;
    State state_ = State::kOpen;
    std::string name_;
    bool any_ = false;
};

}  // namespace

std::unique_ptr<CallBody> make_gemma_body() {
    return std::make_unique<GemmaBody>();
}
std::unique_ptr<CallBody> make_python_body(std::string_view end) {
    return std::make_unique<PythonBody>(end);
}

}  // namespace tessera::text
