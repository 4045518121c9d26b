// Llama 3.1 and later: the answer is the call, {"name": NAME, "parameters": OBJECT}, or a token says that one follows.
#include "core/text/call_body.hpp"
#include "core/text/tool_reader.hpp"

#include <array>

namespace tessera::text {
namespace {

class LlamaReader final : public ToolReader {
  public:
    std::span<const std::string_view> begins() const override { return std::span(kBegins).first(1); }
    std::span<const std::string_view> begins_at_start() const override { return kBegins; }
    void start(size_t marker) override {
        separated_ = false;
        begin_call();
        opened_ = marker == 1;
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        if (!in_call_) return between(text, over);
        if (opened_) {
            opened_ = false;
            return {body_.read("{", false, sink).result};
        }
        const Progress progress = body_.read(text, over, sink);
        if (progress.result != Result::kEnd) return progress;
        in_call_ = false;
        return {Result::kCertain, progress.bytes};
    }

  private:
    static constexpr std::array<std::string_view, 2> kBegins = {"<|python_tag|>", "{"};

    void begin_call() {
        in_call_ = true;
        body_.begin();
    }

    // Calls may be separated by semicolons.
    Progress between(std::string_view text, bool over) {
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

    JsonObjectBody body_{true, ""};
    bool in_call_ = false;
    bool opened_ = false;  // the brace that begins the call was read as a marker
    bool separated_ = false;
};

}  // namespace

std::unique_ptr<ToolReader> make_llama_reader() {
    return std::make_unique<LlamaReader>();
}

}  // namespace tessera::text
