// Calls as JSON objects. Hermes, as Qwen writes it:
//   <tool_call>\n{"name": NAME, "arguments": VALUE}\n</tool_call>\n<tool_call>...
// Llama 3.1 and later: the answer is the call, {"name": NAME, "parameters": OBJECT}, or a token says that one follows.
#include "core/text/json_call.hpp"
#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tessera::text {
namespace {

class JsonCallsReader : public ToolReader {
  public:
    explicit JsonCallsReader(bool strict) : strict_(strict) {}

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (!call_) return between(text, over);
        const Match end = at_end(text, over);
        if (end == Match::kMaybe) return {Result::kWait};
        if (end == Match::kYes) return end_call(0);
        if (text.empty()) return {over && told_ ? Result::kEnd : Result::kWait};

        // As far as what may be the end of the call.
        const size_t stop = next_end(text.substr(1));
        const JsonCall::Progress progress = call_->read(text.substr(0, stop == text.npos ? stop : stop + 1));
        if (call_->certain()) {
            if (!told_) sink.begin_call(call_->name());
            told_ = true;
            sink.arguments(call_->take_arguments());
        }
        if (progress.status == JsonCall::Status::kClosed) return end_call(progress.bytes);
        if (progress.status == JsonCall::Status::kBad) {
            // What was read before it is told.
            if (told_ && progress.bytes > 0) return {Result::kCertain, progress.bytes};
            return {Result::kLeave};
        }
        return {told_ ? Result::kCertain : Result::kGoOn, progress.bytes};
    }

  protected:
    virtual Progress between(std::string_view text, bool over) = 0;
    // Whether what ends a call stands at the start of the text although the object is not closed.
    virtual Match at_end(std::string_view, bool) const { return Match::kNo; }
    virtual size_t next_end(std::string_view) const { return std::string_view::npos; }

    void begin_call() {
        call_.emplace(strict_);
        told_ = false;
    }
    Progress end_call(size_t bytes) {
        call_.reset();
        ++calls_;
        after_object();
        return {Result::kCertain, bytes};
    }
    virtual void after_object() {}
    const JsonCall* call() const { return call_ ? &*call_ : nullptr; }
    bool told() const { return told_; }
    bool any_call() const { return calls_ > 0; }
    void forget() {
        call_.reset();
        calls_ = 0;
    }

  private:
    const bool strict_;
    std::optional<JsonCall> call_;
    bool told_ = false;
    size_t calls_ = 0;
};

constexpr std::string_view kHermesEnd = "</tool_call>";

class HermesReader final : public JsonCallsReader {
  public:
    HermesReader() : JsonCallsReader(false) {}

    std::span<const std::string_view> begins() const override { return kBegins; }
    void start(size_t) override {
        forget();
        begin_call();
        inside_ = false;
    }

  private:
    static constexpr std::array<std::string_view, 2> kBegins = {"\n<tool_call>", "<tool_call>"};

    // A model may forget to close the object.
    Match at_end(std::string_view text, bool over) const override {
        if (!told() || call()->in_string() || text.empty()) return Match::kNo;
        return match(text, kHermesEnd, over);
    }
    size_t next_end(std::string_view text) const override { return text.find('<'); }
    void after_object() override { inside_ = true; }

    Progress between(std::string_view text, bool over) override {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && over) return {Result::kEnd};
        const std::string_view expected = inside_ ? kHermesEnd : kBegins.back();
        const Match found = match(text, expected, over);
        if (found == Match::kMaybe) return {Result::kWait};
        if (found == Match::kNo) return {Result::kLeave};
        if (inside_) {
            inside_ = false;
            return {Result::kCertain, expected.size()};
        }
        begin_call();
        return {Result::kGoOn, expected.size()};
    }

    bool inside_ = false;  // after the object, before the end of its call
};

class LlamaReader final : public JsonCallsReader {
  public:
    LlamaReader() : JsonCallsReader(true) {}

    std::span<const std::string_view> begins() const override { return std::span(kBegins).first(1); }
    std::span<const std::string_view> begins_at_start() const override { return kBegins; }
    void start(size_t marker) override {
        forget();
        begin_call();
        separated_ = false;
        opened_ = marker == 1;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (!opened_ || !call()) return JsonCallsReader::read(text, over, sink);
        opened_ = false;
        const Progress progress = JsonCallsReader::read("{", false, sink);
        return {progress.result, 0};
    }

  private:
    static constexpr std::array<std::string_view, 2> kBegins = {"<|python_tag|>", "{"};

    // Calls may be separated by semicolons.
    Progress between(std::string_view text, bool over) override {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty() && over) return {separated_ ? Result::kLeave : Result::kEnd};
        if (text.empty()) return {Result::kWait};
        if (text.front() == ';' && !separated_) {
            separated_ = true;
            return {Result::kGoOn, 1};
        }
        const Match tag = match(text, kBegins.front(), over);
        if (tag == Match::kMaybe) return {Result::kWait};
        if (tag == Match::kNo && text.front() != '{') return {Result::kLeave};
        separated_ = false;
        begin_call();
        return {Result::kGoOn, tag == Match::kYes ? kBegins.front().size() : 0};
    }

    bool opened_ = false;  // the brace that begins the call was read as a marker
    bool separated_ = false;
};

}  // namespace

std::unique_ptr<ToolReader> make_hermes_reader() {
    return std::make_unique<HermesReader>();
}
std::unique_ptr<ToolReader> make_llama_reader() {
    return std::make_unique<LlamaReader>();
}

}  // namespace tessera::text
