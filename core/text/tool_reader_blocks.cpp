// Calls that stand between two markers, each read when it is complete: what a marker begins is held back until then, so
// that no half of it is ever taken for content. What cannot be read stays content.
#include "core/text/call_blocks.hpp"
#include "core/text/tool_reader.hpp"

#include <algorithm>
#include <array>

namespace tessera::text {
namespace {

struct BlockFormat {
    ToolSyntax syntax;
    // What begins all calls, and ends them; empty: nothing does.
    std::string_view section, section_end;
    std::string_view call;
    std::string_view end;  // empty: the JSON value, or the names and the value, that follow
    CallBlockReader read;
};

constexpr std::array<BlockFormat, 16> kFormats = {{
    {ToolSyntax::kKimi, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
     "<|tool_call_end|>", read_kimi_call},
    {ToolSyntax::kGlm, "", "", "<tool_call>", "</tool_call>", read_glm_call},
    {ToolSyntax::kQwenXml, "", "", "<tool_call>", "</tool_call>", read_function_tags},
    {ToolSyntax::kSeedXml, "", "", "<seed:tool_call>", "</seed:tool_call>", read_function_tags},
    {ToolSyntax::kMiniMax, "", "", "<minimax:tool_call>", "</minimax:tool_call>", read_invoke_tags},
    {ToolSyntax::kFunctionary, "", "", "<function=", "</function>", read_functionary_call},
    {ToolSyntax::kMistral, "", "", "[TOOL_CALLS]", "", read_json_calls},
    {ToolSyntax::kMistralNamed, "", "", "[TOOL_CALLS]", "", read_mistral_call},
    {ToolSyntax::kGranite, "", "", "<|tool_call|>", "", read_json_calls},
    {ToolSyntax::kGemma, "", "", "<|tool_call>", "<tool_call|>", read_gemma_call},
    {ToolSyntax::kLfm2, "", "", "<|tool_call_start|>", "<|tool_call_end|>", read_python_calls},
    {ToolSyntax::kNemotron, "", "", "<TOOLCALL>", "</TOOLCALL>", read_json_calls},
    {ToolSyntax::kApriel, "", "", "<tool_calls>", "</tool_calls>", read_json_calls},
    {ToolSyntax::kCommandR, "", "", "<|START_ACTION|>", "<|END_ACTION|>", read_json_calls},
    {ToolSyntax::kGigaChat, "", "", "<|message_sep|>\n\nfunction call<|role_sep|>\n", "", read_json_calls},
    {ToolSyntax::kFireFunction, "", "", "functools", "", read_json_calls},
}};

class BlockReader final : public ToolReader {
  public:
    BlockReader(const BlockFormat& format, std::shared_ptr<const TextParameters> texts)
        : format_(format), texts_(std::move(texts)) {
        // Some models put them on lines of their own.
        breaks_ = {"\n\n" + std::string(format.call), "\n" + std::string(format.call)};
        begins_ = {breaks_[0], breaks_[1], format.call};
        if (!format.section.empty()) begins_.push_back(format.section);
    }

    std::span<const std::string_view> begins() const override { return begins_; }
    bool in_reasoning() const override { return format_.syntax == ToolSyntax::kKimi; }
    void start(size_t marker) override {
        state_ = marker == 3 ? State::kBetween : State::kCall;
        any_ = false;
        begin_call();
    }

    Progress read(std::string_view text, bool over, CallSink& sink) override {
        return state_ == State::kBetween ? between(text, over) : call(text, over, sink);
    }

  private:
    enum class State : uint8_t { kBetween, kCall };

    void begin_call() {
        scanned_ = 0;
        json_ = JsonEnd();
    }

    Progress between(std::string_view text, bool over) {
        if (const size_t spaces = json_spaces(text); spaces > 0) return {Result::kGoOn, spaces};
        if (text.empty()) return {!over ? Result::kWait : any_ ? Result::kEnd : Result::kLeave};
        const Match call = match(text, format_.call, over);
        if (call == Match::kYes) {
            state_ = State::kCall;
            begin_call();
            return {Result::kGoOn, format_.call.size()};
        }
        const Match end = any_ && !format_.section_end.empty() ? match(text, format_.section_end, over) : Match::kNo;
        if (end == Match::kYes) return {Result::kEnd, format_.section_end.size()};
        return {call == Match::kMaybe || end == Match::kMaybe ? Result::kWait : Result::kLeave};
    }

    // Where the call ends, and what ended it; nothing if it has not.
    std::optional<std::pair<size_t, size_t>> find_end(std::string_view text) {
        if (format_.end.empty()) {
            const auto end = json_.find(text);
            if (!end) return {};
            return std::pair(*end, size_t{0});
        }
        const size_t hit = text.find(format_.end, scanned_);
        if (hit != text.npos) return std::pair(hit, format_.end.size());
        scanned_ = text.size() < format_.end.size() ? 0 : text.size() - format_.end.size() + 1;
        return {};
    }

    Progress call(std::string_view text, bool over, CallSink& sink) {
        auto end = find_end(text);
        if (!end) {
            if (!over) return {Result::kWait};
            // A model may forget the end of the last call.
            end = std::pair(text.size(), size_t{0});
        }
        std::vector<ReadCall> calls;
        if (!format_.read(text.substr(0, end->first), texts_.get(), calls) || calls.empty()) return {Result::kLeave};
        for (const ReadCall& one : calls) {
            sink.begin_call(one.name);
            sink.arguments(one.arguments);
        }
        any_ = true;
        state_ = State::kBetween;
        return {Result::kCertain, end->first + end->second};
    }

    const BlockFormat& format_;
    const std::shared_ptr<const TextParameters> texts_;
    std::array<std::string, 2> breaks_;
    std::vector<std::string_view> begins_;
    State state_ = State::kBetween;
    bool any_ = false;
    size_t scanned_ = 0;  // of the call, without an end in it
    JsonEnd json_;
};

}  // namespace

std::unique_ptr<ToolReader> make_block_reader(const ReplySyntax& syntax) {
    const auto found = std::ranges::find(kFormats, syntax.tools, &BlockFormat::syntax);
    return found == kFormats.end() ? nullptr : std::make_unique<BlockReader>(*found, syntax.texts);
}

}  // namespace tessera::text
